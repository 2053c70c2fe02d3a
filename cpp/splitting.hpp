// Finds the best split of a node by one column: the one with the largest sum of G^2 / (W + l2) over its two sides.
//
// G = W_pos - W_neg and W = W_pos + W_neg are whole numbers, so a tie is a tie. It goes to the smaller code, with
// missing values on the right.
//
// Where a split is drawn it is the only candidate of its column, and what is left to find is the better side for
// missing values.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>

#include "binning.hpp"
#include "draws.hpp"
#include "hashing.hpp"
#include "rows.hpp"
#include "tree.hpp"
#include "vectorised.hpp"

namespace untwist {

// The limits tell what a leaf may be, in fixed-point units of weight, or of sample weight for min_rows.
struct LeafLimits {
  double l2 = 0.0;
  double min_weight = 0.0;
  double min_rows = 0.0;  // Rows are not counted where it is 0.
  double category_smoothing = 0.0;
};

// Monotone columns above a leaf put these bounds on its value.
struct Bounds {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool any() const { return std::isfinite(low) || std::isfinite(high); }
};

// Returns G / (W + l2) within bounds.
inline double leaf_value(const ClassWeights& weight, double l2, const Bounds& bounds) {
  const double value = difference(weight) / (total(weight) + l2);
  return std::min(std::max(value, bounds.low), bounds.high);
}

// Returns what a leaf contributes to the worth of a tree: G^2 / (W + l2) where no bound holds its value back.
inline double leaf_worth(const ClassWeights& weight, double l2, const Bounds& bounds) {
  const double value = leaf_value(weight, l2, bounds);
  return value * (2.0 * difference(weight) - (total(weight) + l2) * value);
}

struct Split {
  double gain = 0.0;  // It is the worth of both sides less the worth of the node as a leaf.
  std::int32_t feature = -1;
  Code code = 0;
  bool missing_left = false;
  CodeSet goes_left;
  ClassWeights left{};
};

// Every candidate split has the sums of what goes left, and then the worth of both sides.
struct Candidates {
  static constexpr std::size_t kSize = kBins;
  static constexpr std::size_t kAlignment = 64;  // A cache line and the widest vector register have so many bytes.
  alignas(kAlignment) std::array<double, kSize> G_left, W_left, rows_left, worth;
};

// Writes G and W of sums over the bins of both classes, which are below 2^31 together.
UNTWIST_VECTORISED inline void write_sums(const std::uint32_t* __restrict negative,
                                          const std::uint32_t* __restrict positive, std::size_t count,
                                          double* __restrict G, double* __restrict W) {
  for (std::size_t i = 0; i < count; ++i) {
    G[i] = static_cast<double>(static_cast<std::int32_t>(positive[i] - negative[i]));
    W[i] = static_cast<double>(static_cast<std::int32_t>(positive[i] + negative[i]));
  }
}

// Computes the worth of every candidate, with one division each. It is NaN where a side is empty and l2 is 0.
UNTWIST_VECTORISED inline void score_splits(const double* __restrict G_left, const double* __restrict W_left,
                                            std::size_t count, double G, double W, double l2,
                                            double* __restrict worth) {
  for (std::size_t i = 0; i < count; ++i) {
    const double left = W_left[i] + l2;
    const double right = W - W_left[i] + l2;
    const double G_right = G - G_left[i];
    worth[i] = (G_left[i] * G_left[i] * right + G_right * G_right * left) / (left * right);
  }
}

// Computes the same where bounds or a monotone column restrict the values. The worth is -inf where the values are in
// the wrong order or a side is empty.
inline void score_bounded_splits(Candidates& c, std::size_t count, double G, double W, double l2, const Bounds& bounds,
                                 int monotone) {
  for (std::size_t i = 0; i < count; ++i) {
    const double left = c.W_left[i] + l2;
    const double right = W - c.W_left[i] + l2;
    const double G_left = c.G_left[i];
    const double G_right = G - G_left;
    const double left_value = std::min(std::max(G_left / left, bounds.low), bounds.high);
    const double right_value = std::min(std::max(G_right / right, bounds.low), bounds.high);
    const bool allowed = c.W_left[i] > 0.0 && c.W_left[i] < W && (right_value - left_value) * monotone >= 0.0;
    const double worth =
        left_value * (2.0 * G_left - left * left_value) + right_value * (2.0 * G_right - right * right_value);
    c.worth[i] = allowed ? worth : -std::numeric_limits<double>::infinity();
  }
}

// Rules out candidates that leave less than `least` of `all` on a side.
UNTWIST_VECTORISED inline void rule_out_small_sides(const double* __restrict on_left, std::size_t count, double all,
                                                    double least, double* __restrict worth) {
  for (std::size_t i = 0; i < count; ++i) {
    const double smaller = on_left[i] < all - on_left[i] ? on_left[i] : all - on_left[i];
    worth[i] = smaller < least ? -std::numeric_limits<double>::infinity() : worth[i];
  }
}

// Returns the largest of the first `count` entries. NaN is less than everything.
UNTWIST_VECTORISED inline double find_largest(const double* __restrict worth, std::size_t count) {
  // So many running maxima fill the widest vector register.
  constexpr std::size_t kLanes = 8;
  double best[kLanes];
  for (double& lane : best) lane = -std::numeric_limits<double>::infinity();
  std::size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (std::size_t k = 0; k < kLanes; ++k) best[k] = worth[i + k] > best[k] ? worth[i + k] : best[k];
  }
  double most = best[0];
  for (const double lane : best) most = lane > most ? lane : most;
  for (; i < count; ++i) most = worth[i] > most ? worth[i] : most;
  return most;
}

