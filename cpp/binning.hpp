// Binning: every column becomes one-byte codes. A column with few distinct values gets one bin per value (exact
// splits, thresholds half way between neighbours); any other gets bins of about equal sample weight. Missing values have a
// bin of their own, the last one. Nothing depends on the order of the rows.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "threads.hpp"

namespace untwist {

using Code = std::uint8_t;

struct Column {
  std::vector<double> thresholds;  // code = number of thresholds below the value: value <= thresholds[b] is bin <= b
  bool missing = false;            // whether a missing value was seen

  int values() const { return static_cast<int>(thresholds.size()) + 1; }
  Code missing_code() const { return static_cast<Code>(values()); }
  int bins() const { return values() + (missing ? 1 : 0); }
};

template <typename Real>
class Matrix {  // a read-only view with any strides
 public:
  Matrix(const Real* data, std::size_t rows, std::size_t columns, std::ptrdiff_t row_stride, std::ptrdiff_t column_stride)
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

// Half way between two neighbours, but never above the upper one.
template <typename Real>
double between(Real low, Real high) {
  const double middle = 0.5 * static_cast<double>(low) + 0.5 * static_cast<double>(high);
  return middle < static_cast<double>(high) ? middle : static_cast<double>(low);
}

// The bins of one column from its values (NaN already removed) with their weights, which are whole numbers so that their order cannot matter.
template <typename Real>
std::vector<double> thresholds_of(std::vector<std::pair<Real, std::uint64_t>>& values, int max_bins) {
  std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  std::size_t distinct = 0;
  for (const auto& [value, weight] : values) {
    if (distinct > 0 && values[distinct - 1].first == value) {
      values[distinct - 1].second += weight;
    } else {
      values[distinct++] = {value, weight};
    }
  }
  values.resize(distinct);
  std::vector<double> thresholds;
  if (distinct <= static_cast<std::size_t>(max_bins)) {
    for (std::size_t i = 1; i < distinct; ++i) thresholds.push_back(between(values[i - 1].first, values[i].first));
    return thresholds;
  }
  std::uint64_t left = 0;
  for (const auto& entry : values) left += entry.second;
  std::uint64_t bins_left = static_cast<std::uint64_t>(max_bins);
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i + 1 < distinct && bins_left > 1; ++i) {
    filled += values[i].second;
    // Close the bin once it holds its share of what is left, or once every value left can have a bin of its own.
    if (filled >= left / bins_left || distinct - i <= bins_left) {
      thresholds.push_back(between(values[i].first, values[i + 1].first));
      left -= filled;
      filled = 0;
      --bins_left;
    }
  }
  return thresholds;
}

// A hash of a row's contents, so that samples of rows do not depend on their order; equal rows go together.
template <typename Real>
std::uint64_t row_hash(const Matrix<Real>& X, std::size_t row) {
  std::uint64_t hash = 0x9E3779B97F4A7C15ULL;
  for (std::size_t column = 0; column < X.columns; ++column) {
    const double value = static_cast<double>(X(row, column)) + 0.0;  // -0.0 and 0.0 are one value
    std::uint64_t bits = 0;
    if (!std::isnan(value)) std::memcpy(&bits, &value, sizeof bits);
    hash = (hash ^ bits) * 0xBF58476D1CE4E5B9ULL;
    hash ^= hash >> 29;
  }
  hash *= 0x94D049BB133111EBULL;
  return hash ^ (hash >> 32);
}

template <typename Real>
std::vector<Column> find_bins(const Matrix<Real>& X, const std::uint64_t* weight, int max_bins, ThreadPool& pool) {
  constexpr std::size_t kSample = 200000;  // more rows than this are sampled to place the thresholds
  std::vector<std::size_t> rows;
  rows.reserve(std::min(X.rows, 2 * kSample));
  const std::uint64_t keep = X.rows <= kSample ? ~0ULL : ~0ULL / X.rows * kSample;
  for (std::size_t row = 0; row < X.rows; ++row) {
    if (keep == ~0ULL || row_hash(X, row) <= keep) rows.push_back(row);
  }
  std::vector<Column> columns(X.columns);
  pool.chunks(X.columns, 1, [&](int, std::size_t first, std::size_t last) {
    std::vector<std::pair<Real, std::uint64_t>> values;
    for (std::size_t column = first; column < last; ++column) {
      values.clear();
      for (const std::size_t row : rows) {
        const Real value = X(row, column);
        if (!std::isnan(value)) values.emplace_back(value, weight[row]);
      }
      columns[column].thresholds = thresholds_of(values, max_bins);
    }
  });
  return columns;
}

// The code of a value: the number of thresholds below it, by a search without branches.
inline Code code_of(const std::vector<double>& thresholds, double value) {
  const double* first = thresholds.data();
  std::size_t length = thresholds.size();
  while (length > 0) {
    const std::size_t half = (length + 1) / 2;
    first += first[half - 1] < value ? half : 0;
    length -= half;
  }
  return static_cast<Code>(first - thresholds.data());
}

// Codes of the rows of X in the given order, row by row; notes in `columns` which have missing values.
template <typename Real>
void encode(const Matrix<Real>& X, const std::vector<std::size_t>& order, std::vector<Column>& columns, Code* codes,
            ThreadPool& pool) {
  std::vector<std::vector<char>> missing(static_cast<std::size_t>(pool.size()), std::vector<char>(X.columns, 0));
  pool.chunks(order.size(), 512, [&](int thread, std::size_t first, std::size_t last) {
    for (std::size_t column = 0; column < X.columns; ++column) {
      const Column& bins = columns[column];
      for (std::size_t row = first; row < last; ++row) {
        const double value = static_cast<double>(X(order[row], column));
        Code code = bins.missing_code();
        if (std::isnan(value)) {
          missing[static_cast<std::size_t>(thread)][column] = 1;
        } else {
          code = code_of(bins.thresholds, value);
        }
        codes[row * X.columns + column] = code;
      }
    }
  });
  for (const auto& seen : missing) {
    for (std::size_t column = 0; column < X.columns; ++column) {
      if (seen[column]) columns[column].missing = true;
    }
  }
}

}  // namespace untwist
