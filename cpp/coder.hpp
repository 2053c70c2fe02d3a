// Blocks of raw rows as columns of one-byte codes, and the splits of a tree as moves over them: a split compares a
// column, 16 or 32 rows to an instruction, and moves the rows concerned to a new label. That beats walking down row by
// row by far, even though each row meets every split of the tree.
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

#include "binning.hpp"
#include "vectors.hpp"

namespace untwist {

// Moves the rows of label `from` whose masked code is above the threshold to label `to`.
struct Move {
  std::uint32_t column;
  std::int8_t mask, threshold;
  std::int8_t from = 0, to = 0;
};

inline constexpr std::size_t kMaxMoves = 255;   // labels are bytes
inline constexpr std::size_t kCodedRows = 256;  // encoded at a time: codes[column][row]

// Labels of the first `rows` rows after all moves, from label 0 on, kept in eight registers of `width` bytes meanwhile.
template <int width>
__attribute__((always_inline)) inline void find_labels(const Move* moves, std::size_t count, const std::int8_t* codes,
                                                       std::size_t rows, std::uint8_t* labels) {
  typedef std::int8_t Lanes __attribute__((vector_size(width)));
  Lanes label[8];
  for (std::size_t start = 0; start < rows; start += sizeof label) {
    for (Lanes& each : label) each = Lanes{};
    for (std::size_t i = 0; i < count; ++i) {
      const Move& move = moves[i];
      const Lanes mask = Lanes{} + move.mask, threshold = Lanes{} + move.threshold;
      const Lanes from = Lanes{} + move.from, to = Lanes{} + move.to;
      const std::int8_t* column = codes + move.column * kCodedRows + start;
      for (Lanes& each : label) {
        Lanes code;
        std::memcpy(&code, column, sizeof code);
        column += sizeof code;
        each = ((each == from) & ((code & mask) > threshold)) ? to : each;
      }
    }
    std::memcpy(labels + start, label, sizeof label);
  }
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) inline void find_labels_avx2(const Move* moves, std::size_t count,
                                                             const std::int8_t* codes, std::size_t rows,
                                                             std::uint8_t* labels) {
  find_labels<32>(moves, count, codes, rows, labels);
}
#endif

// As wide as pays off. By hand: left to itself the compiler keeps the labels in memory, if it finds vectors at all.
inline void find_labels(const Move* moves, std::size_t count, const std::int8_t* codes, std::size_t rows,
                        std::uint8_t* labels) {
#if defined(__x86_64__)
  static const bool avx2 = __builtin_cpu_supports("avx2");
  if (avx2) return find_labels_avx2(moves, count, codes, rows, labels);
#endif
  find_labels<16>(moves, count, codes, rows, labels);
}

UNTWIST_VECTORISED inline void replace_missing(const double* __restrict value, std::size_t count, std::int32_t missing,
                                               std::int32_t* __restrict code) {
  for (std::size_t i = 0; i < count; ++i) code[i] = value[i] != value[i] ? missing : code[i];
}

// The category that a value stands for, or kNoCategory.
inline constexpr std::int32_t kNoCategory = 256;
template <typename Real>
std::int32_t category(Real x) {
  const std::int32_t code = x >= Real{0} && x < Real{256} ? static_cast<std::int32_t>(x) : kNoCategory;
  return static_cast<Real>(code) == x ? code : kNoCategory;
}

// Whether a category is in a set of four words.
inline bool goes_left(std::int32_t category, const std::uint64_t* set, bool missing_left) {
  return category == kNoCategory ? missing_left : set[category / 64] >> category % 64 & 1;
}

class Coder {
 public:
  // From the thresholds of each feature, which may come in any order and repeat.
  explicit Coder(std::vector<std::vector<double>> thresholds)
      : thresholds_(std::move(thresholds)), last_group_(thresholds_.size(), kNoGroup) {
    for (std::size_t feature = 0; feature < thresholds_.size(); ++feature) {
      auto& all = thresholds_[feature];
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      first_table_.push_back(tables_.size());
      for (std::size_t start = 0; start < all.size(); start += kMaxThresholds) {
        const std::size_t count = std::min(kMaxThresholds, all.size() - start);
        std::vector<double> padded(all.data() + start, all.data() + start + count);
        std::size_t size = 1;
        while (size < count) size = 2 * size + 1;
        padded.resize(size, std::numeric_limits<double>::infinity());
        tables_.push_back({feature, static_cast<std::int32_t>(count), std::move(padded)});
      }
    }
  }

