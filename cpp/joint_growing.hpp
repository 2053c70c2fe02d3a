// Grows one joint tree on the rows of a round: its splits serve all classes at once. Its leaves get their values later,
// from the whole gradient, of which the lanes may be a sketch.
#pragma once

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
#include "joint_histogram.hpp"
#include "joint_lanes.hpp"
#include "joint_splitting.hpp"
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

// The nodes of such a tree have the sums of all lanes.
template <typename Bin, std::size_t lanes>
struct JointNodes {
  struct Node : GrowingNode<Histogram<Bin>, JointSplit<lanes>> {
    LaneSums<lanes> sums;
  };
  using Histograms = JointHistogramBuilder<Bin, lanes>;
  using Search = JointColumnSearch<Bin, lanes>;
  using Buffer = JointCandidates;
  using Adder = JointAdder<Bin, lanes>;
  using Contest = PlainContest<Search, Buffer>;

  // Fewer searches than this are done before another thread has woken up.
  static constexpr std::size_t kFewSearches = 4;

  // A split has too many sums for lists to be worth a way of their own.
  static constexpr bool kEntersLists = false;
};

template <typename Bin, std::size_t lanes>
class JointTreeGrower : private NodeGrower<JointTreeGrower<Bin, lanes>, JointNodes<Bin, lanes>> {
  using Base = NodeGrower<JointTreeGrower<Bin, lanes>, JointNodes<Bin, lanes>>;
  using GrownNode = typename JointNodes<Bin, lanes>::Node;

 public:
  // `unit` is the fixed-point weight 1, `key` that of the round, and `columns` are those that the tree may use.
  JointTreeGrower(const Dataset& data, const TreeGrowth& growth, double unit, std::size_t gradient_lanes,
                  std::uint64_t key, const std::vector<std::uint32_t>& columns, JointRows<lanes>& rows,
                  JointHistogramBuilder<Bin, lanes>& histograms, ColumnSpace<JointNodes<Bin, lanes>>& column_space,
                  ThreadPool& pool)
      : Base(data, growth, key, columns, histograms, column_space, pool, rows.list.sample_weight * unit),
        gradient_lanes_(gradient_lanes),
        rows_(rows),
        limits_{growth.l2 * unit, growth.min_weight_fraction_leaf * rows.sums.mass(),
                growth.min_samples_leaf * unit * kRowsAfterRounding, growth.category_smoothing * unit} {}

  // There is no tree if `interrupted`, which is asked after every step, says so.
  std::optional<Tree> grow(const std::function<bool()>& interrupted) {
    this->tree_.push_back(Node{});
    GrownNode root;
    root.rows = rows_.list.all;
    root.sums = rows_.sums;
    if (!this->grow_from(std::move(root), interrupted)) return std::nullopt;
    return std::move(this->tree_);
  }

 private:
  friend Base;

  RoundRows& row_list() { return rows_.list; }

  // A node that is too light for two leaves need not be searched.
  bool can_split(const GrownNode& node) const {
    return node.rows.size() > 1 && node.sums.mass() >= 2.0 * limits_.min_weight;
  }

  double find_mass(const GrownNode& node) const { return node.sums.mass(); }

  double find_worth(const GrownNode& node) const { return joint_worth(node.sums, gradient_lanes_, limits_.l2); }

  JointColumnSearch<Bin, lanes> search_column(const GrownNode& node, std::size_t feature, const SplitDraw& draw) const {
    const std::size_t bins = static_cast<std::size_t>(this->data_.columns[feature].values()) + 1;
    return search_sums(node, feature, draw, {this->histograms_.column(*node.histogram, feature), bins});
  }

  JointColumnSearch<Bin, lanes> search_sums(const GrownNode& node, std::size_t feature, const SplitDraw& draw,
                                            const SummedColumn<Bin>& sums) const {
    return {this->data_.columns[feature], sums, node.sums, node.rows.size(), gradient_lanes_, limits_, draw};
  }

  JointAdder<Bin, lanes> adder() const { return {rows_.of_rows.data()}; }

  const LaneSums<lanes>& find_totals(const GrownNode& node) const { return node.sums; }

  using Contest = typename JointNodes<Bin, lanes>::Contest;

  void begin(Contest& contest, const GrownNode&) const { contest.begin(); }

  void enter(Contest& contest, const GrownNode& node, std::size_t place, std::size_t feature, const SplitDraw& draw,
             const SummedColumn<Bin>& sums) const {
    contest.enter(place, search_sums(node, feature, draw, sums));
  }

  void build(const std::vector<typename JointHistogramBuilder<Bin, lanes>::Request>& requests) {
    this->histograms_.build(rows_.list.entries.data(), rows_.of_rows.data(), requests, this->pool_);
  }

  void add_leaves(const GrownNode&) { this->tree_.resize(this->tree_.size() + 2); }

  void describe_child(const GrownNode& parent, std::size_t side, GrownNode& child) const {
    child.sums = side == 0 ? parent.split.left : parent.sums - parent.split.left;
  }

  const std::size_t gradient_lanes_;
  JointRows<lanes>& rows_;
  const LeafLimits limits_;
};

}  // namespace untwist
