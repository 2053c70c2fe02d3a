// Grows one joint tree on the rows of a round: its splits serve all classes at once. Its leaves get their values later,
// from the whole gradient, of which the lanes may be a sketch.
//
// The order in which nodes are searched, split and given their histograms is that of growing.hpp, and what changes in
// one should change in the other. They are apart since a node of two classes has two sums and bounds on its values,
// while one of several classes has lanes. The partition of rows is shared.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "joint_histogram.hpp"
#include "joint_lanes.hpp"
#include "joint_splitting.hpp"
#include "partitioning.hpp"
#include "rows.hpp"
#include "settings.hpp"
#include "splitting.hpp"
#include "threads.hpp"
#include "tree.hpp"

namespace untwist {

// These rows grow a joint tree. All of them are on one side of the list, whatever their class.
template <std::size_t lanes>
struct JointRows {
  JointRows(std::size_t rows) : list(rows), of_rows(rows * lanes, 0) {}

  RoundRows list;
  AlignedVector<Lane> of_rows;  // The lanes of all rows, as [row][lane].
  LaneSums<lanes> sums;         // The rows of the list have these sums.
};

template <typename Bin, std::size_t lanes>
class JointTreeGrower {
 public:
  // `unit` is the fixed-point weight 1, and `columns` are those that the tree may use.
  JointTreeGrower(const Dataset& data, const TreeGrowth& growth, double unit, std::size_t gradient_lanes,
                  const std::vector<std::uint32_t>& columns, JointRows<lanes>& rows,
                  JointHistogramBuilder<Bin, lanes>& histograms, ThreadPool& pool)
      : data_(data),
        growth_(growth),
        gradient_lanes_(gradient_lanes),
        columns_(columns),
        rows_(rows),
        histograms_(histograms),
        pool_(pool),
        total_weight_(rows.list.sample_weight * unit),
        limits_{growth.l2 * unit, growth.min_weight_fraction_leaf * rows.sums.mass(),
                growth.min_samples_leaf * unit * kRowsAfterRounding, growth.category_smoothing * unit} {}

  // There is no tree if `interrupted`, which is asked after every step, says so.
  std::optional<Tree> grow(const std::function<bool()>& interrupted) {
    tree_.push_back(Node{});
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
    return std::move(tree_);
  }

 private:
  // A growing node is a leaf that may still split, with its rows.
  struct GrowingNode {
    std::int32_t node = 0;
    int depth = 0;
    NodeRows rows;
    LaneSums<lanes> sums;
    std::unique_ptr<JointHistogram<Bin>> histogram;
    bool has_parent_histogram = false;  // The histogram is still the parent's. The sibling's must be taken away.
    JointSplit<lanes> split;
  };

  using Search = JointColumnSearch<Bin, lanes>;
  using Best = typename Search::Best;

  // The roundings of many rows may cost a leaf this share of its sample weight, and it still has enough.
  static constexpr double kRowsAfterRounding = 1.0 - 0x1p-12;

  // So many nodes split together. With more of them a deep tree would keep too many histograms.
  static constexpr std::size_t kNodesTogether = 64;

  // Fewer searches than this are done before another thread has woken up.
  static constexpr std::size_t kFewSearches = 4;

  // A split must gain more than this share of the node's weight, which rounding could feign.
  static constexpr double kMinGain = 1e-12;

  // A node that is too light for two leaves need not be searched.
  bool can_split(const GrowingNode& node) const {
    return node.rows.size() > 1 && node.sums.mass() >= 2.0 * limits_.min_weight;
  }

  std::vector<GrowingNode> make_root() {
    std::vector<GrowingNode> nodes(1);
    GrowingNode& root = nodes[0];
    root.rows = rows_.list.all;
    root.sums = rows_.sums;
    if (can_split(root)) {
      root.histogram = histograms_.take();
      build({{root.rows, root.histogram.get()}});
    }
    return nodes;
  }

  void build(const std::vector<typename JointHistogramBuilder<Bin, lanes>::Request>& requests) {
    histograms_.build(rows_.list.entries.data(), rows_.of_rows.data(), requests, pool_);
  }