// Returns the place of the candidate that is drawn, each of those that tell known values apart being as likely, or that
// tells them from missing ones. There are none where all values are the same. `weight_left` never falls from one
// candidate to the next, and starts from `none`.
inline std::optional<std::size_t> draw_candidate(const double* weight_left, std::size_t count, double none,
                                                 bool has_missing, std::uint64_t hash) {
  const double* end = weight_left + count;
  const double* first = std::upper_bound(weight_left, end, none);
  if (first == end) return std::nullopt;
  const double* last = std::lower_bound(first, end, end[-1]);
  const std::size_t splits = static_cast<std::size_t>(last - first) + (has_missing ? 1 : 0);
  if (splits == 0) return std::nullopt;
  return static_cast<std::size_t>(first - weight_left) + scale_down(hash, splits);
}

// A column has these bins in the histogram of a node, by class.
template <typename Bin>
struct ColumnHistogram {
  const Bin *negative, *positive;
  const Bin *negative_rows, *positive_rows;  // They are null where rows are not counted.
  const CodeSet* filled = nullptr;           // Only these bins have rows. Null means that any may have some.
};

// Looks for the best split of one node by one column.
template <typename Bin>
class ColumnSearch {
 public:
  ColumnSearch(const Column& column, const ColumnHistogram<Bin>& histogram, const ClassWeights& node,
               const LeafLimits& limits, const Bounds& bounds, int monotone, const SplitDraw& draw)
      : column_(column),
        histogram_(histogram),
        node_(node),
        limits_(limits),
        bounds_(bounds),
        monotone_(monotone),
        draw_(draw),
        G_(difference(node)),
        W_(total(node)) {}

  struct Best {
    double worth = -std::numeric_limits<double>::infinity();
    bool missing_left = false;
  };

  // Returns the worth of the best split, and on which side of it missing values are.
  Best find_best(Candidates& c) {
    sum_up(c);
    score_candidates(c);
    Best best;
    best.worth = find_largest(c.worth.data(), count_);
    if (column_.category_count == 0 && total(missing_) > 0) {
      move_missing_left(c);
      score_candidates(c);
      const double worth = find_largest(c.worth.data(), count_);
      if (worth > best.worth) best = {worth, true};
    }
    return best;
  }

