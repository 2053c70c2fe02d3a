// Finds the best split of one node by many columns, without keeping what each column has to offer.
//
// A column with few bins that have rows has few splits, too few to be worth loops of their own. So the splits of many
// columns are gathered, and their worths computed together. The arithmetic is that of splitting.hpp, and so is who
// wins: of the best splits the first.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <type_traits>
#include <vector>

#include "binning.hpp"
#include "draws.hpp"
#include "rows.hpp"
#include "splitting.hpp"

namespace untwist {

// This is the best split so far, and the place of its column among those of the tree.
template <typename Best>
struct Winner {
  Best best;
  std::size_t place = 0;

  // Keeps the other split if it is better. Of equal ones the first stays, as columns come in the order of their places.
  void challenge(const Best& other, std::size_t at) {
    if (other.worth > best.worth) *this = {other, at};
  }
};

// Compares the splits of a node, one column after the other.
template <typename Search, typename Buffer>
class PlainContest {
 public:
  using Best = typename Search::Best;

  void begin() { winner_ = {}; }
  void enter(std::size_t place, Search search) { winner_.challenge(search.find_best(buffer_), place); }
  Winner<Best> finish() const { return winner_; }

 private:
  Winner<Best> winner_;
  Buffer buffer_;
};

// Compares the splits of a node of two classes.
template <typename Bin>
class Contest {
 public:
  using Best = typename ColumnSearch<Bin>::Best;

  // Begins anew, for a node with these weights.
  void begin(const ClassWeights& node, const LeafLimits& limits, const Bounds& bounds) {
    node_ = node;
    limits_ = &limits;
    bounds_ = bounds;
    winner_ = {};
    filled_ = 0;
    owners_.clear();
  }

  // Lets a column take part, which comes after all that did so far.
  void enter(std::size_t place, const Column& column, const ColumnHistogram<Bin>& histogram, int monotone,
             const SplitDraw& draw) {
    const bool is_plain = column.category_count == 0 && monotone == 0 && !bounds_.any() && !draw;
    if (!is_plain) {
      settle();
      Candidates alone;
      ColumnSearch<Bin> search(column, histogram, node_, *limits_, bounds_, monotone, draw);
      return winner_.challenge(search.find_best(alone), place);
    }
    const auto values = static_cast<std::size_t>(column.values());
    if (filled_ + 2 * values > kSize) settle();
    const std::size_t first = filled_;
    owners_.push_back({first, place, false});
    const ClassWeights missing = node_ - gather(histogram, values);
    double missing_rows = 0.0;
    if (counts_rows()) missing_rows = gather_rows(histogram, values, column.missing, first);
    if (total(missing) == 0.0) return;
    const std::size_t last = filled_;
    owners_.push_back({last, place, true});
    for (std::size_t i = first; i < last; ++i, ++filled_) {
      G_left_[filled_] = G_left_[i] + difference(missing);  // Sums of whole numbers below 2^53 are exact.
      W_left_[filled_] = W_left_[i] + total(missing);
      if (counts_rows()) rows_left_[filled_] = rows_left_[i] + missing_rows;
    }
  }

  // Enters one split; all splits of a column enter in succession. Rows of these weights and of this number go left if
  // `goes_left` says so, else right, and the others of the node's `all_rows` go the other way. Rows need not be counted
  // where no leaf has to have some.
  void enter_split(std::size_t place, bool goes_left, const ClassWeights& weight, Sum rows, Sum all_rows) {
    if (filled_ == kSize) settle();
    if (owners_.empty() || owners_.back().place != place) {
      Owner& owner = owners_.emplace_back();  // Its numbers are set one by one, as in ListedSplits.
      owner.first = filled_;
      owner.place = place;
    }
    const ClassWeights left = goes_left ? weight : node_ - weight;
    G_left_[filled_] = difference(left);
    W_left_[filled_] = total(left);
    if (counts_rows()) {
      rows_left_[filled_] = static_cast<double>(goes_left ? rows : all_rows - rows);
      rows_ = static_cast<double>(all_rows);
    }
    ++filled_;
  }

