// Grows one tree on the rows of a round.
//
// Rows are grouped by class, so a row adds one number per feature. The sums of both classes make G = W_pos - W_neg and
// W = W_pos + W_neg.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "histogram_builder.hpp"
#include "partitioning.hpp"
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

template <typename Bin>
class TreeGrower {
 public:
  // `unit` is the fixed-point weight 1, and `columns` are those that the tree may use.
  TreeGrower(const Dataset& data, const TreeGrowth& growth, double unit, const std::vector<std::uint32_t>& columns,
             RoundRows& rows, HistogramBuilder<Bin>& histograms, ThreadPool& pool)
      : data_(data),
        growth_(growth),
        columns_(columns),
        rows_(rows),
        histograms_(histograms),
        pool_(pool),
        total_weight_(rows.sample_weight * unit),
        limits_{growth.l2 * unit, growth.min_weight_fraction_leaf * total(rows.weight),
                growth.min_samples_leaf * static_cast<double>(kOneRow) * kRowsAfterRounding,
                growth.category_smoothing * unit} {}

  // There is no tree if `interrupted`, which is asked after every step, says so.
  std::optional<GrownTree> grow(const std::function<bool()>& interrupted) {
    add_leaf(rows_.weight, Bounds{});
    std::vector<GrowingNode> fresh = make_root();
    for (;;) {
      search(fresh);
      if (open_.empty()) break;
      std::vector<GrowingNode> to_partition = split_next();
      if (leaves_ == growth_.max_leaf_nodes) break;
      fresh = make_children(to_partition);
      if (interrupted()) return std::nullopt;
    }
    for (GrowingNode& node : open_) histograms_.give_back(std::move(node.histogram));
    const double edge = find_edge();
    return GrownTree{std::move(tree_), edge};
  }

 private:
  // A growing node is a leaf that may still split, with its rows.
  struct GrowingNode {
    std::int32_t node = 0;
    int depth = 0;
    NodeRows rows;
    ClassWeights weight{};
    Bounds bounds;
    std::unique_ptr<Histogram<Bin>> histogram;
    bool has_parent_histogram = false;  // The histogram is still the parent's. The sibling's must be taken away.
    Split split;
  };

  // The roundings of many rows may cost a leaf this share of its sample weight, and it still has enough.
  static constexpr double kRowsAfterRounding = 1.0 - 0x1p-12;

  // So many nodes split together. With more of them a deep tree would keep too many histograms.
  static constexpr std::size_t kNodesTogether = 64;

  // A thread takes so many searches at a time, which is more work than the taking.
  static constexpr std::size_t kSearchesTogether = 2;

  // Fewer searches than this are done before another thread has woken up.
  static constexpr std::size_t kFewSearches = 8;

  // A split must gain more than this share of the node's weight, which rounding could feign.
  static constexpr double kMinGain = 1e-12;

  // Appends a leaf with its value.
  void add_leaf(const ClassWeights& weight, const Bounds& bounds) {
    Node leaf;
    leaf.value = leaf_value(weight, limits_.l2, bounds);
    tree_.push_back(leaf);
    agreement_.push_back(difference(weight) * leaf.value);
  }

  double find_edge() const {
    double sum = 0.0;
    for (std::size_t i = 0; i < tree_.size(); ++i) {
      if (tree_[i].is_leaf()) sum += agreement_[i];
    }
    return sum / total_weight_;
  }

  // A node of one class, or one that is too light for two leaves, need not be searched.
  bool can_split(const GrowingNode& node) const {
    return node.weight[0] > 0 && node.weight[1] > 0 && total(node.weight) >= 2.0 * limits_.min_weight;
  }

  std::vector<GrowingNode> make_root() {
    std::vector<GrowingNode> nodes(1);
    GrowingNode& root = nodes[0];
    root.rows = rows_.all;
    root.weight = rows_.weight;
    if (can_split(root)) {
      root.histogram = histograms_.take();
      histograms_.build(rows_.entries.data(), {{root.rows, root.histogram.get()}}, pool_);
    }
    return nodes;
  }