  std::size_t columns() const { return 2 * tables_.size() + groups_.size(); }

  // What it takes to encode a row, in steps of a walk down a tree.
  std::size_t effort(const std::vector<char>& needed) const {
    std::size_t steps = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) steps += needed[2 * t] || needed[2 * t + 1] ? 2 : 0;
    for (std::size_t column = 2 * tables_.size(); column < needed.size(); ++column) steps += needed[column] ? 1 : 0;
    return steps;
  }

  // A split at one of the thresholds.
  Move compare(std::size_t feature, double threshold, bool missing_left) const {
    const auto& all = thresholds_[feature];
    const auto found = std::lower_bound(all.begin(), all.end(), threshold);
    const std::size_t rank = static_cast<std::size_t>(found - all.begin());
    const std::size_t column = 2 * (first_table_[feature] + rank / kMaxThresholds) + !missing_left;
    return {static_cast<std::uint32_t>(column), -1, to_signed(static_cast<std::int32_t>(rank % kMaxThresholds))};
  }

  // A split by a set of categories: takes the next bit of a group of the feature.
  Move look_up(std::size_t feature, const std::uint64_t* set, bool missing_left) {
    std::size_t& last = last_group_[feature];
    if (last == kNoGroup || groups_[last].bits == kMaxBits) {
      last = groups_.size();
      groups_.push_back({feature, 0, {}});
    }
    const int mask = 1 << groups_[last].bits++;
    for (std::int32_t category = 0; category <= kNoCategory; ++category) {
      auto& right = groups_[last].right[static_cast<std::size_t>(category)];
      if (!goes_left(category, set, missing_left)) right = static_cast<std::int8_t>(right | mask);
    }
    return {static_cast<std::uint32_t>(2 * tables_.size() + last), static_cast<std::int8_t>(mask), 0};
  }

  // Codes of up to kCodedRows rows, of the needed columns.
  template <typename Real>
  void encode(const Matrix<Real>& X, std::size_t row, std::size_t rows, const std::vector<char>& needed,
              std::int8_t* codes) const {
    std::array<double, kCodedRows> x;
    std::array<std::int32_t, kCodedRows> rank;
    const auto read = [&](std::size_t feature) {
      for (std::size_t i = 0; i < rows; ++i) x[i] = static_cast<double>(X(row + i, feature));
    };
    const auto write = [&](std::size_t column) {
      for (std::size_t i = 0; i < rows; ++i) codes[column * kCodedRows + i] = to_signed(rank[i]);
    };
    for (std::size_t t = 0; t < tables_.size(); ++t) {
      if (!needed[2 * t] && !needed[2 * t + 1]) continue;
      const auto& padded = tables_[t].padded;
      read(tables_[t].feature);
      find_codes(padded.data(), static_cast<int>(padded.size()), x.data(), rows, rank.data());
      if (needed[2 * t]) write(2 * t);  // a missing value is above no threshold
      if (!needed[2 * t + 1]) continue;
      replace_missing(x.data(), rows, tables_[t].count, rank.data());
      write(2 * t + 1);
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::size_t column = 2 * tables_.size() + g;
      if (!needed[column]) continue;
      read(groups_[g].feature);
      for (std::size_t i = 0; i < rows; ++i) rank[i] = category(x[i]);
      for (std::size_t i = 0; i < rows; ++i) {
        codes[column * kCodedRows + i] = groups_[g].right[static_cast<std::size_t>(rank[i])];
      }
    }
  }

 private:
  struct Table {  // some thresholds of a feature: one column where missing values are lowest, one where highest
    std::size_t feature;
    std::int32_t count;
    std::vector<double> padded;
  };
  struct Group {  // some sets of a feature: one column, with a bit per set
    std::size_t feature;
    int bits;
    std::array<std::int8_t, kNoCategory + 1> right;  // for each category, the sets that it is not in
  };

  static constexpr std::size_t kMaxThresholds = 255;
  static constexpr int kMaxBits = 7;  // the eighth is the sign
  static constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

  // Vectors of bytes are compared as signed numbers.
  static std::int8_t to_signed(std::int32_t rank) { return static_cast<std::int8_t>(rank - 128); }

  std::vector<std::vector<double>> thresholds_;
  std::vector<std::size_t> first_table_, last_group_;  // of each feature
  std::vector<Table> tables_;
  std::vector<Group> groups_;
};

}  // namespace untwist
