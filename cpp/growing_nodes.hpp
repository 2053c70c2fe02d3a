// Grows a tree node by node, whatever a node has to sum up: the order in which nodes are searched, split and given
// their rows and histograms.
//
// A grower derives from NodeGrower and says what its nodes hold. A Kind names its types: Node (a GrowingNode with
// more), Histograms, Search (of a column), Buffer (for a search), Adder and Contest (for columns that are summed up one
// at a time), kFewSearches, below which other threads are not worth waking, and kEntersLists, which tells whether
// listed columns go to contests split by split (listed_splits.hpp).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <memory>
#include <utility>
#include <vector>

#include "column_sums.hpp"
#include "contest.hpp"
#include "dataset.hpp"
#include "draws.hpp"
#include "hashing.hpp"
#include "interactions.hpp"
#include "listed_splits.hpp"
#include "partitioning.hpp"
#include "rows.hpp"
#include "settings.hpp"
#include "threads.hpp"
#include "tree.hpp"

namespace untwist {

// The roundings of many rows may cost a leaf this share of its sample weight, and it still has enough.
inline constexpr double kRowsAfterRounding = 1.0 - 0x1p-12;

// A growing node is a leaf that may still split, with its rows.
template <typename Histogram, typename SplitOfNode>
struct GrowingNode {
  std::int32_t node = 0;
  int depth = 0;
  std::uint64_t key = 0;                         // It draws by this.
  std::shared_ptr<const Interactions::Way> way;  // Null means that any column may split it.
  NodeRows rows;
  std::unique_ptr<Histogram> histogram;
  bool has_parent_histogram = false;  // The histogram is still the parent's. The sibling's must be taken away.
  SplitOfNode split;
};

// What the trees of a booster share to sum up nodes column by column.
template <typename Kind>
struct ColumnSpace {
  // A thread sums up a column, and has a contest for every node.
  struct OfThread {
    ColumnSums<typename Kind::Adder> sums;
    FewRowsSums<typename Kind::Adder> few_rows_sums;
    ListedSplits<typename Kind::Adder> listed_splits;
    std::vector<typename Kind::Contest> contests;
  };

  // Makes room for so many threads, each with so many contests.
  void prepare(int count, std::size_t contests) {
    threads.resize(std::max(threads.size(), static_cast<std::size_t>(count)));
    for (OfThread& thread : threads) thread.contests.resize(std::max(thread.contests.size(), contests));
  }

  SearchedNodes<typename Kind::Adder> nodes;
  std::vector<OfThread> threads;
};

// A grower has these of its own: row_list(), can_split(node), find_mass(node), find_worth(node) as a leaf,
// search_column(node, feature, draw), build(requests), add_leaves(node) for the children of a node, and
// describe_child(parent, side, child). For columns that are summed up one at a time it has adder(), find_totals(node),
// begin(contest, node), enter(contest, node, place, feature, draw, sums) and search_sums(node, feature, draw, sums).
template <typename Grower, typename Kind>
class NodeGrower {
 protected:
  using Node = typename Kind::Node;
  using Histograms = typename Kind::Histograms;
  using Best = typename Kind::Search::Best;

  // `key` is that of the round, and `columns` are those that the tree may use.
  NodeGrower(const Dataset& data, const TreeGrowth& growth, std::uint64_t key,
             const std::vector<std::uint32_t>& columns, Histograms& histograms, ColumnSpace<Kind>& column_space,
             ThreadPool& pool, double total_weight)
      : data_(data),
        growth_(growth),
        split_draws_(growth, key),
        columns_(columns),
        histograms_(histograms),
        column_space_(column_space),
        pool_(pool),
        total_weight_(total_weight),
        few_rows_(count_few_rows()) {}

  // Grows the tree from its root, which is a leaf of the tree already. Returns whether it was finished: there is no
  // tree if `interrupted`, which is asked after every step, says so.
  bool grow_from(Node root, const std::function<bool()>& interrupted) {
    std::vector<Node> fresh;
    root.key = split_draws_.root_key();
    if (self().can_split(root) && data_.has_rows() && root.rows.size() > few_rows_) {
      root.histogram = histograms_.take();
      self().build({{root.rows, root.histogram.get()}});
    }
    fresh.push_back(std::move(root));
    for (;;) {
      search(fresh);
      if (open_.empty()) break;
      std::vector<Node> to_partition = split_next();
      if (leaves_ == growth_.max_leaf_nodes) break;
      fresh = make_children(to_partition);
      if (interrupted()) return false;
    }
    for (Node& node : open_) histograms_.give_back(std::move(node.histogram));
    return true;
  }