  // Returns the best split of all columns.
  Winner<Best> finish() {
    settle();
    return winner_;
  }

 private:
  // A column has up to 255 bins of known values, each of which is a split twice where values are missing.
  static constexpr std::size_t kSize = 512;

  // The candidates from `first` on are of this column.
  struct Owner {
    std::size_t first = 0;
    std::size_t place = 0;
    bool missing_left = false;
  };

  bool counts_rows() const { return limits_->min_rows > 0.0; }

  // Calls job(code) for the bins of known values that may have a weight, in their order.
  template <typename Job>
  static void for_each_bin(const ColumnHistogram<Bin>& histogram, std::size_t values, const Job& job) {
    if (histogram.filled != nullptr) return histogram.filled->for_each(values, job);
    for (std::size_t code = 0; code < values; ++code) job(code);
  }

  // Appends a candidate for every bin that has a weight, and returns the sum of all. An empty bin would only repeat the
  // candidate before it.
  ClassWeights gather(const ColumnHistogram<Bin>& histogram, std::size_t values) {
    using Signed = std::make_signed_t<Bin>;  // A node's weights stay below 2^31 where bins have 32 bits.
    Bin negative = 0;
    Bin positive = 0;
    std::size_t at = filled_;
    for_each_bin(histogram, values, [&](std::size_t code) {
      negative += histogram.negative[code];
      positive += histogram.positive[code];
      G_left_[at] = static_cast<double>(static_cast<Signed>(positive - negative));
      W_left_[at] = static_cast<double>(static_cast<Signed>(positive + negative));
      at += (histogram.negative[code] | histogram.positive[code]) != 0;
    });
    filled_ = at;
    return {negative, positive};
  }

  // Writes the rows on the left of these candidates, and returns how many rows miss a value.
  double gather_rows(const ColumnHistogram<Bin>& histogram, std::size_t values, bool may_miss, std::size_t at) {
    const auto rows_in = [&](std::size_t code) {
      return static_cast<Sum>(histogram.negative_rows[code]) + histogram.positive_rows[code];
    };
    Sum rows = 0;
    for_each_bin(histogram, values, [&](std::size_t code) {
      rows += rows_in(code);
      if ((histogram.negative[code] | histogram.positive[code]) != 0) rows_left_[at++] = static_cast<double>(rows);
    });
    const double missing = may_miss ? static_cast<double>(rows_in(values)) : 0.0;
    rows_ = static_cast<double>(rows) + missing;
    return missing;
  }

  // Computes the worths of all candidates, and lets the best of them challenge the winner.
  void settle() {
    if (filled_ == 0) return;
    score_splits(G_left_.data(), W_left_.data(), filled_, difference(node_), total(node_), limits_->l2, worth_.data());
    if (limits_->min_weight > 0.0) {
      rule_out_small_sides(W_left_.data(), filled_, total(node_), limits_->min_weight, worth_.data());
    }
    if (counts_rows()) rule_out_small_sides(rows_left_.data(), filled_, rows_, limits_->min_rows, worth_.data());
    const double largest = find_largest(worth_.data(), filled_);
    if (largest > winner_.best.worth) {
      const auto found = std::find(worth_.begin(), worth_.begin() + static_cast<std::ptrdiff_t>(filled_), largest);
      const auto at = static_cast<std::size_t>(found - worth_.begin());
      const auto after = std::upper_bound(owners_.begin(), owners_.end(), at,
                                          [](std::size_t one, const Owner& owner) { return one < owner.first; });
      winner_ = {{largest, after[-1].missing_left}, after[-1].place};
    }
    filled_ = 0;
    owners_.clear();
  }

  ClassWeights node_{};
  const LeafLimits* limits_ = nullptr;
  Bounds bounds_;
  Winner<Best> winner_;
  std::size_t filled_ = 0;
  double rows_ = 0.0;  // The node has this many rows.
  std::vector<Owner> owners_;
  // There is room for one more, which an empty last bin writes.
  alignas(Candidates::kAlignment) std::array<double, kSize + 1> G_left_, W_left_, rows_left_, worth_;
};

}  // namespace untwist
