// Finds the best split of a joint tree's node by one column: the one with the largest sum over lanes and sides of G^2 /
// (W + l2).
//
// G is a side's sum of a lane of the gradient and W the sum of the sizes of the gradient, twice the mass. Both are
// whole numbers, so a tie is a tie. It goes to the smaller code, with missing values on the right.
//
// Where splits are drawn, so is the lane that categories are ordered by.
//
// It goes through the same steps as splitting.hpp, which has two classes, one number for each, and monotone columns.
// What a leaf may be and which sides are too small for one is shared.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "binning.hpp"
#include "column_sums.hpp"
#include "draws.hpp"
#include "hashing.hpp"
#include "joint_lanes.hpp"
#include "splitting.hpp"
#include "tree.hpp"
#include "vectorised.hpp"

namespace untwist {

// A node, or a side of a split, has the sums of all lanes.
template <std::size_t lanes>
struct LaneSums {
  std::array<std::int64_t, lanes> sum{};

  LaneSums operator-(const LaneSums& other) const {
    LaneSums result;
    for (std::size_t i = 0; i < lanes; ++i) result.sum[i] = sum[i] - other.sum[i];
    return result;
  }

  template <typename Bin>
  void add(const Bin* row) {
    for (std::size_t i = 0; i < lanes; ++i) sum[i] += row[i];
  }

  // The mass is the last lane.
  double mass() const { return static_cast<double>(sum[lanes - 1]); }

  // Where rows are counted, the lane before the mass does it.
  double rows() const { return static_cast<double>(sum[lanes - 2]); }
};

// Returns what a leaf with these sums contributes to the worth of a tree: the sum of G^2 / (W + l2) over the lanes of
// the gradient, which come first.
template <std::size_t lanes>
double joint_worth(const LaneSums<lanes>& sums, std::size_t gradient_lanes, double l2) {
  double squares = 0.0;
  for (std::size_t i = 0; i < gradient_lanes; ++i) {
    squares += static_cast<double>(sums.sum[i]) * static_cast<double>(sums.sum[i]);
  }
  return squares / (2.0 * sums.mass() + l2);
}

template <std::size_t lanes>
struct JointSplit {
  double gain = 0.0;  // It is the worth of both sides less the worth of the node as a leaf.
  std::int32_t feature = -1;
  Code code = 0;
  bool missing_left = false;
  CodeSet goes_left;
  LaneSums<lanes> left;
};

// Every candidate split has the squares of the sums of both sides, and from these the worth of the split.
struct JointCandidates {
  static constexpr std::size_t kSize = kBins;
  alignas(kCacheLineBytes) std::array<double, kSize> left_squares, right_squares, mass_left, rows_left, worth;
};

// Adds up the numbers of a register, half of it to the other half until one is left.
template <std::size_t lanes>
__attribute__((always_inline)) inline double add_up(const typename Register<double, lanes>::Type& numbers) {
  if constexpr (lanes == 1) {
    return numbers[0];
  } else {
    typename Register<double, lanes / 2>::Type halves[2];
    std::memcpy(halves, &numbers, sizeof halves);
    return add_up<lanes / 2>(halves[0] + halves[1]);
  }
}

// Sums up bins one after the other, and writes the squares of what is left and right of each. `places` are the bins in
// their order, null for the order that they have. The sums on the left begin with those of `first`.
template <typename Bin, std::size_t lanes>
__attribute__((always_inline)) inline void scan_bins_plainly(const Bin* bins, const Code* places, std::size_t count,
                                                             const Bin* first, const Bin* node,
                                                             std::size_t gradient_lanes, JointCandidates& c) {
  using Sums = typename Register<Bin, lanes>::Type;
  using Reals = typename Register<double, lanes>::Type;
  Sums left, all, mask;
  std::memcpy(&left, first, sizeof left);
  std::memcpy(&all, node, sizeof all);
  for (std::size_t i = 0; i < lanes; ++i) mask[i] = i < gradient_lanes ? Bin{-1} : Bin{0};
  const Reals all_reals = __builtin_convertvector(all & mask, Reals);
  for (std::size_t i = 0; i < count; ++i) {
    Sums bin;
    std::memcpy(&bin, bins + (places == nullptr ? i : places[i]) * lanes, sizeof bin);
    left += bin;
    const Reals on_left = __builtin_convertvector(left & mask, Reals);
    const Reals on_right = all_reals - on_left;
    c.left_squares[i] = add_up<lanes>(on_left * on_left);
    c.right_squares[i] = add_up<lanes>(on_right * on_right);
    c.mass_left[i] = static_cast<double>(left[lanes - 1]);
    c.rows_left[i] = static_cast<double>(left[lanes - 2]);
  }
}

#if defined(__x86_64__)
template <typename Bin, std::size_t lanes>
__attribute__((target("avx2"))) void scan_bins_avx2(const Bin* bins, const Code* places, std::size_t count,
                                                    const Bin* first, const Bin* node, std::size_t gradient_lanes,
                                                    JointCandidates& c) {
  scan_bins_plainly<Bin, lanes>(bins, places, count, first, node, gradient_lanes, c);
}
#endif

// Scans bins with the widest registers that the machine has. Both ways compute the same bits.
template <typename Bin, std::size_t lanes>
void scan_bins(const Bin* bins, const Code* places, std::size_t count, const Bin* first, const Bin* node,
               std::size_t gradient_lanes, JointCandidates& c) {
#if defined(__x86_64__)
  if (has_wide_registers()) {
    return scan_bins_avx2<Bin, lanes>(bins, places, count, first, node, gradient_lanes, c);
  }
#endif
  scan_bins_plainly<Bin, lanes>(bins, places, count, first, node, gradient_lanes, c);
}

// Computes the worth of every candidate. It is NaN where a side is empty and l2 is 0.
UNTWIST_VECTORISED inline void score_joint_splits(JointCandidates& c, std::size_t count, double mass, double l2) {
  for (std::size_t i = 0; i < count; ++i) {
    const double left = 2.0 * c.mass_left[i] + l2;
    const double right = 2.0 * (mass - c.mass_left[i]) + l2;
    c.worth[i] = c.left_squares[i] / left + c.right_squares[i] / right;
  }
}

// Looks for the best split of one node by one column.
template <typename Bin, std::size_t lanes>
class JointColumnSearch {
 public:
  // `rows` is how many rows the node has.
  JointColumnSearch(const Column& column, const SummedColumn<Bin>& sums, const LaneSums<lanes>& node, std::size_t rows,
                    std::size_t gradient_lanes, const LeafLimits& limits, const SplitDraw& draw)
      : column_(column),
        bins_(sums.sums),
        filled_(sums.filled),
        node_(node),
        gradient_lanes_(gradient_lanes),
        limits_(limits),
        draw_(draw),
        is_sparse_(column.category_count > 0 || (!draw && rows < static_cast<std::size_t>(column.values()))) {
    for (std::size_t i = 0; i < lanes; ++i) node_bin_[i] = static_cast<Bin>(node.sum[i]);
  }

