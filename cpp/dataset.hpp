// Binned rows, grouped by class, that any number of boosters share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "hashing.hpp"
#include "sketch.hpp"

namespace untwist {

inline constexpr std::size_t kPadding = 256;  // codes after the last that may be read, though they mean nothing

struct CodeColumn {  // one feature of all rows
  const Code* data;
  std::size_t stride;

  Code operator[](std::size_t row) const { return data[row * stride]; }
};

class Dataset {
 public:
  // Rows are ordered by their class; within a class they keep their order. A lean dataset has its codes by row only.
  Dataset(const std::uint32_t* label, std::size_t rows, std::size_t classes, std::size_t features, bool lean = false)
      : rows(rows),
        features(features),
        class_start(classes + 1, 0),
        order(rows),
        columns(features),
        by_row(rows * features + kPadding),
        by_column(lean ? 0 : rows * features + kPadding) {
    for (std::size_t row = 0; row < rows; ++row) ++class_start[label[row] + 1];
    for (std::size_t k = 0; k < classes; ++k) class_start[k + 1] += class_start[k];
    std::vector<std::size_t> next(class_start.begin(), class_start.end() - 1);
    for (std::size_t row = 0; row < rows; ++row) order[next[label[row]]++] = static_cast<std::uint32_t>(row);
  }

  // To be called with all columns before the first are added: draws the sample of rows that places thresholds if there
  // are many, as a Sketch does.
  template <typename Real>
  void look(const Matrix<Real>& X, const WholeWeights& weight, ThreadPool& pool) {
    std::size_t present = 0;
    std::size_t one = rows;
    for (std::size_t row = 0; row < rows; ++row) {
      present += weight[row] > 0;
      if (weight[row] > 0 && one == rows) one = row;
    }
    if (present <= kSample) return;
    sums_.resize(rows, 0);
    std::vector<std::vector<char>> differs(static_cast<std::size_t>(pool.size()), std::vector<char>(X.columns, 0));
    pool.chunks(rows, 1024, [&](int thread, std::size_t first, std::size_t last) {
      auto& varies = differs[static_cast<std::size_t>(thread)];
      for (std::size_t row = first; row < last; ++row) {
        for (std::size_t column = 0; column < X.columns; ++column) {
          const std::uint64_t hash = hash_of(X(row, column));
          sums_[row] += hash;
          varies[column] |= weight[row] > 0 && hash != hash_of(X(one, column));
        }
      }
    });
    for (std::size_t column = 0; column < X.columns; ++column) {
      const bool varies =
          std::any_of(differs.begin(), differs.end(), [&](const auto& seen) { return seen[column] != 0; });
      if (!varies) constant_ += hash_of(X(one, column));
    }
    const std::uint64_t keep = drawn_up_to(present);
    sampled_ = true;
    sample_.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      if (weight[row] > 0 && mixed(sums_[row] - constant_) <= keep) sample_.push_back(row);
    }
  }

  // Bins the columns of X and keeps their codes from feature `first` on. Categories are counts, 0 for a column of
  // numbers.
  template <typename Real>
  void add_columns(const Matrix<Real>& X, std::size_t first, const std::vector<int>& categories,
                   const WholeWeights& weight, int max_bins, ThreadPool& pool) {
    std::vector<std::uint64_t>().swap(sums_);  // the sample is drawn
    const auto more = [&](std::size_t column) {
      DrawnValues drawn;
      for (std::size_t row = 0; row < rows; ++row) {
        const double value = static_cast<double>(X(row, column));
        if (!std::isnan(value) && weight[row] > 0) drawn.add(value, weight[row]);
      }
      return drawn;
    };
    auto bins = find_bins(X, categories, weight, sampled_ ? &sample_ : nullptr, sampled_, more, max_bins, pool);
    std::move(bins.begin(), bins.end(), columns.begin() + static_cast<std::ptrdiff_t>(first));
    encode(X, weight, order.data(), rows, 0, columns.data() + first, by_row.data() + first, features,
           by_column.data() + first * rows, rows, pool);
  }

  // Or else the bins come first, and then blocks of rows with all columns.
  void set_bins(std::vector<Column> bins) { columns = std::move(bins); }

  template <typename Real>
  void add_rows(const Matrix<Real>& X, std::size_t first, const WholeWeights& weight, ThreadPool& pool) {
    for (std::size_t k = 0; k + 1 < class_start.size(); ++k) {  // the rows of a block are neighbours in each class
      const auto place = [&](std::size_t row) {
        const std::uint32_t* begin = order.data() + class_start[k];
        const std::uint32_t* end = order.data() + class_start[k + 1];
        return static_cast<std::size_t>(std::lower_bound(begin, end, row) - order.data());
      };
      const std::size_t start = place(first);
      encode(X, weight, order.data() + start, place(first + X.rows) - start, first, columns.data(),
             by_row.data() + start * features, features, lean() ? nullptr : by_column.data() + start, rows, pool);
    }
  }

  const Code* row(std::size_t index) const { return by_row.data() + index * features; }
  bool lean() const { return by_column.empty(); }

  CodeColumn column(std::size_t feature) const {
    return lean() ? CodeColumn{by_row.data() + feature, features} : CodeColumn{by_column.data() + feature * rows, 1};
  }

  // Columns that are not constant: the others play no part, in no draw either.
  std::vector<std::uint32_t> varying() const {
    std::vector<std::uint32_t> found;
    for (std::size_t feature = 0; feature < features; ++feature) {
      if (columns[feature].varies) found.push_back(static_cast<std::uint32_t>(feature));
    }
    return found;
  }

  // A hash of each row's codes: what is drawn by it does not depend on the order of the rows, and copies go together.
  const std::vector<std::uint64_t>& hashes() {
    std::call_once(hashed_, [this] {
      hashes_.resize(rows);
      const auto chosen = varying();
      for (std::size_t index = 0; index < rows; ++index) {
        std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
        for (const std::uint32_t feature : chosen) hash = mixed(hash ^ row(index)[feature]);
        hashes_[index] = hash;
      }
    });
    return hashes_;
  }

  const std::size_t rows, features;
  std::vector<std::size_t> class_start;  // rows of class k are class_start[k] to class_start[k + 1]
  std::vector<std::uint32_t> order;      // where each row came from
  std::vector<Column> columns;
  std::vector<Code> by_row;     // for sums over all features of a row
  std::vector<Code> by_column;  // for one feature of many rows; empty if lean

 private:
  std::vector<std::uint64_t> sums_;  // of hashes per row, as long as columns are looked at
  std::uint64_t constant_ = 0;
  bool sampled_ = false;
  std::vector<std::size_t> sample_;
  std::once_flag hashed_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace untwist