  const Dataset& data_;
  const TreeGrowth& growth_;
  const SplitDraws split_draws_;
  const std::vector<std::uint32_t>& columns_;
  Histograms& histograms_;
  ColumnSpace<Kind>& column_space_;
  ThreadPool& pool_;
  const double total_weight_;   // All rows would weigh so much at boosting weight 1.
  const std::size_t few_rows_;  // A root, or two siblings, of up to so many rows each have no histograms.
  Tree tree_;

 private:
  // So many nodes split together. With more of them a deep tree would keep too many histograms.
  static constexpr std::size_t kNodesTogether = 64;

  // A thread takes so many columns at a time where there are no histograms.
  static constexpr std::size_t kColumnsTogether = 256;

  // Fewer splits than this are made before another thread has woken up.
  static constexpr std::size_t kFewSplits = 4;

  // The searches of a level are cut into so many chunks for each thread.
  static constexpr std::size_t kChunksPerThread = 8;

  // A split must gain more than this share of the node's weight, which rounding could feign.
  static constexpr double kMinGain = 1e-12;

  // Fewer cells than this, rows times columns, are searched before another thread has woken up.
  static constexpr std::size_t kFewCells = 4096;

  Grower& self() { return static_cast<Grower&>(*this); }

  // Returns up to how many rows it takes less time to look at a node's rows than at its bins: the mean number of bins.
  // It is 0 where splits are drawn, as these are drawn from all bins, and where there are no histograms anyway.
  std::size_t count_few_rows() const {
    if (growth_.extra || columns_.empty() || !data_.has_rows()) return 0;
    std::size_t bins = 0;
    for (const std::uint32_t feature : columns_) bins += static_cast<std::size_t>(data_.columns[feature].bins());
    return bins / columns_.size();
  }

  // Tells whether the columns above a node leave it open to be split by this one.
  static bool may_split(const Node& node, std::size_t feature) {
    return node.way == nullptr || node.way->allowed[feature];
  }

  // Finds the best split of every node, ties going to the smaller feature. Nodes that have one are open then, the
  // others stay leaves.
  void search(std::vector<Node>& nodes) {
    const std::vector<Winner<Best>> winners = data_.has_rows() ? search_histograms(nodes) : search_columns(nodes);
    column_space_.prepare(pool_.size(), 1);
    pool_.chunks(nodes.size(), nodes.size() < kFewSplits ? nodes.size() : 1,
                 [&](int thread, std::size_t first, std::size_t last) {
                   for (std::size_t i = first; i < last; ++i) {
                     Node& node = nodes[i];
                     const double leaf = self().find_worth(node);
                     const bool gains = winners[i].best.worth > leaf + kMinGain * self().find_mass(node);
                     if (!gains) continue;
                     node.split = make_split(node, winners[i], thread);
                     node.split.gain = winners[i].best.worth - leaf;
                   }
                 });
    for (Node& node : nodes) {
      node.has_parent_histogram = false;
      if (node.histogram != nullptr) node.histogram->parts.clear();
      if (node.split.feature < 0) {
        histograms_.give_back(std::move(node.histogram));
      } else {
        open_.push_back(std::move(node));
      }
    }
  }

  auto make_split(const Node& node, const Winner<Best>& winner, int thread) {
    typename Kind::Buffer buffer;
    const std::size_t feature = columns_[winner.place];
    const auto draw = split_draws_.draw(node.key, winner.place);
    if (node.histogram != nullptr) {
      return self().search_column(node, feature, draw).make_split(buffer, winner.best, static_cast<int>(feature));
    }
    const Entry* entries = self().row_list().entries.data();
    auto& space = column_space_.threads[static_cast<std::size_t>(thread)];
    const auto sums = data_.has_rows()
                          ? space.few_rows_sums.sum_up(data_.column(feature), node.rows, entries, self().adder())
                          : space.sums.sum_up_node(data_, feature, node.rows, entries, self().adder());
    return self().search_sums(node, feature, draw, sums).make_split(buffer, winner.best, static_cast<int>(feature));
  }

  // Finds the best split of every node, by its histogram or, where it has none, by its few rows.
  std::vector<Winner<Best>> search_histograms(std::vector<Node>& nodes) {
    const std::size_t width = columns_.size();
    std::vector<Winner<Best>> winners(nodes.size());
    std::vector<std::size_t> pairs, nodes_with_few_rows;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (nodes[i].histogram != nullptr) {
        if (pairs.empty() || pairs.back() != i / 2) pairs.push_back(i / 2);
      } else if (self().can_split(nodes[i])) {
        nodes_with_few_rows.push_back(i);
      }
    }
    const std::vector<Best> candidates = compare_columns(nodes, pairs);
    for (std::size_t i = 0; i < candidates.size(); ++i) {
      const std::size_t node = pairs[i / (2 * width)] * 2 + i / width % 2;
      if (node < nodes.size()) winners[node].challenge(candidates[i], i % width);
    }
    search_few_rows(nodes, nodes_with_few_rows, winners);
    return winners;
  }