  // Returns the split that find_best found, in full but for its gain.
  Split make_split(Candidates& c, const Best& best, std::int32_t feature) {
    sum_up(c);
    if (best.missing_left) move_missing_left(c);
    score_candidates(c);
    const auto end = c.worth.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find(c.worth.begin(), end, best.worth);
    const std::size_t at = first_ + static_cast<std::size_t>(found - c.worth.begin());
    Split split =
        column_.category_count > 0 ? split_categories(at) : split_numbers(static_cast<Code>(at), best.missing_left);
    split.feature = feature;
    return split;
  }

 private:
  ClassWeights bin(std::size_t code) const { return {histogram_.negative[code], histogram_.positive[code]}; }

  double rows_in_bin(std::size_t code) const {
    return static_cast<double>(histogram_.negative_rows[code]) + static_cast<double>(histogram_.positive_rows[code]);
  }

  bool counts_rows() const { return limits_.min_rows > 0.0; }

  void sum_up(Candidates& c) {
    if (column_.category_count > 0) {
      sum_up_categories(c);
    } else {
      sum_up_numbers(c);
    }
    if (draw_) keep_drawn(c);
  }

  // Makes the candidate that is drawn the only one.
  void keep_drawn(Candidates& c) {
    const auto drawn = draw_candidate(c.W_left.data(), count_, 0.0, total(missing_) > 0, *draw_);
    count_ = drawn ? 1 : 0;
    if (!drawn) return;
    first_ = *drawn;
    c.G_left[0] = c.G_left[first_];
    c.W_left[0] = c.W_left[first_];
    if (counts_rows()) c.rows_left[0] = c.rows_left[first_];
  }

  void sum_up_numbers(Candidates& c) {
    count_ = static_cast<std::size_t>(column_.values());
    const ClassWeights left = is_light(node_) ? sum_up_narrow(c) : sum_up_wide(c);
    missing_ = node_ - left;
    if (!counts_rows()) return;
    Sum rows = 0;
    for (std::size_t code = 0; code < count_; ++code) {
      rows += static_cast<Sum>(histogram_.negative_rows[code]) + histogram_.positive_rows[code];
      c.rows_left[code] = static_cast<double>(rows);
    }
    missing_rows_ = column_.missing ? rows_in_bin(count_) : 0.0;
    rows_ = static_cast<double>(rows) + missing_rows_;
  }

  // Tells whether all sums of a node fit into 32 bits with a sign.
  static bool is_light(const ClassWeights& node) { return node[0] + node[1] < Sum{1} << 31; }

  // Writes the sums on the left of every candidate, and returns the last of them. Numbers of 32 bits become real ones
  // many at a time.
  ClassWeights sum_up_narrow(Candidates& c) {
    std::uint32_t negative = 0;
    std::uint32_t positive = 0;
    for (std::size_t code = 0; code < count_; ++code) {
      negative_left_[code] = negative += static_cast<std::uint32_t>(histogram_.negative[code]);
      positive_left_[code] = positive += static_cast<std::uint32_t>(histogram_.positive[code]);
    }
    write_sums(negative_left_.data(), positive_left_.data(), count_, c.G_left.data(), c.W_left.data());
    return {negative, positive};
  }

  // Does the same with 64 bits.
  ClassWeights sum_up_wide(Candidates& c) const {
    ClassWeights left{};
    for (std::size_t code = 0; code < count_; ++code) {
      left = left + bin(code);
      c.G_left[code] = difference(left);
      c.W_left[code] = static_cast<double>(static_cast<std::int64_t>(left[0] + left[1]));
    }
    return left;
  }

