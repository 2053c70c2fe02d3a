// Binning: every column becomes one-byte codes. A column with few distinct values gets one bin per value (exact
// splits, thresholds half way between neighbours); any other gets bins of about equal sample weight. Missing values
// have a bin of their own, the last one. A categorical column comes as the numbers of its categories, which are its
// codes. Nothing depends on the order of the rows.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>
#include <utility>
#include <vector>

#include "hashing.hpp"
#include "threads.hpp"
#include "vectors.hpp"

namespace untwist {

using Code = std::uint8_t;

struct Column {
  std::vector<double> thresholds;  // code = number of thresholds below the value: value <= thresholds[b] is bin <= b
  int categories = 0;              // of a categorical column, whose codes are its categories; 0 for numbers
  bool missing = false;            // whether a value is missing in any row
  bool varies = false;             // whether rows with a weight differ
  unsigned char seen = 0;          // what kinds of values its blocks of rows have shown

  int values() const { return categories > 0 ? categories : static_cast<int>(thresholds.size()) + 1; }
  Code missing_code() const { return static_cast<Code>(values()); }
  int bins() const { return values() + (missing ? 1 : 0); }
};

template <typename Real>
class Matrix {  // a read-only view with any strides
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

// Up to kMost distinct values of a column with all of their weight, for columns too long to sort: all of them if they
// are few, else those with the smallest hashes. Neither the order of the rows nor that of merging matters, as none of
// these is ever crowded out.
class DrawnValues {
 public:
  using Entry = Weighted<std::uint64_t>;
  static constexpr std::size_t kMost = 2048;

  void add(double value, std::uint64_t weight) {
    const std::uint64_t hash = hash_of(value);
    if (hash > bound_) return;
    Entry& slot = slot_of(hash, to_key(value));
    slot.key = to_key(value);
    count_ += slot.weight == 0;
    slot.weight += weight;
    if (2 * count_ >= slots_.size()) make_room();
  }

  // By value.
  std::vector<Entry> sorted() const {
    auto values = drawn();
    std::sort(values.begin(), values.end(), [](const Entry& a, const Entry& b) { return a.key < b.key; });
    return values;
  }

 private:
  static std::uint64_t hash_of_key(std::uint64_t key) { return hash_of(from_key<double>(key)); }

  Entry& slot_of(std::uint64_t hash, std::uint64_t key) {
    std::size_t slot = hash >> 20 & (slots_.size() - 1);  // the highest bits are low in all that stay
    while (slots_[slot].weight > 0 && slots_[slot].key != key) slot = (slot + 1) & (slots_.size() - 1);
    return slots_[slot];
  }

  std::vector<Entry> drawn() const {
    std::vector<Entry> values;
    std::copy_if(slots_.begin(), slots_.end(), std::back_inserter(values),
                 [](const Entry& slot) { return slot.weight > 0; });
    if (values.size() <= kMost) return values;
    std::nth_element(values.begin(), values.begin() + (kMost - 1), values.end(),
                     [](const Entry& a, const Entry& b) { return hash_of_key(a.key) < hash_of_key(b.key); });
    values.resize(kMost);
    return values;
  }

  void make_room() {
    const auto values = drawn();
    if (values.size() < count_) bound_ = hash_of_key(values.back().key);
    slots_.assign(values.size() < count_ ? slots_.size() : 2 * slots_.size(), {});
    for (const Entry& entry : values) slot_of(hash_of_key(entry.key), entry.key) = entry;
    count_ = values.size();
  }

  std::vector<Entry> slots_ = std::vector<Entry>(64);
  std::size_t count_ = 0;
  std::uint64_t bound_ = ~std::uint64_t{0};
};

// Values in order with those that were drawn, whose weight is complete.
template <typename Real, typename Key>
void join(std::vector<Weighted<Key>>& values, const DrawnValues& drawn) {
  std::vector<Weighted<Key>> all;
  for (const auto& entry : drawn.sorted())
    all.push_back({to_key(static_cast<Real>(from_key<double>(entry.key))), entry.weight});
  all.insert(all.end(), values.begin(), values.end());
  std::stable_sort(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key < b.key; });
  all.erase(std::unique(all.begin(), all.end(), [](const auto& a, const auto& b) { return a.key == b.key; }),
            all.end());
  values = std::move(all);
}

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
inline int scale_of(double largest) {
  int exponent = 0;
  const double fraction = std::frexp(largest, &exponent);
  return fraction == 0.5 ? exponent - 1 : exponent;
}

inline double largest_of(const double* weight, std::size_t count) {
  return count == 0 ? 0.0 : *std::max_element(weight, weight + count);
}

// Sample weights as whole numbers, so that their sums do not depend on any order; all alike where there are none.
class WholeWeights {
 public:
  WholeWeights() = default;
  WholeWeights(const double* weight, std::size_t count) : WholeWeights(weight, count, largest_of(weight, count)) {}

