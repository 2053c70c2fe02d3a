// Encodes blocks of raw rows as columns of one-byte codes that the moves of a forest's trees compare.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "matrix.hpp"
#include "moves.hpp"
#include "tree.hpp"
#include "vectorised.hpp"

namespace untwist {

UNTWIST_VECTORISED inline void replace_missing(const double* __restrict value, std::size_t count, std::int32_t missing,
                                               std::int32_t* __restrict code) {
  for (std::size_t i = 0; i < count; ++i) code[i] = value[i] != value[i] ? missing : code[i];
}

// Categories are 0 to 255. This one stands for every other value.
inline constexpr std::int32_t kNoCategory = 256;

// Returns the category that a value stands for, or kNoCategory.
template <typename Real>
std::int32_t to_category(Real x) {
  const std::int32_t code = x >= Real{0} && x < Real{kNoCategory} ? static_cast<std::int32_t>(x) : kNoCategory;
  return static_cast<Real>(code) == x ? code : kNoCategory;
}

// Tells whether a category goes left at a split by a set of codes.
inline bool goes_left(std::int32_t category, const std::uint64_t* set, bool missing_left) {
  constexpr std::int32_t kBits = kWordBits;
  return category == kNoCategory ? missing_left : set[category / kBits] >> category % kBits & 1;
}

// There are two columns of codes for each table of thresholds, one where missing values are lowest and one where they
// are highest, and then one column for each group of sets.
class Encoder {
 public:
  // Takes the thresholds of each feature, which may come in any order and repeat.
  explicit Encoder(std::vector<std::vector<double>> thresholds)
      : thresholds_(std::move(thresholds)), last_group_(thresholds_.size(), kNoGroup) {
    for (std::size_t feature = 0; feature < thresholds_.size(); ++feature) {
      auto& all = thresholds_[feature];
      std::sort(all.begin(), all.end());
      all.erase(std::unique(all.begin(), all.end()), all.end());
      first_table_.push_back(tables_.size());
      for (std::size_t start = 0; start < all.size(); start += kTableSize) {
        const std::size_t count = std::min(kTableSize, all.size() - start);
        const std::vector<double> some(all.data() + start, all.data() + start + count);
        tables_.push_back({feature, static_cast<std::int32_t>(count), pad_thresholds(some)});
      }
    }
  }

  std::size_t columns() const { return 2 * tables_.size() + groups_.size(); }

  // Estimates what it takes to encode a row, in steps of a walk down a tree.
  std::size_t effort(const std::vector<char>& needed) const {
    // The search in a table takes about as long as two steps of a walk, and the look at a group as long as one.
    constexpr std::size_t kStepsOfTable = 2;
    constexpr std::size_t kStepsOfGroup = 1;
    std::size_t steps = 0;
    for (std::size_t t = 0; t < tables_.size(); ++t) steps += needed[2 * t] || needed[2 * t + 1] ? kStepsOfTable : 0;
    for (std::size_t column = 2 * tables_.size(); column < needed.size(); ++column) {
      steps += needed[column] ? kStepsOfGroup : 0;
    }
    return steps;
  }

  // Returns the move of a split at one of the thresholds. Its slots are still to be set.
  Move compare(std::size_t feature, double threshold, bool missing_left) const {
    const auto& all = thresholds_[feature];
    const auto found = std::lower_bound(all.begin(), all.end(), threshold);
    const std::size_t rank = static_cast<std::size_t>(found - all.begin());
    const std::size_t column = 2 * (first_table_[feature] + rank / kTableSize) + !missing_left;
    return {static_cast<std::uint32_t>(column), kWholeCode, to_signed(static_cast<std::int32_t>(rank % kTableSize))};
  }

  // Returns the move of a split by a set of categories, which takes the next bit of a group of the feature. Its slots
  // are still to be set.
  Move look_up(std::size_t feature, const std::uint64_t* set, bool missing_left) {
    std::size_t& last = last_group_[feature];
    if (last == kNoGroup || groups_[last].bits == kMaxBits) {
      last = groups_.size();
      groups_.push_back({feature, 0, {}});
    }
    const int mask = 1 << groups_[last].bits++;
    for (std::int32_t category = 0; category <= kNoCategory; ++category) {
      auto& right = groups_[last].goes_right[static_cast<std::size_t>(category)];
      if (!goes_left(category, set, missing_left)) right = static_cast<std::int8_t>(right | mask);
    }
    return {static_cast<std::uint32_t>(2 * tables_.size() + last), static_cast<std::int8_t>(mask), 0};
  }

  // Writes the codes of up to kCodedRows rows, of the needed columns.
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
      const std::size_t missing_lowest = 2 * t;
      const std::size_t missing_highest = 2 * t + 1;
      if (!needed[missing_lowest] && !needed[missing_highest]) continue;
      const auto& padded = tables_[t].padded;
      read(tables_[t].feature);
      find_codes(padded.data(), static_cast<int>(padded.size()), x.data(), rows, rank.data());
      if (needed[missing_lowest]) write(missing_lowest);  // A missing value is above no threshold.
      if (!needed[missing_highest]) continue;
      replace_missing(x.data(), rows, tables_[t].count, rank.data());
      write(missing_highest);
    }
    for (std::size_t g = 0; g < groups_.size(); ++g) {
      const std::size_t column = 2 * tables_.size() + g;
      if (!needed[column]) continue;
      read(groups_[g].feature);
      for (std::size_t i = 0; i < rows; ++i) rank[i] = to_category(x[i]);
      for (std::size_t i = 0; i < rows; ++i) {
        codes[column * kCodedRows + i] = groups_[g].goes_right[static_cast<std::size_t>(rank[i])];
      }
    }
  }

 private:
  // A table has some thresholds of a feature.
  struct Table {
    std::size_t feature;
    std::int32_t count;
    std::vector<double> padded;
  };

  // A group has some sets of a feature, a bit for each.
  struct Group {
    std::size_t feature;
    int bits;
    std::array<std::int8_t, kNoCategory + 1> goes_right;  // A category has the bits of the sets that send it right.
  };

  // A byte tells the ranks among 255 thresholds apart.
  static constexpr std::size_t kTableSize = 255;

  // A signed byte has so many bits besides the sign, which a comparison with 0 would take for a negative number.
  static constexpr int kMaxBits = 7;

  // A move with this mask compares codes as they are.
  static constexpr std::int8_t kWholeCode = -1;

  static constexpr std::size_t kNoGroup = std::numeric_limits<std::size_t>::max();

  // Vectors of bytes are compared as signed numbers, so ranks from 0 to 255 become -128 to 127.
  static std::int8_t to_signed(std::int32_t rank) { return static_cast<std::int8_t>(rank - 128); }

  std::vector<std::vector<double>> thresholds_;  // These and the next two have an entry per feature.
  std::vector<std::size_t> first_table_;
  std::vector<std::size_t> last_group_;
  std::vector<Table> tables_;
  std::vector<Group> groups_;
};

}  // namespace untwist
