// Binning: every column becomes one-byte codes. A column with few distinct values gets one bin per value, with
// thresholds half way between neighbours, so that all splits are exact. Any other column gets bins of about equal
// sample weight. Missing values have a bin of their own, the last one. A categorical column comes as the numbers of its
// categories, which are its codes. Nothing depends on the order of the rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "column_values.hpp"
#include "matrix.hpp"
#include "sample_weights.hpp"
#include "threads.hpp"
#include "vectorised.hpp"

namespace untwist {

using Code = std::uint8_t;

// A code is a byte, so a column has at most this many bins, that of missing values included.
inline constexpr std::size_t kBins = 256;

// A column has at most this many bins of known values: one code is left for missing values.
inline constexpr int kMaxBins = 255;

// A column has at most this many thresholds, one less than bins of known values.
inline constexpr std::size_t kMaxThresholds = 254;

// A column has at most this many categories. The package keeps as many and counts rarer ones as missing.
inline constexpr int kMaxCategories = 254;

struct Column {
  // The code of a value is the number of thresholds below it: value <= thresholds[b] means code <= b.
  std::vector<double> thresholds;

  // A column of numbers has 0 categories.
  int category_count = 0;

  // A value is missing in at least one row.
  bool missing = false;

  // Rows with a weight differ.
  bool varies = false;

  // The flags below tell what kinds of values the rows so far have shown.
  unsigned char seen = 0;
  static constexpr unsigned char kMissing = 1;
  static constexpr unsigned char kMissingWithWeight = 2;
  static constexpr unsigned char kKnownWithWeight = 4;

  // Counts the bins of known values.
  int values() const { return category_count > 0 ? category_count : static_cast<int>(thresholds.size()) + 1; }
  Code missing_code() const { return static_cast<Code>(values()); }
  int bins() const { return values() + (missing ? 1 : 0); }
};

// Returns the middle between two neighbours, but never the upper one.
template <typename Real>
double midpoint(Real low, Real high) {
  const double middle = 0.5 * static_cast<double>(low) + 0.5 * static_cast<double>(high);
  return middle < static_cast<double>(high) ? middle : static_cast<double>(low);
}

// Places thresholds between distinct values in order: one between each two if there are few, else such that bins have
// about equal weight. A value that would fill a bin has one to itself. Weights are whole numbers, so their order cannot
// matter.
template <typename Real, typename Key>
std::vector<double> place_thresholds(const std::vector<WeightedKey<Key>>& values, int max_bins) {
  const std::size_t distinct = values.size();
  std::uint64_t bins_left = static_cast<std::uint64_t>(max_bins);
  const bool few = distinct <= bins_left;
  std::uint64_t total = 0;
  for (const auto& entry : values) total += entry.weight;
  const std::uint64_t bin_weight = total / static_cast<std::uint64_t>(max_bins);
  const auto is_heavy = [&](std::size_t i) { return values[i].weight >= bin_weight; };
  std::uint64_t light_weight_left = 0;
  std::uint64_t heavy_values_left = 0;
  for (std::size_t i = 0; i < distinct; ++i) {
    if (is_heavy(i)) {
      ++heavy_values_left;
    } else {
      light_weight_left += values[i].weight;
    }
  }
  std::vector<double> thresholds;
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i + 1 < distinct && (few || bins_left > 1); ++i) {
    filled += values[i].weight;
    const std::uint64_t light_bins_left = bins_left > heavy_values_left ? bins_left - heavy_values_left : 1;
    const bool has_its_share = filled >= light_weight_left / light_bins_left;
    const bool one_bin_per_value = few || distinct - i <= bins_left;
    if (!one_bin_per_value && !is_heavy(i) && !is_heavy(i + 1) && !has_its_share) continue;
    thresholds.push_back(midpoint(from_key<Real>(values[i].key), from_key<Real>(values[i + 1].key)));
    if (is_heavy(i)) {
      --heavy_values_left;
    } else {
      light_weight_left -= filled;
    }
    filled = 0;
    --bins_left;
  }
  return thresholds;
}

// These rows place thresholds.
struct BinningRows {
  const std::vector<std::size_t>* chosen = nullptr;  // Null means all rows.
  bool are_sample = false;                           // There are more rows than these.
};

// Finds the bins of all columns. Rows of weight 0 have no say. Where the rows are a sample, a column that shows few
// values in it is asked for more by `draw_values(column)`, which draws from the values of all rows.
template <typename Real, typename Weight, typename DrawValues>
std::vector<Column> find_bins(const Matrix<Real>& X, const std::vector<int>& category_counts, const Weight& weight,
                              const BinningRows& rows, const DrawValues& draw_values, int max_bins, ThreadPool& pool) {
  using Key = typename Ordered<Real>::Key;
  const std::size_t row_count = rows.chosen == nullptr ? X.rows : rows.chosen->size();
  std::vector<Column> columns(X.columns);
  pool.chunks(X.columns, 1, [&](int, std::size_t first, std::size_t last) {
    std::vector<WeightedKey<Key>> values, spare;
    for (std::size_t column = first; column < last; ++column) {
      columns[column].category_count = category_counts[column];
      columns[column].varies = category_counts[column] > 1;
      if (category_counts[column] > 0) continue;
      values.clear();
      for (std::size_t i = 0; i < row_count; ++i) {
        const std::size_t row = rows.chosen == nullptr ? i : (*rows.chosen)[i];
        const Real value = X(row, column);
        if (!std::isnan(value) && weight[row] > 0) values.push_back({to_key(value), weight[row]});
      }
      radix_sort(values, spare);
      merge_equal(values);
      const bool shows_few_values = values.size() <= static_cast<std::size_t>(max_bins);
      if (rows.are_sample && shows_few_values) join<Real>(values, draw_values(column));
      columns[column].thresholds = place_thresholds<Real>(values, max_bins);
      columns[column].varies = values.size() > 1;
    }
  });
  return columns;
}