  struct Best {
    double worth = -std::numeric_limits<double>::infinity();
    bool missing_left = false;
    std::size_t lane = 0;  // Categories are in the order of this lane.
  };

  // Returns the worth of the best split, on which side of it missing values are, and by which lane categories are in
  // order.
  Best find_best(JointCandidates& c) {
    Best best;
    const bool is_category = column_.category_count > 0;
    const std::size_t orders = is_category ? gradient_lanes_ : has_missing() ? 2 : 1;
    const bool draws_lane = is_category && draw_;
    const std::size_t drawn_lane = draws_lane ? scale_down(mix(*draw_), orders) : 0;
    for (std::size_t order = 0; order < orders; ++order) {
      if (draws_lane && order != drawn_lane) continue;
      const bool missing_left = !is_category && order == 1;
      const std::size_t lane = is_category ? order : 0;
      score(c, missing_left, lane);
      const double worth = find_largest(c.worth.data(), count_);
      if (worth > best.worth) best = {worth, missing_left, lane};
    }
    return best;
  }

  // Returns the split that find_best found, in full but for its gain.
  JointSplit<lanes> make_split(JointCandidates& c, const Best& best, std::int32_t feature) {
    score(c, best.missing_left, best.lane);
    const auto end = c.worth.begin() + static_cast<std::ptrdiff_t>(count_);
    const auto found = std::find(c.worth.begin(), end, best.worth);
    const std::size_t at = first_ + static_cast<std::size_t>(found - c.worth.begin());
    JointSplit<lanes> split = column_.category_count > 0
                                  ? split_categories(at)
                                  : split_numbers(is_sparse_ ? places_[at] : static_cast<Code>(at), best.missing_left);
    split.feature = feature;
    return split;
  }

 private:
  const Bin* bin(std::size_t code) const { return bins_ + code * lanes; }
  Bin mass_of(std::size_t code) const { return bin(code)[lanes - 1]; }
  bool has_missing() const { return mass_of(column_.missing_code()) > 0; }

