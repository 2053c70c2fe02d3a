// Lists the cells of a table that are not 0, column by column.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "../../cpp/matrix.hpp"

namespace untwist {

struct SparseTable {
  explicit SparseTable(const Matrix<double>& X) : rows(X.rows), start(1, 0) {
    for (std::size_t column = 0; column < X.columns; ++column) {
      for (std::size_t i = 0; i < X.rows; ++i) {
        if (X(i, column) == 0.0) continue;
        row.push_back(static_cast<std::int32_t>(i));
        value.push_back(X(i, column));
      }
      start.push_back(static_cast<std::int64_t>(row.size()));
    }
  }

  SparseMatrix<double> view() const { return {rows, start.size() - 1, start.data(), row.data(), value.data()}; }

  std::size_t rows;
  std::vector<std::int64_t> start;
  std::vector<std::int32_t> row;
  std::vector<double> value;
};

}  // namespace untwist