  // Finds the best split of every node, ties going to the smaller feature. Nodes that have one are open then, the
  // others stay leaves.
  void search(std::vector<GrowingNode>& nodes) {
    const std::size_t width = columns_.size();
    const std::vector<Best> candidates = search_columns(nodes);
    JointCandidates buffer;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      GrowingNode& node = nodes[i];
      node.has_parent_histogram = false;
      const double leaf = joint_worth(node.sums, gradient_lanes_, limits_.l2);
      double best = leaf + kMinGain * node.sums.mass();
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

  // Finds the best split of every node by every column, as [node][column]. Two siblings are neighbours in `nodes`, and
  // one of them has the histogram of their parent until a column is searched: what its sibling has is taken away then.
  std::vector<Best> search_columns(std::vector<GrowingNode>& nodes) {
    const std::size_t width = columns_.size();
    const std::size_t pairs = (nodes.size() + 1) / 2;
    const std::size_t searches = pairs * width;
    std::vector<Best> candidates(2 * searches);
    pool_.chunks(searches, searches < kFewSearches ? searches : 1, [&](int, std::size_t first, std::size_t last) {
      JointCandidates buffer;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t first_sibling = i / width * 2;
        const std::size_t end = std::min(nodes.size(), first_sibling + 2);
        const std::size_t place = i % width;
        const std::size_t feature = columns_[place];
        for (std::size_t k = first_sibling; k < end; ++k) {
          if (nodes[k].has_parent_histogram) {
            histograms_.subtract(*nodes[k].histogram, *nodes[k ^ 1].histogram, feature);
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

  Search search_column(const GrowingNode& node, std::size_t feature) const {
    return {data_.columns[feature],
            histograms_.column(*node.histogram, feature),
            node.sums,
            node.rows.size(),
            gradient_lanes_,
            limits_};
  }

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
    const JointSplit<lanes>& split = node.split;
    Node& parent = tree_[static_cast<std::size_t>(node.node)];
    parent.feature = split.feature;
    parent.code = split.code;
    parent.missing_left = split.missing_left;
    parent.goes_left = split.goes_left;
    parent.gain = split.gain / total_weight_;
    parent.left = static_cast<std::int32_t>(tree_.size());
    tree_.resize(tree_.size() + 2);
  }

  // Sends the rows of every node to its children and gives these their histograms.
  std::vector<GrowingNode> make_children(std::vector<GrowingNode>& parents) {
    std::vector<Division> divisions;
    for (const GrowingNode& parent : parents) {
      const CodeColumn column = data_.column(static_cast<std::size_t>(parent.split.feature));
      divisions.push_back({parent.rows, column, parent.split.goes_left, {}, {}});
    }
    partition(rows_.list, divisions, pool_);
    std::vector<GrowingNode> children(2 * parents.size());
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const GrowingNode& parent = parents[i];
      for (std::size_t k = 0; k < 2; ++k) {
        GrowingNode& child = children[2 * i + k];
        child.node = tree_[static_cast<std::size_t>(parent.node)].left + static_cast<std::int32_t>(k);
        child.depth = parent.depth + 1;
        child.rows = k == 0 ? divisions[i].left : divisions[i].right;
        child.sums = k == 0 ? parent.split.left : parent.sums - parent.split.left;
      }
    }
    build_histograms(parents, children);
    return children;
  }

  // Sums up the child with fewer rows. Its sibling keeps the histogram of the parent, from which it is taken away
  // later.
  void build_histograms(std::vector<GrowingNode>& parents, std::vector<GrowingNode>& children) {
    std::vector<typename JointHistogramBuilder<Bin, lanes>::Request> requests;
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
    build(requests);
  }

  const Dataset& data_;
  const TreeGrowth& growth_;
  const std::size_t gradient_lanes_;
  const std::vector<std::uint32_t>& columns_;
  JointRows<lanes>& rows_;
  JointHistogramBuilder<Bin, lanes>& histograms_;
  ThreadPool& pool_;
  const double total_weight_;  // All rows would weigh so much at boosting weight 1.
  const LeafLimits limits_;
  Tree tree_;
  int leaves_ = 1;
  std::vector<GrowingNode> open_;  // These leaves have a split that may still be made.
};

}  // namespace untwist
