// Binning: every column becomes one-byte codes. A column with few distinct values gets one bin per value (exact
// splits, thresholds half way between neighbours); any other gets bins of about equal sample weight. Missing values have a
// bin of their own, the last one. A categorical column comes as the numbers of its categories, which are its codes. Nothing
// depends on the order of the rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <utility>
#include <vector>

#include "threads.hpp"
#include "vectors.hpp"

namespace untwist {

using Code = std::uint8_t;

struct Column {
  std::vector<double> thresholds;  // code = number of thresholds below the value: value <= thresholds[b] is bin <= b
  int categories = 0;              // of a categorical column, whose codes are its categories; 0 for numbers
  bool missing = false;            // whether a value is missing in any row
  bool varies = false;             // whether rows with a weight differ

  int values() const { return categories > 0 ? categories : static_cast<int>(thresholds.size()) + 1; }
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

// Floating-point numbers as whole ones of the same order, and back. -0.0 counts as 0.0.
template <typename Real>
struct Ordered;
template <>
struct Ordered<float> {
  using Key = std::uint32_t;
};
template <>
struct Ordered<double> {
  using Key = std::uint64_t;
};

template <typename Real, typename Key = typename Ordered<Real>::Key>
Key to_key(Real value) {
  const Real plain = value + Real{0};
  Key bits;
  std::memcpy(&bits, &plain, sizeof bits);
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  return bits & sign ? ~bits : bits | sign;
}

template <typename Real, typename Key = typename Ordered<Real>::Key>
Real from_key(Key key) {
  constexpr Key sign = Key{1} << (8 * sizeof(Key) - 1);
  const Key bits = key & sign ? key ^ sign : ~key;
  Real value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

template <typename Key>
struct Weighted {
  Key key;
  std::uint64_t weight;
};

// Sorts by key, eleven bits at a time from the lowest up; digits that are all alike cost one look.
template <typename Key>
void radix_sort(std::vector<Weighted<Key>>& entries, std::vector<Weighted<Key>>& spare) {
  constexpr int kDigit = 11;
  constexpr std::size_t kValues = std::size_t{1} << kDigit;
  spare.resize(entries.size());
  for (int shift = 0; shift < static_cast<int>(8 * sizeof(Key)); shift += kDigit) {
    std::array<std::size_t, kValues> start{};
    for (const auto& entry : entries) ++start[entry.key >> shift & (kValues - 1)];
    if (std::find(start.begin(), start.end(), entries.size()) != start.end()) continue;
    std::size_t sum = 0;
    for (auto& count : start) sum += std::exchange(count, sum);
    for (const auto& entry : entries) spare[start[entry.key >> shift & (kValues - 1)]++] = entry;
    entries.swap(spare);
  }
}

// Entries with the same key become one.
template <typename Key>
void merge_equal(std::vector<Weighted<Key>>& entries) {
  std::size_t distinct = 0;
  for (const auto& entry : entries) {
    if (distinct > 0 && entries[distinct - 1].key == entry.key) {
      entries[distinct - 1].weight += entry.weight;
    } else {
      entries[distinct++] = entry;
    }
  }
  entries.resize(distinct);
}

// Few distinct keys with their weights, for columns too long to sort.
template <typename Key>
class FewValues {
 public:
  explicit FewValues(std::size_t most) : most_(most) {}

  // False if there are too many.
  bool add(Key key, std::uint64_t weight) {
    std::size_t slot = static_cast<std::size_t>((key ^ (key >> 15)) * Key{0x9E3779B1} >> (8 * sizeof(Key) - 10));
    while (slots_[slot].weight > 0 && slots_[slot].key != key) slot = (slot + 1) % slots_.size();
    count_ += slots_[slot].weight == 0;
    slots_[slot].key = key;
    slots_[slot].weight += weight;
    return count_ <= most_;
  }

  std::vector<Weighted<Key>> sorted() const {
    std::vector<Weighted<Key>> values;
    for (const auto& slot : slots_) {
      if (slot.weight > 0) values.push_back(slot);
    }
    std::sort(values.begin(), values.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
    return values;
  }

 private:
  std::array<Weighted<Key>, 1024> slots_{};
  std::size_t most_, count_ = 0;
};

// Thresholds between distinct values in order: one between each two if there are few, else bins of about equal weight,
// where a value that would fill a bin has one to itself. Weights are whole numbers: their order cannot matter.
template <typename Real, typename Key>
std::vector<double> thresholds_of(const std::vector<Weighted<Key>>& values, int max_bins) {
  const std::size_t distinct = values.size();
  std::uint64_t bins_left = static_cast<std::uint64_t>(max_bins);
  const bool few = distinct <= bins_left;
  std::uint64_t total = 0;
  for (const auto& entry : values) total += entry.weight;
  const auto heavy = [&](std::size_t i) { return values[i].weight >= total / static_cast<std::uint64_t>(max_bins); };
  std::uint64_t light = 0;  // weight of the light values left, and number of the heavy ones
  std::uint64_t heavies = 0;
  for (std::size_t i = 0; i < distinct; ++i) (heavy(i) ? heavies : light) += heavy(i) ? 1 : values[i].weight;
  std::vector<double> thresholds;
  std::uint64_t filled = 0;
  for (std::size_t i = 0; i + 1 < distinct && (few || bins_left > 1); ++i) {
    filled += values[i].weight;
    const std::uint64_t share = light / (bins_left > heavies ? bins_left - heavies : 1);
    if (!few && !heavy(i) && !heavy(i + 1) && filled < share && distinct - i > bins_left) continue;
    thresholds.push_back(between(from_key<Real>(values[i].key), from_key<Real>(values[i + 1].key)));
    if (heavy(i)) {
      --heavies;
    } else {
      light -= filled;
    }
    filled = 0;
    --bins_left;
  }
  return thresholds;
}

// The power of two at or just above the largest weight, as an exponent: a weight divided by it is still exact.
inline int scale_of(const double* weight, std::size_t count) {
  int exponent = 0;
  const double fraction = std::frexp(*std::max_element(weight, weight + count), &exponent);
  return fraction == 0.5 ? exponent - 1 : exponent;
}

// Sample weights as whole numbers, so that their sums do not depend on any order; all alike where there are none.
class WholeWeights {
 public:
  WholeWeights() = default;

  // In units of 2^-32 of their scale.
  WholeWeights(const double* weight, std::size_t count) {
    const int scale = count == 0 ? 0 : scale_of(weight, count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto whole = static_cast<std::uint64_t>(std::llround(std::ldexp(weight[i], 32 - scale)));
      weight_.push_back(weight[i] > 0.0 ? std::max<std::uint64_t>(whole, 1) : 0);  // a row with a weight is there
    }
  }

  std::uint64_t operator[](std::size_t row) const { return weight_.empty() ? std::uint64_t{1} << 32 : weight_[row]; }

 private:
  std::vector<std::uint64_t> weight_;
};

// The bins of all columns; rows of weight 0 have no say. Given a sample of the rows, thresholds are placed by it, but a column
// that shows few values in the sample is looked at in full, so that all of its values count.
template <typename Real>
std::vector<Column> find_bins(const Matrix<Real>& X, const std::vector<int>& categories, const WholeWeights& weight,
                              const std::vector<std::size_t>& sample, int max_bins, ThreadPool& pool) {
  using Key = typename Ordered<Real>::Key;
  std::vector<Column> columns(X.columns);
  pool.chunks(X.columns, 1, [&](int, std::size_t first, std::size_t last) {
    std::vector<Weighted<Key>> values, spare;
    const auto collect = [&](std::size_t column, std::size_t count, const std::size_t* chosen) {
      values.clear();
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t row = chosen == nullptr ? i : chosen[i];
        const Real value = X(row, column);
        if (!std::isnan(value) && weight[row] > 0) values.push_back({to_key(value), weight[row]});
      }
      radix_sort(values, spare);
      merge_equal(values);
    };
    const auto count = [&](std::size_t column) {
      FewValues<Key> few(static_cast<std::size_t>(max_bins));
      for (std::size_t row = 0; row < X.rows; ++row) {
        const Real value = X(row, column);
        if (!std::isnan(value) && weight[row] > 0 && !few.add(to_key(value), weight[row])) return false;
      }
      values = few.sorted();
      return true;
    };
    for (std::size_t column = first; column < last; ++column) {
      columns[column].categories = categories[column];
      columns[column].varies = categories[column] > 1;
      if (categories[column] > 0) continue;
      if (sample.empty()) {
        collect(column, X.rows, nullptr);
      } else {
        collect(column, sample.size(), sample.data());
        if (values.size() <= static_cast<std::size_t>(max_bins) && !count(column)) collect(column, X.rows, nullptr);
      }
      columns[column].thresholds = thresholds_of<Real>(values, max_bins);
      columns[column].varies = values.size() > 1;
    }
  });
  return columns;
}

// Codes of values: the number of thresholds below each, by halving a table padded to `size` = 2^k - 1 entries.
UNTWIST_VECTORISED inline void find_codes(const double* __restrict table, int size, const double* __restrict value,
                                          std::size_t count, std::int32_t* __restrict code) {
  for (std::size_t i = 0; i < count; ++i) code[i] = 0;
  for (int half = (size + 1) / 2; half > 0; half /= 2) {
    for (std::size_t i = 0; i < count; ++i) code[i] += table[code[i] + half - 1] < value[i] ? half : 0;
  }
}

// Codes of the rows of X in the given order, as rows of `width` codes and as columns; notes in `columns` which have missing
// values. A category that a column does not know counts as missing.
template <typename Real>
void encode(const Matrix<Real>& X, const WholeWeights& weight, const std::vector<std::uint32_t>& order, Column* columns,
            Code* by_row, std::size_t width, Code* by_column, ThreadPool& pool) {
  enum : char { kMissing = 1, kMissingWithWeight = 2, kKnownWithWeight = 4 };
  std::vector<std::vector<double>> tables(X.columns);
  for (std::size_t column = 0; column < X.columns; ++column) {
    tables[column] = columns[column].thresholds;
    std::size_t size = 1;
    while (size < tables[column].size()) size = 2 * size + 1;
    tables[column].resize(size, std::numeric_limits<double>::infinity());
  }
  constexpr std::size_t kBlock = 256;
  std::vector<std::vector<char>> missing(static_cast<std::size_t>(pool.size()), std::vector<char>(X.columns, 0));
  pool.chunks(order.size(), kBlock, [&](int thread, std::size_t first, std::size_t last) {
    std::array<double, kBlock> value;
    std::array<std::int32_t, kBlock> code;
    for (std::size_t start = first; start < last; start += kBlock) {
      const std::size_t count = std::min(kBlock, last - start);
      for (std::size_t column = 0; column < X.columns; ++column) {
        for (std::size_t i = 0; i < count; ++i) value[i] = static_cast<double>(X(order[start + i], column));
        const int categories = columns[column].categories;
        if (categories > 0) {
          for (std::size_t i = 0; i < count; ++i) {
            const bool known = value[i] >= 0.0 && value[i] < categories && value[i] == std::floor(value[i]);
            if (!known) value[i] = std::numeric_limits<double>::quiet_NaN();
            code[i] = std::isnan(value[i]) ? 0 : static_cast<std::int32_t>(value[i]);
          }
        } else {
          find_codes(tables[column].data(), static_cast<int>(tables[column].size()), value.data(), count, code.data());
        }
        const Code absent = columns[column].missing_code();
        char any = 0;
        Code* run = by_column + column * order.size() + start;
        for (std::size_t i = 0; i < count; ++i) {
          const bool lost = std::isnan(value[i]);
          const int with_weight = weight[order[start + i]] == 0 ? 0 : lost ? kMissingWithWeight : kKnownWithWeight;
          any = static_cast<char>(any | (lost ? kMissing : 0) | with_weight);
          run[i] = lost ? absent : static_cast<Code>(code[i]);
        }
        for (std::size_t i = 0; i < count; ++i) by_row[(start + i) * width + column] = run[i];
        missing[static_cast<std::size_t>(thread)][column] |= any;
      }
    }
  });
  for (const auto& seen : missing) {
    for (std::size_t column = 0; column < X.columns; ++column) missing[0][column] |= seen[column];
  }
  for (std::size_t column = 0; column < X.columns; ++column) {
    const char seen = missing[0][column];
    columns[column].missing = (seen & kMissing) != 0;
    if ((seen & kMissingWithWeight) && (seen & kKnownWithWeight)) columns[column].varies = true;
  }
}

}  // namespace untwist