  // In units of 2^-32 of the scale of the largest, which may be in another block of rows.
  WholeWeights(const double* weight, std::size_t count, double largest) {
    const int scale = scale_of(largest);
    weight_.reserve(count);
    for (std::size_t i = 0; i < count; ++i) {
      const auto whole = static_cast<std::uint64_t>(std::llround(std::ldexp(weight[i], 32 - scale)));
      weight_.push_back(weight[i] > 0.0 ? std::max<std::uint64_t>(whole, 1) : 0);  // a row with a weight is there
    }
  }

  std::uint64_t operator[](std::size_t row) const { return weight_.empty() ? std::uint64_t{1} << 32 : weight_[row]; }

 private:
  std::vector<std::uint64_t> weight_;
};

// The bins of all columns by the `chosen` rows, nullptr for all; rows of weight 0 have no say. If these are a sample, a
// column that shows few values in it is asked for more by `more(column)`, which draws of all its values.
template <typename Real, typename Weight, typename More>
std::vector<Column> find_bins(const Matrix<Real>& X, const std::vector<int>& categories, const Weight& weight,
                              const std::vector<std::size_t>* chosen, bool sampled, const More& more, int max_bins,
                              ThreadPool& pool) {
  using Key = typename Ordered<Real>::Key;
  std::vector<Column> columns(X.columns);
  pool.chunks(X.columns, 1, [&](int, std::size_t first, std::size_t last) {
    std::vector<Weighted<Key>> values, spare;
    for (std::size_t column = first; column < last; ++column) {
      columns[column].categories = categories[column];
      columns[column].varies = categories[column] > 1;
      if (categories[column] > 0) continue;
      values.clear();
      for (std::size_t i = 0; i < (chosen == nullptr ? X.rows : chosen->size()); ++i) {
        const std::size_t row = chosen == nullptr ? i : (*chosen)[i];
        const Real value = X(row, column);
        if (!std::isnan(value) && weight[row] > 0) values.push_back({to_key(value), weight[row]});
      }
      radix_sort(values, spare);
      merge_equal(values);
      if (sampled && values.size() <= static_cast<std::size_t>(max_bins)) join<Real>(values, more(column));
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

// Codes of those rows of a block that `order` tells, the block's first row being `first_row`: as rows of `width` codes,
// and as columns of `length`, if these are wanted. Notes in `columns` which have missing values. A category that a
// column does not know counts as missing.
template <typename Real>
void encode(const Matrix<Real>& X, const WholeWeights& weight, const std::uint32_t* order, std::size_t rows,
            std::size_t first_row, Column* columns, Code* by_row, std::size_t width, Code* by_column,
            std::size_t length, ThreadPool& pool) {
  enum : unsigned char { kMissing = 1, kMissingWithWeight = 2, kKnownWithWeight = 4 };
  std::vector<std::vector<double>> tables(X.columns);
  for (std::size_t column = 0; column < X.columns; ++column) {
    tables[column] = columns[column].thresholds;
    std::size_t size = 1;
    while (size < tables[column].size()) size = 2 * size + 1;
    tables[column].resize(size, std::numeric_limits<double>::infinity());
  }
  constexpr std::size_t kBlock = 256;
  std::vector<std::vector<unsigned char>> seen(static_cast<std::size_t>(pool.size()),
                                               std::vector<unsigned char>(X.columns, 0));
  pool.chunks(rows, kBlock, [&](int thread, std::size_t first, std::size_t last) {
    std::array<double, kBlock> value;
    std::array<std::int32_t, kBlock> code;
    std::array<Code, kBlock> run;
    for (std::size_t start = first; start < last; start += kBlock) {
      const std::size_t count = std::min(kBlock, last - start);
      for (std::size_t column = 0; column < X.columns; ++column) {
        for (std::size_t i = 0; i < count; ++i) value[i] = static_cast<double>(X(order[start + i] - first_row, column));
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
        unsigned char any = 0;
        for (std::size_t i = 0; i < count; ++i) {
          const bool lost = std::isnan(value[i]);
          const int with_weight = weight[order[start + i] - first_row] == 0 ? 0
                                  : lost                                    ? kMissingWithWeight
                                                                            : kKnownWithWeight;
          any = static_cast<unsigned char>(any | (lost ? kMissing : 0) | with_weight);
          run[i] = lost ? absent : static_cast<Code>(code[i]);
        }
        for (std::size_t i = 0; i < count; ++i) by_row[(start + i) * width + column] = run[i];
        if (by_column != nullptr) std::copy_n(run.begin(), count, by_column + column * length + start);
        seen[static_cast<std::size_t>(thread)][column] |= any;
      }
    }
  });
  for (std::size_t column = 0; column < X.columns; ++column) {
    Column& own = columns[column];
    for (const auto& of_thread : seen) own.seen |= of_thread[column];
    own.missing = (own.seen & kMissing) != 0;
    if ((own.seen & kMissingWithWeight) && (own.seen & kKnownWithWeight)) own.varies = true;
  }
}

}  // namespace untwist