// Makes a table that halving can search of thresholds in order: infinities pad it to 2^k - 1 entries.
inline std::vector<double> pad_thresholds(std::vector<double> thresholds) {
  std::size_t size = 1;
  while (size < thresholds.size()) size = 2 * size + 1;
  thresholds.resize(size, std::numeric_limits<double>::infinity());
  return thresholds;
}

// Finds the codes of values, which is the number of thresholds below each, by halving a padded table of `size` entries.
UNTWIST_VECTORISED inline void find_codes(const double* __restrict table, int size, const double* __restrict value,
                                          std::size_t count, std::int32_t* __restrict code) {
  for (std::size_t i = 0; i < count; ++i) code[i] = 0;
  for (int half = (size + 1) / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < count; ++i) code[i] += table[code[i] + half - 1] < value[i] ? half : 0;
  }
}

// Tells which rows of a block become codes, and in which order: entry i is row order[i] - first_row of the block.
struct RowOrder {
  const std::uint32_t* order;
  std::size_t rows;
  std::size_t first_row;
};

// Codes go to rows of `width` codes and to columns of `length` codes, unless one of these is null.
struct CodeTable {
  Code* by_row;
  std::size_t width;
  Code* by_column = nullptr;
  std::size_t length = 0;
  std::optional<Code> missing_code = {};  // Missing values have this code in all columns. Nothing: that of the column.
};

// Writes the codes of rows, and notes in `columns` what kinds of values they have. A category that a column does not
// know counts as missing.
template <typename Real>
void encode(const Matrix<Real>& X, const WholeWeights& weight, const RowOrder& rows, Column* columns,
            const CodeTable& codes, ThreadPool& pool) {
  // So many rows at a time keep a column's values and codes in the first cache.
  constexpr std::size_t kBlockRows = 256;
  std::vector<std::vector<double>> tables(X.columns);
  for (std::size_t column = 0; column < X.columns; ++column) {
    tables[column] = pad_thresholds(columns[column].thresholds);
  }
  std::vector<std::vector<unsigned char>> seen(static_cast<std::size_t>(pool.size()),
                                               std::vector<unsigned char>(X.columns, 0));
  pool.chunks(rows.rows, kBlockRows, [&](int thread, std::size_t first, std::size_t last) {
    std::array<double, kBlockRows> value;
    std::array<std::int32_t, kBlockRows> known_code;
    std::array<Code, kBlockRows> code;
    for (std::size_t start = first; start < last; start += kBlockRows) {
      const std::size_t count = std::min(kBlockRows, last - start);
      const std::uint32_t* order = rows.order + start;
      for (std::size_t column = 0; column < X.columns; ++column) {
        for (std::size_t i = 0; i < count; ++i) value[i] = static_cast<double>(X(order[i] - rows.first_row, column));
        const int category_count = columns[column].category_count;
        if (category_count > 0) {
          for (std::size_t i = 0; i < count; ++i) {
            const bool known = value[i] >= 0.0 && value[i] < category_count && value[i] == std::floor(value[i]);
            if (!known) value[i] = std::numeric_limits<double>::quiet_NaN();
            known_code[i] = known ? static_cast<std::int32_t>(value[i]) : 0;
          }
        } else {
          const auto& table = tables[column];
          find_codes(table.data(), static_cast<int>(table.size()), value.data(), count, known_code.data());
        }
        const Code missing_code = codes.missing_code.value_or(columns[column].missing_code());
        unsigned char kinds = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const bool missing = std::isnan(value[i]);
          const bool has_weight = weight[order[i] - rows.first_row] > 0;
          const int with_weight = missing ? Column::kMissingWithWeight : Column::kKnownWithWeight;
          kinds = static_cast<unsigned char>(kinds | (missing ? Column::kMissing : 0) | (has_weight ? with_weight : 0));
          code[i] = missing ? missing_code : static_cast<Code>(known_code[i]);
        }
        if (codes.by_row != nullptr) {
          for (std::size_t i = 0; i < count; ++i) codes.by_row[(start + i) * codes.width + column] = code[i];
        }
        if (codes.by_column != nullptr) {
          std::copy_n(code.begin(), count, codes.by_column + column * codes.length + start);
        }
        seen[static_cast<std::size_t>(thread)][column] |= kinds;
      }
    }
  });
  for (std::size_t i = 0; i < X.columns; ++i) {
    Column& column = columns[i];
    for (const auto& kinds : seen) column.seen |= kinds[i];
    column.missing = (column.seen & Column::kMissing) != 0;
    if ((column.seen & Column::kMissingWithWeight) && (column.seen & Column::kKnownWithWeight)) column.varies = true;
  }
}

}  // namespace untwist
