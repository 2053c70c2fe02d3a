// The best split of a node by one column: the one with the largest sum of G^2 / (W + l2) over its two sides.
//
// G and W come as whole numbers, so a tie is a tie, and goes to the smaller code, missing values to the right.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "histogram.hpp"
#include "tree.hpp"
#include "vectors.hpp"

namespace untwist {

// What a leaf may be, in fixed-point units of weight (rows: of sample weight).
struct LeafRules {
  double l2 = 0.0;
  double least_weight = 0.0;
  double least_rows = 0.0;  // 0: rows are not counted
  double smoothing = 0.0;   // of the order of categories, so that rare ones do not lead it
};

struct Bounds {  // that monotone columns above a leaf put on its value
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();

  bool any() const { return std::isfinite(low) || std::isfinite(high); }
};

using Weights = std::array<Sum, 2>;  // of the negative and of the positive class

inline double difference(const Weights& weight) {
  return static_cast<double>(static_cast<std::int64_t>(weight[1] - weight[0]));
}
inline double total(const Weights& weight) { return static_cast<double>(weight[0] + weight[1]); }
inline Weights operator-(const Weights& a, const Weights& b) { return {a[0] - b[0], a[1] - b[1]}; }

inline double leaf_value(const Weights& weight, double l2, const Bounds& bounds) {
  const double value = difference(weight) / (total(weight) + l2);
  return std::min(std::max(value, bounds.low), bounds.high);
}

// What a leaf contributes: G^2 / (W + l2) where its value is free.
inline double leaf_worth(const Weights& weight, double l2, const Bounds& bounds) {
  const double value = leaf_value(weight, l2, bounds);
  return value * (2.0 * difference(weight) - (total(weight) + l2) * value);
}

struct Split {
  double worth = 0.0;  // of both sides together
  double gain = 0.0;   // over no split
  std::int32_t feature = -1;
  Code code = 0;
  bool missing_left = false;
  CodeSet goes_left;
  Weights left{};
};

// One entry per candidate split: sums of what goes left, then the worth of both sides.
struct Candidates {
  static constexpr std::size_t kSize = 256;
  alignas(64) std::array<double, kSize> G_left, W_left, rows_left, worth;
};

// Worth of every candidate, with one division each. NaN where a side is empty and l2 is 0.
UNTWIST_VECTORISED inline void split_worths(Candidates& c, std::size_t count, double G, double W, double l2) {
  for (std::size_t i = 0; i < count; ++i) {
    const double left = c.W_left[i] + l2;
    const double right = W - c.W_left[i] + l2;
    const double G_right = G - c.G_left[i];
    c.worth[i] = (c.G_left[i] * c.G_left[i] * right + G_right * G_right * left) / (left * right);
  }
}

// The same where bounds or a monotone column restrict the values; -inf where their order is wrong or a side is empty.
inline void bounded_split_worths(Candidates& c, std::size_t count, double G, double W, double l2, const Bounds& bounds,
                                 int monotone) {
  for (std::size_t i = 0; i < count; ++i) {
    const double left = c.W_left[i] + l2;
    const double right = W - c.W_left[i] + l2;
    const double G_left = c.G_left[i];
    const double G_right = G - G_left;
    const double low = std::min(std::max(G_left / left, bounds.low), bounds.high);
    const double high = std::min(std::max(G_right / right, bounds.low), bounds.high);
    const bool allowed = c.W_left[i] > 0.0 && c.W_left[i] < W && (high - low) * monotone >= 0.0;
    c.worth[i] = allowed ? low * (2.0 * G_left - left * low) + high * (2.0 * G_right - right * high)
                         : -std::numeric_limits<double>::infinity();
  }
}

// Rules out candidates that leave less than `least` on a side.
UNTWIST_VECTORISED inline void forbid(const double* __restrict on_left, std::size_t count, double all, double least,
                                      double* __restrict worth) {
  for (std::size_t i = 0; i < count; ++i) {
    const double smaller = on_left[i] < all - on_left[i] ? on_left[i] : all - on_left[i];
    worth[i] = smaller < least ? -std::numeric_limits<double>::infinity() : worth[i];
  }
}

// The largest of the first `count` entries; NaN is less than everything. Eight running maxima make vector instructions
// of it.
UNTWIST_VECTORISED inline double largest(const double* __restrict worth, std::size_t count) {
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

// Looks for the best split of one node by one column.
template <typename Bin>
class ColumnSearch {
 public:
  // `negative` and `positive` are the column's histograms; `rows`, of both classes, may be null.
  ColumnSearch(const Column& column, const Bin* negative, const Bin* positive, const Bin* negative_rows,
               const Bin* positive_rows, const Weights& node, const LeafRules& rules, const Bounds& bounds,
               int monotone)
      : column_(column),
        negative_(negative),
        positive_(positive),
        negative_rows_(negative_rows),
        positive_rows_(positive_rows),
        node_(node),
        rules_(rules),
        bounds_(bounds),
        monotone_(monotone),
        G_(difference(node)),
        W_(total(node)) {}

  struct Found {
    double worth = -std::numeric_limits<double>::infinity();
    bool missing_left = false;
  };

  // The worth of the best split, and on which side missing values are.
  Found best(Candidates& c) {
    sum_up(c);
    Found found;
    rate(c);
    found.worth = largest(c.worth.data(), count_);
    if (column_.categories == 0 && total(missing_) > 0) {
      move_missing_left(c);
      rate(c);
      const double other = largest(c.worth.data(), count_);
      if (other > found.worth) found = {other, true};
    }
    return found;
  }

  // The split that `best` found, in full.
  Split split(Candidates& c, const Found& found, std::int32_t feature) {
    sum_up(c);
    if (found.missing_left) move_missing_left(c);
    rate(c);
    const std::size_t at = static_cast<std::size_t>(
        std::find(c.worth.begin(), c.worth.begin() + static_cast<std::ptrdiff_t>(count_), found.worth) -
        c.worth.begin());
    Split split;
    split.worth = found.worth;
    split.feature = feature;
    return column_.categories > 0 ? with_categories(split, at)
                                  : with_code(split, static_cast<Code>(at), found.missing_left);
  }

 private:
  Weights bin(std::size_t code) const { return {negative_[code], positive_[code]}; }

  void sum_up(Candidates& c) {
    if (column_.categories > 0) return sum_up_categories(c);
    count_ = static_cast<std::size_t>(column_.values());
    using Part = std::make_signed_t<Bin>;  // a node's weights stay below 2^31 where bins have 32 bits
    Bin left_negative = 0;
    Bin left_positive = 0;
    for (std::size_t code = 0; code < count_; ++code) {
      left_negative += negative_[code];
      left_positive += positive_[code];
      c.G_left[code] = static_cast<double>(static_cast<Part>(left_positive - left_negative));
      c.W_left[code] = static_cast<double>(static_cast<Part>(left_positive + left_negative));
    }
    missing_ = node_ - Weights{left_negative, left_positive};
    if (rules_.least_rows == 0.0) return;
    Sum rows = 0;
    for (std::size_t code = 0; code < count_; ++code) {
      rows += static_cast<Sum>(negative_rows_[code]) + positive_rows_[code];
      c.rows_left[code] = static_cast<double>(rows);
    }
    missing_rows_ = column_.missing
                        ? static_cast<double>(negative_rows_[count_]) + static_cast<double>(positive_rows_[count_])
                        : 0.0;
    rows_ = static_cast<double>(rows) + missing_rows_;
  }

  // Categories with a weight here, the missing values as one of them, by their mean label: a split cuts this order in
  // two.
  void sum_up_categories(Candidates& c) {
    count_ = 0;
    std::array<double, Candidates::kSize> mean;
    for (std::size_t code = 0; code < static_cast<std::size_t>(column_.bins()); ++code) {
      const Weights weight = bin(code);
      if (weight[0] + weight[1] == 0) continue;
      mean[code] = difference(weight) / (total(weight) + rules_.l2 + rules_.smoothing);
      sorted_[count_++] = static_cast<Code>(code);
    }
    std::stable_sort(sorted_.begin(), sorted_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](Code a, Code b) { return mean[a] < mean[b]; });
    Weights left{};
    rows_ = 0.0;
    for (std::size_t i = 0; i < count_; ++i) {
      const Weights weight = bin(sorted_[i]);
      left = {left[0] + weight[0], left[1] + weight[1]};
      c.G_left[i] = difference(left);
      c.W_left[i] = total(left);
      if (rules_.least_rows == 0.0) continue;
      rows_ += static_cast<double>(negative_rows_[sorted_[i]]) + static_cast<double>(positive_rows_[sorted_[i]]);
      c.rows_left[i] = rows_;
    }
  }

  void move_missing_left(Candidates& c) const {
    const double G_missing = difference(missing_);
    const double W_missing = total(missing_);
    for (std::size_t code = 0; code < count_; ++code) {
      c.G_left[code] += G_missing;  // whole numbers below 2^53: exact
      c.W_left[code] += W_missing;
      if (rules_.least_rows > 0.0) c.rows_left[code] += missing_rows_;
    }
  }

  // An empty bin repeats the candidate before it, and an empty side gives NaN without l2 and no gain with it.
  void rate(Candidates& c) const {
    if (monotone_ != 0 || bounds_.any()) {
      bounded_split_worths(c, count_, G_, W_, rules_.l2, bounds_, monotone_);
    } else {
      split_worths(c, count_, G_, W_, rules_.l2);
    }
    if (rules_.least_weight > 0.0) forbid(c.W_left.data(), count_, W_, rules_.least_weight, c.worth.data());
    if (rules_.least_rows > 0.0) forbid(c.rows_left.data(), count_, rows_, rules_.least_rows, c.worth.data());
  }

  Split with_code(Split split, Code code, bool missing_left) const {
    split.code = code;
    if (missing_left) split.left = missing_;
    for (std::size_t i = 0; i <= code; ++i) split.left = {split.left[0] + negative_[i], split.left[1] + positive_[i]};
    split.missing_left = total(missing_) > 0 ? missing_left : heavier_left(split);
    split.goes_left = CodeSet::up_to(code);
    split.goes_left.put(column_.missing_code(), split.missing_left);
    return split;
  }

  Split with_categories(Split split, std::size_t last) const {
    for (std::size_t i = 0; i <= last; ++i) {
      split.left = {split.left[0] + bin(sorted_[i])[0], split.left[1] + bin(sorted_[i])[1]};
    }
    const bool unseen = heavier_left(split);
    for (std::size_t code = 0; code <= column_.missing_code(); ++code)
      split.goes_left.put(static_cast<Code>(code), unseen);
    for (std::size_t i = 0; i < count_; ++i) split.goes_left.put(sorted_[i], i <= last);
    split.missing_left = split.goes_left.has(column_.missing_code());
    return split;
  }

  // Values that training never saw here go to the heavier side.
  bool heavier_left(const Split& split) const { return 2.0 * total(split.left) >= W_; }

  const Column& column_;
  const Bin *negative_, *positive_, *negative_rows_, *positive_rows_;
  const Weights node_;
  const LeafRules& rules_;
  const Bounds bounds_;
  const int monotone_;
  const double G_, W_;
  std::size_t count_ = 0;
  std::array<Code, Candidates::kSize> sorted_;
  Weights missing_{};
  double missing_rows_ = 0.0, rows_ = 0.0;
};

}  // namespace untwist