  // Finds the best splits of some nodes with few rows by these rows.
  void search_few_rows(const std::vector<Node>& nodes, const std::vector<std::size_t>& some,
                       std::vector<Winner<Best>>& winners) {
    if (some.empty()) return;
    const Entry* entries = self().row_list().entries.data();
    column_space_.prepare(pool_.size(), 1);
    std::size_t rows = 0;
    for (const std::size_t i : some) rows += nodes[i].rows.size();
    const bool is_little_work = rows * columns_.size() < kFewCells;
    pool_.chunks(some.size(), is_little_work ? some.size() : 1, [&](int thread, std::size_t first, std::size_t last) {
      auto& space = column_space_.threads[static_cast<std::size_t>(thread)];
      auto& contest = space.contests.front();
      for (std::size_t i = first; i < last; ++i) {
        const Node& node = nodes[some[i]];
        self().begin(contest, node);
        for (std::size_t place = 0; place < columns_.size(); ++place) {
          const std::size_t feature = columns_[place];
          if (!may_split(node, feature)) continue;
          // The codes of a row are side by side, so that those of the next column are at hand.
          const CodeColumn column{data_.by_row.data() + feature, data_.features};
          const auto sums = space.few_rows_sums.sum_up(column, node.rows, entries, self().adder());
          self().enter(contest, node, place, feature, split_draws_.draw(node.key, place), sums);
        }
        winners[some[i]] = contest.finish();
      }
    });
  }

  // Tells whether all splits of a column are candidates, whatever node they are of.
  bool splits_freely() const { return !growth_.extra && growth_.monotone.empty() && growth_.interactions == nullptr; }

  // Finds the best split of every node where there are no histograms.
  std::vector<Winner<Best>> search_columns(const std::vector<Node>& nodes) {
    const std::size_t chunks = columns_.size() / kColumnsTogether + 1;
    const Entry* entries = self().row_list().entries.data();
    std::vector<typename SearchedNodes<typename Kind::Adder>::Node> searched;
    for (const Node& node : nodes) searched.push_back({node.rows, self().find_totals(node), self().can_split(node)});
    column_space_.nodes.set(std::move(searched), entries, data_.rows);
    column_space_.prepare(pool_.size(), nodes.size());
    std::vector<Winner<Best>> of_chunks(chunks * nodes.size());
    pool_.chunks(columns_.size(), kColumnsTogether, [&](int thread, std::size_t first, std::size_t last) {
      auto& space = column_space_.threads[static_cast<std::size_t>(thread)];
      auto& sums = space.sums;
      auto& contests = space.contests;
      for (std::size_t k = 0; k < nodes.size(); ++k) self().begin(contests[k], nodes[k]);
      if constexpr (Kind::kEntersLists) space.listed_splits.begin(nodes.size());
      for (std::size_t place = first; place < last; ++place) {
        if constexpr (Kind::kEntersLists) {
          if (splits_freely() && data_.is_complete_list(columns_[place])) {
            const CodeList list = data_.list_by_code(columns_[place]);
            space.listed_splits.enter(place, list, column_space_.nodes, self().adder(), contests);
            continue;
          }
        }
        sums.sum_up(data_, columns_[place], column_space_.nodes, self().adder());
        for (const std::size_t k : sums.nodes()) {
          if (!may_split(nodes[k], columns_[place])) continue;
          const auto draw = split_draws_.draw(nodes[k].key, place);
          self().enter(contests[k], nodes[k], place, columns_[place], draw, sums.of(k));
        }
      }
      Winner<Best>* winners = of_chunks.data() + first / kColumnsTogether * nodes.size();
      for (std::size_t k = 0; k < nodes.size(); ++k) winners[k] = contests[k].finish();
    });
    std::vector<Winner<Best>> winners(nodes.size());
    for (std::size_t i = 0; i < of_chunks.size(); ++i) {
      winners[i % nodes.size()].challenge(of_chunks[i].best, of_chunks[i].place);
    }
    return winners;
  }

