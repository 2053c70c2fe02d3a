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

// So many codes after the last one may be read, though they mean nothing: a block of rows is always read whole.
inline constexpr std::size_t kPadding = 256;

// A column has one feature of all rows.
struct CodeColumn {
  const Code* data;
  std::size_t stride;

  Code operator[](std::size_t row) const { return data[row * stride]; }
};

class Dataset {
 public:
  // Rows are ordered by their class, and within a class they keep their order. A lean dataset has its codes by row
  // only, which is half the memory.
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

  // Draws the sample of rows that places the thresholds, if there are many rows, as a Sketch does. All columns must be
  // observed before the first are added.
  template <typename Real>
  void observe(const Matrix<Real>& X, const WholeWeights& weight, ThreadPool& pool) {
    // So many rows are enough work to be worth a thread's while.
    constexpr std::size_t kBlockRows = 1024;
    std::size_t rows_with_weight = 0;
    std::size_t first_row = rows;
    for (std::size_t row = 0; row < rows; ++row) {
      rows_with_weight += weight[row] > 0;
      if (weight[row] > 0 && first_row == rows) first_row = row;
    }
    if (rows_with_weight <= kSampleRows) return;
    hash_sums_.resize(rows, 0);
    std::vector<std::vector<char>> differs(static_cast<std::size_t>(pool.size()), std::vector<char>(X.columns, 0));
    pool.chunks(rows, kBlockRows, [&](int thread, std::size_t first, std::size_t last) {
      auto& varies = differs[static_cast<std::size_t>(thread)];
      for (std::size_t row = first; row < last; ++row) {
        for (std::size_t column = 0; column < X.columns; ++column) {
          const std::uint64_t hash = hash_value(X(row, column));
          hash_sums_[row] += hash;
          varies[column] |= weight[row] > 0 && hash != hash_value(X(first_row, column));
        }
      }
    });
    for (std::size_t column = 0; column < X.columns; ++column) {
      const bool varies =
          std::any_of(differs.begin(), differs.end(), [&](const auto& seen) { return seen[column] != 0; });
      if (!varies) constant_sum_ += hash_value(X(first_row, column));
    }
    const std::uint64_t largest_hash = largest_sampled_hash(rows_with_weight);
    sampled_ = true;
    sample_.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      if (weight[row] > 0 && mix(hash_sums_[row] - constant_sum_) <= largest_hash) sample_.push_back(row);
    }
  }

  // Bins the columns of X and keeps their codes from feature `first` on. A column of numbers has 0 categories.
  template <typename Real>
  void add_columns(const Matrix<Real>& X, std::size_t first, const std::vector<int>& category_counts,
                   const WholeWeights& weight, int max_bins, ThreadPool& pool) {
    std::vector<std::uint64_t>().swap(hash_sums_);  // The sample is drawn, so their memory can go.
    const auto draw_values = [&](std::size_t column) {
      DrawnValues drawn;
      for (std::size_t row = 0; row < rows; ++row) {
        const double value = static_cast<double>(X(row, column));
        if (!std::isnan(value) && weight[row] > 0) drawn.add(value, weight[row]);
      }
      return drawn;
    };
    const BinningRows binning_rows{sampled_ ? &sample_ : nullptr, sampled_};
    auto bins = find_bins(X, category_counts, weight, binning_rows, draw_values, max_bins, pool);
    std::move(bins.begin(), bins.end(), columns.begin() + static_cast<std::ptrdiff_t>(first));
    const CodeTable codes{by_row.data() + first, features, by_column.data() + first * rows, rows};
    encode(X, weight, {order.data(), rows, 0}, columns.data() + first, codes, pool);
  }

  // Takes over bins that were found elsewhere, before the first rows are added.
  void set_bins(std::vector<Column> bins) { columns = std::move(bins); }

  // Keeps the codes of a block of rows with all columns, from row `first` on, by the bins that were set.
  template <typename Real>
  void add_rows(const Matrix<Real>& X, std::size_t first, const WholeWeights& weight, ThreadPool& pool) {
    for (std::size_t k = 0; k + 1 < class_start.size(); ++k) {
      // Within a class the rows of a block are neighbours, as rows keep their order there.
      const auto find_place = [&](std::size_t row) {
        const std::uint32_t* begin = order.data() + class_start[k];
        const std::uint32_t* end = order.data() + class_start[k + 1];
        return static_cast<std::size_t>(std::lower_bound(begin, end, row) - order.data());
      };
      const std::size_t start = find_place(first);
      const std::size_t end = find_place(first + X.rows);
      const CodeTable codes{by_row.data() + start * features, features, lean() ? nullptr : by_column.data() + start,
                            rows};
      encode(X, weight, {order.data() + start, end - start, first}, columns.data(), codes, pool);
    }
  }

  const Code* row(std::size_t index) const { return by_row.data() + index * features; }
  bool lean() const { return by_column.empty(); }

  CodeColumn column(std::size_t feature) const {
    return lean() ? CodeColumn{by_row.data() + feature, features} : CodeColumn{by_column.data() + feature * rows, 1};
  }

  // Lists the columns that are not constant. The others are neither split nor drawn.
  std::vector<std::uint32_t> varying_columns() const {
    std::vector<std::uint32_t> found;
    for (std::size_t feature = 0; feature < features; ++feature) {
      if (columns[feature].varies) found.push_back(static_cast<std::uint32_t>(feature));
    }
    return found;
  }

  // Returns a hash of each row's codes. What is drawn by it does not depend on the order of the rows, and copies go
  // together.
  const std::vector<std::uint64_t>& hashes() {
    std::call_once(hashed_, [this] {
      hashes_.resize(rows);
      const auto varying = varying_columns();
      for (std::size_t index = 0; index < rows; ++index) {
        std::uint64_t hash = kGoldenRatio;
        for (const std::uint32_t feature : varying) hash = mix(hash ^ row(index)[feature]);
        hashes_[index] = hash;
      }
    });
    return hashes_;
  }

  const std::size_t rows, features;
  std::vector<std::size_t> class_start;  // The rows of class k are class_start[k] to class_start[k + 1].
  std::vector<std::uint32_t> order;      // A row had this place in the data that was given.
  std::vector<Column> columns;
  std::vector<Code> by_row;     // These codes serve sums over all features of a row.
  std::vector<Code> by_column;  // These serve one feature of many rows. They are empty if lean.

 private:
  std::vector<std::uint64_t> hash_sums_;  // A row has the sum of the hashes of its values.
  std::uint64_t constant_sum_ = 0;        // Constant columns add this to every hash sum.
  bool sampled_ = false;
  std::vector<std::size_t> sample_;
  std::once_flag hashed_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace untwist