  // Orders the categories with a weight here, the missing values as one of them, by their mean label. A split cuts this
  // order in two.
  void sum_up_categories(Candidates& c) {
    count_ = 0;
    std::array<double, Candidates::kSize> mean;
    for (std::size_t code = 0; code < static_cast<std::size_t>(column_.bins()); ++code) {
      const ClassWeights weight = bin(code);
      if (weight[0] + weight[1] == 0) continue;
      mean[code] = difference(weight) / (total(weight) + limits_.l2 + limits_.category_smoothing);
      sorted_[count_++] = static_cast<Code>(code);
    }
    std::stable_sort(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](Code a, Code b) { return mean[a] < mean[b]; });
    present_ = count_;
    ClassWeights left{};
    rows_ = 0.0;
    for (std::size_t i = 0; i < count_; ++i) {
      left = left + bin(sorted_[i]);
      c.G_left[i] = difference(left);
      c.W_left[i] = total(left);
      if (!counts_rows()) continue;
      rows_ += rows_in_bin(sorted_[i]);
      c.rows_left[i] = rows_;
    }
  }

  void move_missing_left(Candidates& c) const {
    const double G_missing = difference(missing_);
    const double W_missing = total(missing_);
    for (std::size_t code = 0; code < count_; ++code) {
      c.G_left[code] += G_missing;  // Sums of whole numbers below 2^53 are exact.
      c.W_left[code] += W_missing;
      if (counts_rows()) c.rows_left[code] += missing_rows_;
    }
  }

  // An empty bin repeats the candidate before it. An empty side gives NaN without l2, and no gain with it.
  void score_candidates(Candidates& c) const {
    if (monotone_ != 0 || bounds_.any()) {
      score_bounded_splits(c, count_, G_, W_, limits_.l2, bounds_, monotone_);
    } else {
      score_splits(c.G_left.data(), c.W_left.data(), count_, G_, W_, limits_.l2, c.worth.data());
    }
    if (limits_.min_weight > 0.0) {
      rule_out_small_sides(c.W_left.data(), count_, W_, limits_.min_weight, c.worth.data());
    }
    if (counts_rows()) rule_out_small_sides(c.rows_left.data(), count_, rows_, limits_.min_rows, c.worth.data());
  }

  // Returns the split that sends codes up to `last` left.
  Split split_numbers(Code last, bool missing_left) const {
    Split split;
    split.code = last;
    if (missing_left) split.left = missing_;
    for (std::size_t code = 0; code <= last; ++code) split.left = split.left + bin(code);
    split.missing_left = total(missing_) > 0 ? missing_left : is_left_heavier(split);
    split.goes_left = CodeSet::up_to(last);
    split.goes_left.put(column_.missing_code(), split.missing_left);
    return split;
  }

  // Returns the split that sends categories up to place `last` of their order left.
  Split split_categories(std::size_t last) const {
    Split split;
    for (std::size_t i = 0; i <= last; ++i) split.left = split.left + bin(sorted_[i]);
    const bool unseen_left = is_left_heavier(split);
    for (std::size_t code = 0; code <= column_.missing_code(); ++code) {
      split.goes_left.put(static_cast<Code>(code), unseen_left);
    }
    for (std::size_t i = 0; i < present_; ++i) split.goes_left.put(sorted_[i], i <= last);
    split.missing_left = split.goes_left.has(column_.missing_code());
    return split;
  }

  // Values that training never saw here go to the heavier side.
  bool is_left_heavier(const Split& split) const { return 2.0 * total(split.left) >= W_; }

  const Column& column_;
  const ColumnHistogram<Bin> histogram_;
  const ClassWeights node_;
  const LeafLimits& limits_;
  const Bounds bounds_;
  const int monotone_;
  const SplitDraw draw_;
  const double G_, W_;
  std::size_t count_ = 0;                       // There are so many candidates.
  std::size_t first_ = 0;                       // The first of them is the split at this place.
  std::size_t present_ = 0;                     // So many categories have a weight here.
  std::array<Code, Candidates::kSize> sorted_;  // The categories are in the order of their mean label.
  std::array<std::uint32_t, Candidates::kSize> negative_left_, positive_left_;
  ClassWeights missing_{};
  double missing_rows_ = 0.0;
  double rows_ = 0.0;
};

}  // namespace untwist