  // Finds the best split of some pairs of nodes by every column, as [pair][node][column]. A histogram may still be in
  // parts, which are added up as a column is searched. Two siblings are neighbours in `nodes`, and one of them has the
  // histogram of their parent until then: what its sibling has is taken away.
  std::vector<Best> compare_columns(std::vector<Node>& nodes, const std::vector<std::size_t>& pairs) {
    const std::size_t width = columns_.size();
    const std::size_t searches = pairs.size() * width;
    const std::size_t chunks = kChunksPerThread * static_cast<std::size_t>(pool_.size());
    const std::size_t each = searches < Kind::kFewSearches ? searches : std::max<std::size_t>(1, searches / chunks);
    std::vector<Best> candidates(2 * searches);
    pool_.chunks(searches, each, [&](int, std::size_t first, std::size_t last) {
      typename Kind::Buffer buffer;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t first_sibling = pairs[i / width] * 2;
        const std::size_t place = i % width;
        const std::size_t feature = columns_[place];
        const std::size_t siblings = std::min<std::size_t>(2, nodes.size() - first_sibling);
        Node* pair = nodes.data() + first_sibling;
        for (std::size_t k = 0; k < siblings; ++k) {
          if (pair[k].histogram != nullptr) histograms_.gather(*pair[k].histogram, feature);
        }
        for (std::size_t k = 0; k < siblings; ++k) {
          if (pair[k].has_parent_histogram) histograms_.subtract(*pair[k].histogram, *pair[1 - k].histogram, feature);
        }
        for (std::size_t k = 0; k < siblings; ++k) {
          if (pair[k].histogram == nullptr || !self().can_split(pair[k]) || !may_split(pair[k], feature)) continue;
          const auto draw = split_draws_.draw(pair[k].key, place);
          candidates[(i / width * 2 + k) * width + place] =
              self().search_column(pair[k], feature, draw).find_best(buffer);
        }
      }
    });
    return candidates;
  }

  // Splits the nodes whose turn it is. Returns those whose children may split in their turn.
  std::vector<Node> split_next() {
    std::vector<Node> to_partition;
    for (Node& node : take_next()) {
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
  std::vector<Node> take_next() {
    std::vector<Node> next;
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
  void split(const Node& node) {
    auto& parent = tree_[static_cast<std::size_t>(node.node)];
    parent.feature = node.split.feature;
    parent.code = node.split.code;
    parent.missing_left = node.split.missing_left;
    parent.goes_left = node.split.goes_left;
    parent.gain = node.split.gain / total_weight_;
    parent.left = static_cast<std::int32_t>(tree_.size());
    self().add_leaves(node);
  }

  // Sends the rows of every node to its children and gives these their histograms.
  std::vector<Node> make_children(std::vector<Node>& parents) {
    std::vector<Division> divisions;
    std::vector<std::vector<Code>> written(parents.size());
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const auto feature = static_cast<std::size_t>(parents[i].split.feature);
      if (data_.is_listed(feature)) written[i] = data_.write_out(feature);
      const CodeColumn column = written[i].empty() ? data_.column(feature) : CodeColumn{written[i].data(), 1};
      divisions.push_back({parents[i].rows, column, parents[i].split.goes_left, {}, {}});
    }
    partition(self().row_list(), divisions, pool_);
    std::vector<Node> children(2 * parents.size());
    for (std::size_t i = 0; i < parents.size(); ++i) {
      const Node& parent = parents[i];
      std::shared_ptr<const Interactions::Way> way;
      if (growth_.interactions != nullptr) {
        way = growth_.interactions->follow(parent.way.get(), static_cast<std::size_t>(parent.split.feature));
      }
      for (std::size_t k = 0; k < 2; ++k) {
        Node& child = children[2 * i + k];
        child.node = tree_[static_cast<std::size_t>(parent.node)].left + static_cast<std::int32_t>(k);
        child.depth = parent.depth + 1;
        child.key = key_of_child(parent.key, k == 0);
        child.way = way;
        child.rows = k == 0 ? divisions[i].left : divisions[i].right;
        self().describe_child(parent, k, child);
      }
    }
    if (data_.has_rows()) build_histograms(parents, children);
    return children;
  }

  // Sums up the child with fewer rows. Its sibling keeps the histogram of the parent, from which it is taken away
  // later.
  void build_histograms(std::vector<Node>& parents, std::vector<Node>& children) {
    std::vector<typename Histograms::Request> requests;
    for (std::size_t i = 0; i < parents.size(); ++i) {
      Node& left = children[2 * i];
      Node& right = children[2 * i + 1];
      const bool left_is_smaller = left.rows.size() <= right.rows.size();
      Node& smaller = left_is_smaller ? left : right;
      Node& larger = left_is_smaller ? right : left;
      const bool can_split = self().can_split(left) || self().can_split(right);
      if (!can_split || larger.rows.size() <= few_rows_) {
        histograms_.give_back(std::move(parents[i].histogram));
        continue;
      }
      smaller.histogram = histograms_.take();
      requests.push_back({smaller.rows, smaller.histogram.get()});
      larger.histogram = std::move(parents[i].histogram);
      larger.has_parent_histogram = true;
    }
    self().build(requests);
  }

  int leaves_ = 1;
  std::vector<Node> open_;  // These leaves have a split that may still be made.
};

}  // namespace untwist
