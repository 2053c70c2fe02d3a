// Grows one tree of two classes on the rows of a round.
//
// Rows are grouped by class, so a row adds one number per feature. The sums of both classes make G = W_pos - W_neg and
// W = W_pos + W_neg.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "contest.hpp"
#include "dataset.hpp"
#include "draws.hpp"
#include "growing_nodes.hpp"
#include "histogram_builder.hpp"
#include "rows.hpp"
#include "settings.hpp"
#include "splitting.hpp"
#include "threads.hpp"
#include "tree.hpp"

namespace untwist {

// The edge of a tree is the weighted mean of label times value over the rows.
struct GrownTree {
  Tree tree;
  double edge = 0.0;
};

// The nodes of such a tree have the weights of both classes, and bounds on the values of their leaves.
template <typename Bin>
struct ClassNodes {
  struct Node : GrowingNode<Histogram<Bin>, Split> {
    ClassWeights weight{};
    Bounds bounds;
  };
  using Histograms = HistogramBuilder<Bin>;
  using Search = ColumnSearch<Bin>;
  using Buffer = Candidates;
  using Adder = ClassAdder<Bin>;
  using Contest = untwist::Contest<Bin>;

  // Fewer searches than this are done before another thread has woken up.
  static constexpr std::size_t kFewSearches = 8;

  // The splits of a list can be entered one by one.
  static constexpr bool kEntersLists = true;
};

template <typename Bin>
class TreeGrower : private NodeGrower<TreeGrower<Bin>, ClassNodes<Bin>> {
  using Base = NodeGrower<TreeGrower<Bin>, ClassNodes<Bin>>;
  using GrownNode = typename ClassNodes<Bin>::Node;

 public:
  // `unit` is the fixed-point weight 1, `key` that of the round, and `columns` are those that the tree may use.
  TreeGrower(const Dataset& data, const TreeGrowth& growth, double unit, std::uint64_t key,
             const std::vector<std::uint32_t>& columns, RoundRows& rows, HistogramBuilder<Bin>& histograms,
             ColumnSpace<ClassNodes<Bin>>& column_space, ThreadPool& pool)
      : Base(data, growth, key, columns, histograms, column_space, pool, rows.sample_weight * unit),
        adder_(histograms.adder()),
        rows_(rows),
        limits_{growth.l2 * unit, growth.min_weight_fraction_leaf * total(rows.weight),
                growth.min_samples_leaf * static_cast<double>(kOneRow) * kRowsAfterRounding,
                growth.category_smoothing * unit} {}

  // There is no tree if `interrupted`, which is asked after every step, says so.
  std::optional<GrownTree> grow(const std::function<bool()>& interrupted) {
    add_leaf(rows_.weight, Bounds{});
    GrownNode root;
    root.rows = rows_.all;
    root.weight = rows_.weight;
    if (!this->grow_from(std::move(root), interrupted)) return std::nullopt;
    const double edge = find_edge();
    return GrownTree{std::move(this->tree_), edge};
  }

 private:
  friend Base;

  RoundRows& row_list() { return rows_; }

  // A node of one class, or one that is too light for two leaves, need not be searched.
  bool can_split(const GrownNode& node) const {
    return node.weight[0] > 0 && node.weight[1] > 0 && total(node.weight) >= 2.0 * limits_.min_weight;
  }

  double find_mass(const GrownNode& node) const { return total(node.weight); }

  double find_worth(const GrownNode& node) const { return leaf_worth(node.weight, limits_.l2, node.bounds); }

  ColumnSearch<Bin> search_column(const GrownNode& node, std::size_t feature, const SplitDraw& draw) const {
    return search_bins(node, feature, draw, this->histograms_.column(*node.histogram, feature));
  }

  ColumnSearch<Bin> search_sums(const GrownNode& node, std::size_t feature, const SplitDraw& draw,
                                const SummedColumn<Bin>& sums) const {
    return search_bins(node, feature, draw, adder_.view(sums));
  }

  ColumnSearch<Bin> search_bins(const GrownNode& node, std::size_t feature, const SplitDraw& draw,
                                const ColumnHistogram<Bin>& bins) const {
    return {this->data_.columns[feature], bins, node.weight, limits_, node.bounds, monotone(feature), draw};
  }

  const ClassAdder<Bin>& adder() const { return adder_; }

  typename ClassAdder<Bin>::Totals find_totals(const GrownNode& node) const {
    return adder_.find_totals(node.weight, node.rows, rows_.entries.data());
  }

  void begin(Contest<Bin>& contest, const GrownNode& node) const { contest.begin(node.weight, limits_, node.bounds); }

  void enter(Contest<Bin>& contest, const GrownNode&, std::size_t place, std::size_t feature, const SplitDraw& draw,
             const SummedColumn<Bin>& sums) const {
    contest.enter(place, this->data_.columns[feature], adder_.view(sums), monotone(feature), draw);
  }

  void build(const std::vector<typename HistogramBuilder<Bin>::Request>& requests) {
    this->histograms_.build(rows_.entries.data(), requests, this->pool_);
  }

  void add_leaves(const GrownNode& node) {
    const auto bounds = child_bounds(node);
    add_leaf(node.split.left, bounds[0]);
    add_leaf(node.weight - node.split.left, bounds[1]);
  }

  void describe_child(const GrownNode& parent, std::size_t side, GrownNode& child) const {
    child.weight = side == 0 ? parent.split.left : parent.weight - parent.split.left;
    child.bounds = child_bounds(parent)[side];
  }

  // Appends a leaf with its value.
  void add_leaf(const ClassWeights& weight, const Bounds& bounds) {
    Node leaf;
    leaf.value = leaf_value(weight, limits_.l2, bounds);
    this->tree_.push_back(leaf);
    agreement_.push_back(difference(weight) * leaf.value);
  }

  double find_edge() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < this->tree_.size(); ++i) {
      if (this->tree_[i].is_leaf()) sum += agreement_[i];
    }
    return sum / this->total_weight_;
  }

  int monotone(std::size_t feature) const {
    return this->growth_.monotone.empty() ? 0 : this->growth_.monotone[feature];
  }

  // Below a split by a monotone column all values of one side stay on its side of the middle.
  std::array<Bounds, 2> child_bounds(const GrownNode& node) const {
    std::array<Bounds, 2> bounds{node.bounds, node.bounds};
    const int sign = monotone(static_cast<std::size_t>(node.split.feature));
    if (sign == 0) return bounds;
    const double left_value = leaf_value(node.split.left, limits_.l2, node.bounds);
    const double right_value = leaf_value(node.weight - node.split.left, limits_.l2, node.bounds);
    const double middle = 0.5 * (left_value + right_value);
    (sign > 0 ? bounds[0].high : bounds[0].low) = middle;
    (sign > 0 ? bounds[1].low : bounds[1].high) = middle;
    return bounds;
  }

  const ClassAdder<Bin> adder_;
  RoundRows& rows_;
  const LeafLimits limits_;
  std::vector<double> agreement_;  // As a leaf a node has G * value, its rows' sum of weight times label times value.
};

}  // namespace untwist