  void score(JointCandidates& c, bool missing_left, std::size_t lane) {
    std::array<Bin, lanes> nothing{};
    const bool is_category = column_.category_count > 0;
    if (is_category) {
      sort_categories(lane);
    } else if (is_sparse_) {
      list_filled_bins();
    } else {
      count_ = static_cast<std::size_t>(column_.values());
    }
    const Bin* first = missing_left ? bin(column_.missing_code()) : nothing.data();
    scan_bins<Bin, lanes>(bins_, is_sparse_ ? places_.data() : nullptr, count_, first, node_bin_.data(),
                          gradient_lanes_, c);
    if (draw_) keep_drawn(c, static_cast<double>(first[lanes - 1]));
    score_joint_splits(c, count_, node_.mass(), limits_.l2);
    if (limits_.min_weight > 0.0) {
      rule_out_small_sides(c.mass_left.data(), count_, node_.mass(), limits_.min_weight, c.worth.data());
    }
    if (limits_.min_rows > 0.0) {
      rule_out_small_sides(c.rows_left.data(), count_, node_.rows(), limits_.min_rows, c.worth.data());
    }
  }

  // Makes the candidate that is drawn the only one. The masses on the left begin with `none`.
  void keep_drawn(JointCandidates& c, double none) {
    const bool tells_missing = column_.category_count == 0 && has_missing();
    const auto drawn = draw_candidate(c.mass_left.data(), count_, none, tells_missing, *draw_);
    count_ = drawn ? 1 : 0;
    if (!drawn) return;
    first_ = *drawn;
    for (auto* each : {&c.left_squares, &c.right_squares, &c.mass_left, &c.rows_left}) each->front() = (*each)[first_];
  }

  // Lists the bins of numbers that have a mass. An empty bin would only repeat the candidate before it.
  void list_filled_bins() {
    count_ = 0;
    const auto values = static_cast<std::size_t>(column_.values());
    if (filled_ != nullptr) {
      filled_->for_each(values, [&](std::size_t code) { places_[count_++] = static_cast<Code>(code); });
      return;
    }
    for (std::size_t code = 0; code < values; ++code) {
      places_[count_] = static_cast<Code>(code);
      count_ += mass_of(code) > 0;
    }
  }

  // Orders the categories with a mass here, the missing values as one of them, by the mean of a lane.
  void sort_categories(std::size_t lane) {
    count_ = 0;
    std::array<double, JointCandidates::kSize> mean;
    for (std::size_t code = 0; code <= column_.missing_code(); ++code) {
      if (mass_of(code) == 0) continue;
      const double weight = 2.0 * static_cast<double>(mass_of(code));
      mean[code] = static_cast<double>(bin(code)[lane]) / (weight + limits_.l2 + limits_.category_smoothing);
      places_[count_++] = static_cast<Code>(code);
    }
    present_ = count_;
    std::stable_sort(places_.begin(), places_.begin() + static_cast<std::ptrdiff_t>(count_),
                     [&](Code a, Code b) { return mean[a] < mean[b]; });
  }

  // Returns the split that sends codes up to `last` left.
  JointSplit<lanes> split_numbers(Code last, bool missing_left) const {
    JointSplit<lanes> split;
    split.code = last;
    if (missing_left) split.left.add(bin(column_.missing_code()));
    for (std::size_t code = 0; code <= last; ++code) split.left.add(bin(code));
    split.missing_left = has_missing() ? missing_left : is_left_heavier(split);
    split.goes_left = CodeSet::up_to(last);
    split.goes_left.put(column_.missing_code(), split.missing_left);
    return split;
  }

  // Returns the split that sends categories up to place `last` of their order left.
  JointSplit<lanes> split_categories(std::size_t last) const {
    JointSplit<lanes> split;
    for (std::size_t i = 0; i <= last; ++i) split.left.add(bin(places_[i]));
    const bool unseen_left = is_left_heavier(split);
    for (std::size_t code = 0; code <= column_.missing_code(); ++code) {
      split.goes_left.put(static_cast<Code>(code), unseen_left);
    }
    for (std::size_t i = 0; i < present_; ++i) split.goes_left.put(places_[i], i <= last);
    split.missing_left = split.goes_left.has(column_.missing_code());
    return split;
  }

  // Values that training never saw here go to the heavier side.
  bool is_left_heavier(const JointSplit<lanes>& split) const { return 2.0 * split.left.mass() >= node_.mass(); }

  const Column& column_;
  const Bin* bins_;
  const CodeSet* filled_;  // Only these bins have a mass. Null means that any may have one.
  const LaneSums<lanes>& node_;
  const std::size_t gradient_lanes_;
  const LeafLimits& limits_;
  const SplitDraw draw_;
  const bool is_sparse_;  // The candidates are the places of some bins, not all bins in their order.
  std::array<Bin, lanes> node_bin_;
  std::size_t count_ = 0;                            // There are so many candidates.
  std::size_t first_ = 0;                            // The first of them is the split at this place.
  std::size_t present_ = 0;                          // So many categories have a mass here.
  std::array<Code, JointCandidates::kSize> places_;  // They are the bins of the candidates, categories in order.
};

}  // namespace untwist
