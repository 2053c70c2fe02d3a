// Tables of numbers that someone else owns.
#pragma once

#include <cstddef>
#include <cstdint>

namespace untwist {

// A read-only view with any strides, which count in numbers and may be negative.
template <typename Real>
class Matrix {
 public:
  Matrix(const Real* data, std::size_t rows, std::size_t columns, std::ptrdiff_t row_stride,
         std::ptrdiff_t column_stride)
      : rows(rows), columns(columns), data_(data), row_stride_(row_stride), column_stride_(column_stride) {}

  Real operator()(std::size_t row, std::size_t column) const {
    return data_[static_cast<std::ptrdiff_t>(row) * row_stride_ + static_cast<std::ptrdiff_t>(column) * column_stride_];
  }

  const std::size_t rows;
  const std::size_t columns;

 private:
  const Real* data_;
  std::ptrdiff_t row_stride_;
  std::ptrdiff_t column_stride_;
};

// A read-only view of a table that lists its cells column by column. Cells that are not listed are 0. No cell of a
// column is listed twice.
template <typename Real>
struct SparseMatrix {
  std::size_t rows, columns;
  const std::int64_t* start;  // The cells of column c are start[c] to start[c + 1].
  const std::int32_t* row;    // A cell is in this row,
  const Real* value;          // and has this value.
};

}  // namespace untwist