  // Finds the best split of every node, ties going to the smaller feature. Nodes that have one are open then, the
  // others stay leaves.
  void search(std::vector<GrowingNode>& nodes) {
    const std::size_t width = columns_.size();
    const std::vector<Best> candidates = search_columns(nodes);
    Candidates buffer;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      GrowingNode& node = nodes[i];
      node.has_parent_histogram = false;
      const double leaf = leaf_worth(node.weight, limits_.l2, node.bounds);
      double best = leaf + kMinGain * total(node.weight);
      std::size_t at = width;
      for (std::size_t k = 0; k < width; ++k) {
        if (candidates[i * width + k].worth > best) {
          best = candidates[i * width + k].worth;
          at = k;
        }
      }
      if (at == width) {
        histograms_.give_back(std::move(node.histogram));
        continue;
      }
      const auto feature = static_cast<std::int32_t>(columns_[at]);
      node.split = search_column(node, columns_[at]).make_split(buffer, candidates[i * width + at], feature);
      node.split.gain = best - leaf;
      open_.push_back(std::move(node));
    }
  }

  using Best = typename ColumnSearch<Bin>::Best;

  // Finds the best split of every node by every column, as [node][column]. Two siblings are neighbours in `nodes`, and
  // one of them has the histogram of their parent until a column is searched: what its sibling has is taken away then.
  std::vector<Best> search_columns(std::vector<GrowingNode>& nodes) {
    const std::size_t width = columns_.size();
    const std::size_t pairs = (nodes.size() + 1) / 2;
    const std::size_t searches = pairs * width;
    const bool few = searches < kFewSearches;
    std::vector<Best> candidates(2 * searches);
    pool_.chunks(searches, few ? searches : kSearchesTogether, [&](int, std::size_t first, std::size_t last) {
      Candidates buffer;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t first_sibling = i / width * 2;
        const std::size_t end = std::min(nodes.size(), first_sibling + 2);
        const std::size_t place = i % width;
        const std::size_t feature = columns_[place];
        for (std::size_t k = first_sibling; k < end; ++k) {
          if (nodes[k].has_parent_histogram) {
            const std::size_t sibling = k ^ 1;
            histograms_.subtract(*nodes[k].histogram, *nodes[sibling].histogram, feature);
          }
        }
        for (std::size_t k = first_sibling; k < end; ++k) {
          if (nodes[k].histogram == nullptr || !can_split(nodes[k])) continue;
          candidates[k * width + place] = search_column(nodes[k], feature).find_best(buffer);
        }
      }
    });
    return candidates;
  }

  ColumnSearch<Bin> search_column(const GrowingNode& node, std::size_t feature) const {
    return {data_.columns[feature], histograms_.column(*node.histogram, feature), node.weight, limits_, node.bounds,
            monotone(feature)};
  }

  int monotone(std::size_t feature) const { return growth_.monotone.empty() ? 0 : growth_.monotone[feature]; }

  // Splits the nodes whose turn it is. Returns those whose children may split in their turn.
  std::vector<GrowingNode> split_next() {
    std::vector<GrowingNode> to_partition;
    for (GrowingNode& node : take_next()) {
      split(node);
      const bool children_are_leaves = node.depth + 1 == growth_.max_depth || leaves_ == growth_.max_leaf_nodes;
      if (children_are_leaves) {
        histograms_.give_back(std::move(node.histogram));
      } else {
        to_partition.push_back(std::move(node));
      }
    }
    return to_partition;
  }

  // Takes the nodes to split now off the open ones, and counts the leaves.
  std::vector<GrowingNode> take_next() {
    std::vector<GrowingNode> next;
    if (growth_.max_leaf_nodes > 0) {
      std::swap(open_[find_best_open()], open_.back());
      next.push_back(std::move(open_.back()));
      open_.pop_back();
    } else {
      const std::size_t from = open_.size() - std::min(open_.size(), kNodesTogether);
      std::move(open_.begin() + static_cast<std::ptrdiff_t>(from), open_.end(), std::back_inserter(next));
      open_.resize(from);
    }
    leaves_ += static_cast<int>(next.size());
    return next;
  }

  std::size_t find_best_open() const {
    std::size_t best = 0;
    for (std::size_t i = 1; i < open_.size(); ++i) {
      const double gain = open_[i].split.gain;
      const double best_gain = open_[best].split.gain;
      if (gain > best_gain || (gain == best_gain && open_[i].node < open_[best].node)) best = i;
    }
    return best;
  }

  // Makes two leaves of a leaf.
  void split(const GrowingNode& node) {
    const Split& split = node.split;
    Node& parent = tree_[static_cast<std::size_t>(node.node)];
    parent.feature = split.feature;
    parent.code = split.code;
    parent.missing_left = split.missing_left;
    parent.goes_left = split.goes_left;
    parent.gain = split.gain / total_weight_;
    parent.left = static_cast<std::int32_t>(tree_.size());
    const auto bounds = child_bounds(node);
    add_leaf(split.left, bounds[0]);
    add_leaf(node.weight - split.left, bounds[1]);
  }

  // Below a split by a monotone column all values of one side stay on its side of the middle.
  std::array<Bounds, 2> child_bounds(const GrowingNode& node) const {
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

  // Sends the rows of every node to its children and gives these their histograms.
  std::vector<GrowingNode> make_children(std::vector<GrowingNode>& parents) {
    std::vector<Division> divisions;
    for (const GrowingNode& parent : parents) {
      const CodeColumn column = data_.column(static_cast<std::size_t>(parent.split.feature));
      divisions.push_back({parent.rows, column, parent.split.goes_left, {}, {}});
    }
    partition(rows_, divisions, pool_);
    std::vector<GrowingNode> children(2 * parents.size());
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const GrowingNode& parent = parents[i];
      const auto bounds = child_bounds(parent);
      for (std::size_t k = 0; k < 2; ++k) {
        GrowingNode& child = children[2 * i + k];
        child.node = tree_[static_cast<std::size_t>(parent.node)].left + static_cast<std::int32_t>(k);
        child.depth = parent.depth + 1;
        child.rows = k == 0 ? divisions[i].left : divisions[i].right;
        child.weight = k == 0 ? parent.split.left : parent.weight - parent.split.left;
        child.bounds = bounds[k];
      }
    }
    build_histograms(parents, children);
    return children;
  }

  // Sums up the child with fewer rows. Its sibling keeps the histogram of the parent, from which it is taken away
  // later.
  void build_histograms(std::vector<GrowingNode>& parents, std::vector<GrowingNode>& children) {
    std::vector<typename HistogramBuilder<Bin>::Request> requests;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      GrowingNode& left = children[2 * i];
      GrowingNode& right = children[2 * i + 1];
      if (!can_split(left) && !can_split(right)) {
        histograms_.give_back(std::move(parents[i].histogram));
        continue;
      }
      const bool left_is_smaller = left.rows.size() <= right.rows.size();
      GrowingNode& smaller = left_is_smaller ? left : right;
      GrowingNode& larger = left_is_smaller ? right : left;
      smaller.histogram = histograms_.take();
      requests.push_back({smaller.rows, smaller.histogram.get()});
      larger.histogram = std::move(parents[i].histogram);
      larger.has_parent_histogram = true;
    }
    histograms_.build(rows_.entries.data(), requests, pool_);
  }

  const Dataset& data_;
  const TreeGrowth& growth_;
  const std::vector<std::uint32_t>& columns_;
  RoundRows& rows_;
  HistogramBuilder<Bin>& histograms_;
  ThreadPool& pool_;
  const double total_weight_;  // All rows would weigh so much at boosting weight 1.
  const LeafLimits limits_;
  Tree tree_;
  std::vector<double> agreement_;  // As a leaf a node has G * value, its rows' sum of weight times label times value.
  int leaves_ = 1;
  std::vector<GrowingNode> open_;  // These leaves have a split that may still be made.
};

}  // namespace untwist
