// Scores raw rows: a score is the sum of one leaf per tree. A leaf has one value, or one for each of several outputs.
//
// Many rows are encoded, a block at a time, and sent through whole trees by moves (moves.hpp). The lower parts of trees
// with more splits than a byte can tell apart are walked on the same codes. Few rows and few trees are walked on the
// raw values. Several rows or trees are walked together, so that their loads overlap.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "encoder.hpp"
#include "large_memory.hpp"
#include "matrix.hpp"
#include "moves.hpp"
#include "threads.hpp"
#include "tree.hpp"

namespace untwist {

// Python holds a forest as flat arrays: trees one after the other, parents before their children, a right child just
// after the left one, which `left` counts from the first node of the tree.
struct ForestArrays {
  // Takes anything with data() and size(): vectors, or arrays of Python.
  template <typename Offsets, typename Indices, typename Reals, typename Flags, typename Values, typename Words>
  ForestArrays(const Offsets& offset, const Indices& feature, const Indices& left, const Reals& threshold,
               const Flags& missing_left, const Values& value, const Indices& set, const Words& codes,
               std::size_t outputs = 1)
      : trees(offset.size() - 1),
        nodes(feature.size()),
        sets(codes.size() / kWordsOfSet),
        outputs(outputs),
        offset(offset.data()),
        feature(feature.data()),
        left(left.data()),
        threshold(threshold.data()),
        missing_left(missing_left.data()),
        value(value.data()),
        set(set.data()),
        codes(codes.data()) {}

  std::size_t trees, nodes, sets, outputs;
  const std::int64_t* offset;   // A tree begins at its offset. One more is past the last node of all.
  const std::int32_t* feature;  // A leaf has -1.
  const std::int32_t* left;
  const double* threshold;  // A row goes left where x <= threshold.
  const std::uint8_t* missing_left;
  const double* value;         // A node has one per output, which mean nothing at a split.
  const std::int32_t* set;     // A numeric split has -1. Else a row goes left where bit x of this set is 1.
  const std::uint64_t* codes;  // A set has kWordsOfSet words.
};

// A forest has its trees ready for moves and for walks. Nothing changes after construction, so any number of threads
// may read.
class Forest {
 public:
  Forest(const ForestArrays& arrays, std::size_t features)
      : features_(features),
        outputs_(arrays.outputs),
        encoder_(collect_thresholds(arrays, features)),
        sets_(arrays.codes, arrays.codes + kWordsOfSet * arrays.sets),
        deep_columns_(encoder_.columns(), 0) {
    const std::size_t leaves = (arrays.nodes + arrays.trees) / 2;  // A tree has one leaf more than it has splits.
    if (outputs_ > 1) vectors_.reserve(leaves * outputs_);
    for (std::size_t tree = 0; tree < arrays.trees; ++tree) add_tree(arrays, tree);
  }

  std::size_t features() const { return features_; }
  std::size_t outputs() const { return outputs_; }
  std::size_t trees() const { return trees_.size(); }

  // Adds the values of trees [first, last) to the scores, in the order of the trees: scores[row * outputs + output].
  template <typename Real>
  void add_scores(const Matrix<Real>& X, std::size_t first, std::size_t last, double* scores, ThreadPool& pool) const {
    if (outputs_ == 1) {
      find_leaves(X, first, last, pool,
                  [=](std::size_t row, std::size_t, const Leaf& leaf) { scores[row] += leaf.value; });
      return;
    }
    const std::size_t outputs = outputs_;
    const double* vectors = vectors_.data();
    find_leaves(X, first, last, pool, [=](std::size_t row, std::size_t, const Leaf& leaf) {
      double* __restrict to = scores + row * outputs;
      const double* __restrict from = vectors + leaf.vector * outputs;
      for (std::size_t output = 0; output < outputs; ++output) to[output] += from[output];
    });
  }

  // Writes the leaf of each row in trees [first, last), as a node of its tree: out[row * (last - first) + tree -
  // first].
  template <typename Real>
  void leaves(const Matrix<Real>& X, std::size_t first, std::size_t last, std::int32_t* out, ThreadPool& pool) const {
    find_leaves(X, first, last, pool, [=](std::size_t row, std::size_t tree, const Leaf& leaf) {
      out[row * (last - first) + tree - first] = leaf.node;
    });
  }

 private:
  // A walk needs no branch at a node, as a leaf leads to itself, whatever the row.
  struct Step {
    double threshold;
    std::int32_t feature;            // A split by a set has ~feature, and its set is the threshold.
    std::uint32_t left_and_missing;  // It is twice the left child, plus one if missing values go left.

    std::size_t left() const { return left_and_missing >> 1; }
    bool missing_left() const { return left_and_missing & 1; }
  };

  // A deep tree has the same for encoded rows, in half the memory, which is what a walk down such a tree waits for.
  struct CodedStep {
    std::uint32_t left;                  // It is counted within the tree, plus kRaw if the step is made on raw values.
    std::uint32_t column_and_threshold;  // The threshold is the lowest byte.

    // Sets may be too many for columns of codes.
    static constexpr std::uint32_t kRaw = std::uint32_t{1} << 31;

    // The number of a column must fit into the upper bits of 32.
    static constexpr std::size_t kMaxColumns = std::size_t{1} << 24;

    bool is_raw() const { return left >= kRaw; }
    std::size_t column() const { return column_and_threshold >> 8; }
    std::int8_t threshold() const { return static_cast<std::int8_t>(column_and_threshold & 0xFF); }
  };

  // A row ends here. In a tree with more than kMaxMoves splits it may be a node that is no leaf.
  struct Leaf {
    double value;          // It is that of the only output.
    std::int32_t node;     // Nodes are counted within their tree.
    std::uint32_t vector;  // With several outputs their values have this place in vectors_.
  };

  struct PreparedTree {
    std::size_t root;        // Its first node has this place in steps_ and leaf_of_node_.
    std::size_t first_move;  // Its first move has this place in moves_.
    std::size_t moves;
    std::size_t first_slot;  // Its slot 0 has this place in leaf_of_slot_.
    std::size_t first_step;  // Its first node has this place in coded_steps_ if it is deep.
    bool deep;               // It has more splits than moves, so a slot may stand for a node that is no leaf.
  };

  // A lane is a row on its way down a tree.
  struct Lane {
    std::size_t row, tree, node;
  };

  // Fewer rows than this are walked, as encoding has a price of its own.
  static constexpr std::size_t kFewRows = 48;

  // So many lanes keep the loads of a walk in flight.
  static constexpr std::size_t kLanes = 8;

  // All lanes go down so many levels before a look whether they have all arrived.
  static constexpr int kLevelsPerLook = 3;

  // Twice the number of a node, plus one, must fit into 32 bits.
  static constexpr std::size_t kMaxNodes = std::size_t{1} << 31;

  static void require(bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
  }

  // Checks the arrays and collects the thresholds of each feature. This is the border to foreign bytes: what passes is
  // safe to walk.
  static std::vector<std::vector<double>> collect_thresholds(const ForestArrays& arrays, std::size_t features) {
    std::vector<std::vector<double>> thresholds(features);
    const std::int64_t* offset = arrays.offset;
    const std::int64_t sets = static_cast<std::int64_t>(arrays.sets);
    require(arrays.nodes < kMaxNodes, "a forest must have fewer than 2^31 nodes");
    require(arrays.outputs > 0, "a leaf must have a value");
    require(offset[0] == 0 && offset[arrays.trees] == static_cast<std::int64_t>(arrays.nodes),
            "the trees must hold all nodes");
    for (std::size_t tree = 0; tree < arrays.trees; ++tree) {  // No node is read before all offsets are sound.
      require(offset[tree] < offset[tree + 1], "a tree must have nodes");
    }
    for (std::size_t tree = 0; tree < arrays.trees; ++tree) {
      const std::int64_t nodes = offset[tree + 1] - offset[tree];
      std::vector<char> reached(static_cast<std::size_t>(nodes), 0);
      reached[0] = 1;
      for (std::int64_t node = 0; node < nodes; ++node) {
        require(reached[static_cast<std::size_t>(node)], "every node but the first must have a parent");
        const std::int64_t at = offset[tree] + node;
        if (arrays.feature[at] == -1) continue;
        const std::size_t feature = static_cast<std::size_t>(arrays.feature[at]);
        require(arrays.feature[at] >= 0 && feature < features, "the feature of a split must exist");
        require(arrays.left[at] > node && arrays.left[at] + std::int64_t{1} < nodes,
                "children must follow their parent");
        char* children = reached.data() + arrays.left[at];
        require(!children[0] && !children[1], "a node must have only one parent");
        children[0] = children[1] = 1;
        require(arrays.set[at] >= -1 && arrays.set[at] < sets, "the set of a split must exist");
        if (arrays.set[at] >= 0) continue;
        require(!std::isnan(arrays.threshold[at]), "a threshold must be a number");
        thresholds[feature].push_back(arrays.threshold[at]);
      }
    }
    return thresholds;
  }

  void add_tree(const ForestArrays& arrays, std::size_t tree) {
    const std::size_t root = static_cast<std::size_t>(arrays.offset[tree]);
    const std::size_t nodes = static_cast<std::size_t>(arrays.offset[tree + 1]) - root;
    const bool deep = nodes > 2 * kMaxMoves + 1;
    PreparedTree prepared{root, moves_.size(), 0, leaf_of_slot_.size(), coded_steps_.size(), deep};
    std::vector<std::uint8_t> slot(nodes, 0);
    std::vector<std::size_t> node_of_slot{root};
    for (std::size_t node = 0; node < nodes; ++node) {
      const std::size_t at = root + node;
      const double* value = arrays.value + at * outputs_;
      const std::size_t vector = outputs_ > 1 ? vectors_.size() / outputs_ : 0;
      leaf_of_node_.push_back({*value, static_cast<std::int32_t>(node), static_cast<std::uint32_t>(vector)});
      if (arrays.feature[at] < 0) {
        if (outputs_ > 1) vectors_.insert(vectors_.end(), value, value + outputs_);
        steps_.push_back({std::numeric_limits<double>::infinity(), 0, static_cast<std::uint32_t>(2 * at + 1)});
        if (deep) coded_steps_.push_back({static_cast<std::uint32_t>(node), std::numeric_limits<std::int8_t>::max()});
        continue;
      }
      const std::size_t feature = static_cast<std::size_t>(arrays.feature[at]);
      const std::size_t left = static_cast<std::size_t>(arrays.left[at]);
      const bool missing_left = arrays.missing_left[at] != 0;
      const bool numeric = arrays.set[at] < 0;
      steps_.push_back({numeric ? arrays.threshold[at] : arrays.set[at],
                        numeric ? arrays.feature[at] : ~arrays.feature[at],
                        static_cast<std::uint32_t>(2 * (root + left) + missing_left)});
      if (deep) add_coded_step(arrays, at);
      if (prepared.moves == kMaxMoves) continue;
      Move move = numeric ? encoder_.compare(feature, arrays.threshold[at], missing_left)
                          : encoder_.look_up(feature, find_set(arrays.codes, arrays.set[at]), missing_left);
      move.from = static_cast<std::int8_t>(slot[node]);
      move.to = static_cast<std::int8_t>(++prepared.moves);
      moves_.push_back(move);
      slot[left] = slot[node];  // The left child keeps the slot, the right one gets a new one.
      slot[left + 1] = static_cast<std::uint8_t>(prepared.moves);
      node_of_slot[slot[node]] = root + left;
      node_of_slot.push_back(root + left + 1);
    }
    for (const std::size_t node : node_of_slot) leaf_of_slot_.push_back(leaf_of_node_[node]);
    trees_.push_back(prepared);
  }

  void add_coded_step(const ForestArrays& arrays, std::size_t at) {
    const std::uint32_t left = static_cast<std::uint32_t>(arrays.left[at]);
    if (arrays.set[at] >= 0 || deep_columns_.size() > CodedStep::kMaxColumns) {
      coded_steps_.push_back({left | CodedStep::kRaw, 0});
      has_raw_steps_ = true;
      return;
    }
    const std::size_t feature = static_cast<std::size_t>(arrays.feature[at]);
    const Move move = encoder_.compare(feature, arrays.threshold[at], arrays.missing_left[at] != 0);
    coded_steps_.push_back({left, move.column << 8 | static_cast<std::uint8_t>(move.threshold)});
    deep_columns_[move.column] = 1;
  }

  // Calls take(row, tree, leaf) for all rows and trees [first, last), for each row in the order of the trees.
  template <typename Real, typename Take>
  void find_leaves(const Matrix<Real>& X, std::size_t first, std::size_t last, ThreadPool& pool,
                   const Take& take) const {
    require(X.columns == features_, "X must have the columns that the trees were grown on");
    require(first <= last && last <= trees_.size(), "first and last must be a range of the trees");
    const bool few = X.rows < kFewRows;
    const std::vector<char> needed = few ? std::vector<char>() : needed_columns(first, last);
    std::vector<std::vector<std::int8_t>> buffers(static_cast<std::size_t>(pool.size()));
    const std::size_t most_rows = count_rows_at_a_time(first, last, needed.size(), X.rows, pool.size());
    pool.chunks(X.rows, few ? kLanes : most_rows, [&](int thread, std::size_t begin, std::size_t end) {
      auto& codes = buffers[static_cast<std::size_t>(thread)];
      const std::size_t code_count = needed.size() * kCodedRows;
      codes.resize(code_count * (most_rows / kCodedRows));
      for (std::size_t row = begin; row < end; row += most_rows) {
        const std::size_t rows = std::min(most_rows, end - row);
        if (!needed.empty()) {
          const auto for_each_block = [&](const auto& job) {
            for (std::size_t block = 0; block * kCodedRows < rows; ++block) {
              const std::size_t start = block * kCodedRows;
              job(row + start, std::min(kCodedRows, rows - start), codes.data() + block * code_count);
            }
          };
          for_each_block([&](std::size_t start, std::size_t count, std::int8_t* some) {
            encoder_.encode(X, start, count, needed, some);
          });
          for (std::size_t tree = first; tree < last; ++tree) {
            for_each_block([&](std::size_t start, std::size_t count, const std::int8_t* some) {
              move(X, start, count, tree, some, take);
            });
          }
        } else if (rows >= kLanes) {
          for (std::size_t tree = first; tree < last; ++tree) {
            walk(X, rows, [&](std::size_t i) { return Lane{row + i, tree, trees_[tree].root}; }, take);
          }
        } else {
          for (std::size_t i = row; i < end; ++i) {
            walk(X, last - first, [&](std::size_t t) { return Lane{i, first + t, trees_[first + t].root}; }, take);
          }
        }
      }
    });
  }

  // Returns how many of all rows go down one tree before the next. A deep tree is larger than a block of rows, which
  // would wait for most of it to come from memory, so many blocks share it. Their own codes are read one after the
  // other, which nothing waits for.
  std::size_t count_rows_at_a_time(std::size_t first, std::size_t last, std::size_t columns, std::size_t rows,
                                   int threads) const {
    // More blocks than this gain nothing.
    constexpr std::size_t kManyBlocks = 64;
    constexpr std::size_t kManyCodes = std::size_t{1} << 21;
    if (!has_deep_trees(first, last)) return kCodedRows;
    const std::size_t of_memory = kManyCodes / (std::max<std::size_t>(columns, 1) * kCodedRows);
    const std::size_t of_thread = rows / (static_cast<std::size_t>(threads) * kCodedRows);
    return kCodedRows * std::clamp<std::size_t>(std::min(of_memory, of_thread), 1, kManyBlocks);
  }

  bool has_deep_trees(std::size_t first, std::size_t last) const {
    const auto is_deep = [](const PreparedTree& tree) { return tree.deep; };
    return std::any_of(trees_.data() + first, trees_.data() + last, is_deep);
  }

  // The columns of codes that the trees need. There are none if to encode them takes longer than to walk down the
  // trees.
  std::vector<char> needed_columns(std::size_t first, std::size_t last) const {
    std::vector<char> needed(encoder_.columns(), 0);
    if (has_deep_trees(first, last)) std::copy(deep_columns_.begin(), deep_columns_.end(), needed.begin());
    std::size_t levels = 0;
    for (std::size_t index = first; index < last; ++index) {
      const PreparedTree& tree = trees_[index];
      for (std::size_t m = tree.first_move; m < tree.first_move + tree.moves; ++m) needed[moves_[m].column] = 1;
      for (std::size_t splits = tree.moves; splits > 0; splits /= 2) ++levels;
    }
    return levels > encoder_.effort(needed) ? needed : std::vector<char>();
  }

  // Sends a block of encoded rows through a tree.
  template <typename Real, typename Take>
  void move(const Matrix<Real>& X, std::size_t row, std::size_t rows, std::size_t index, const std::int8_t* codes,
            const Take& take) const {
    const PreparedTree& tree = trees_[index];
    std::array<std::uint8_t, kCodedRows> slot;
    find_slots(moves_.data() + tree.first_move, tree.moves, codes, rows, slot.data());
    const Leaf* leaf = leaf_of_slot_.data() + tree.first_slot;
    if (tree.deep) {
      std::array<std::uint32_t, kCodedRows> node;
      for (std::size_t i = 0; i < rows; ++i) node[i] = static_cast<std::uint32_t>(leaf[slot[i]].node);
      has_raw_steps_ ? walk_codes<true>(X, row, rows, tree, codes, node.data())
                     : walk_codes<false>(X, row, rows, tree, codes, node.data());
      for (std::size_t i = 0; i < rows; ++i) take(row + i, index, leaf_of_node_[tree.root + node[i]]);
    } else {
      for (std::size_t i = 0; i < rows; ++i) take(row + i, index, leaf[slot[i]]);
    }
  }

  // Walks `count` lanes from where they are to their leaves.
  template <typename Real, typename LaneOf, typename Take>
  void walk(const Matrix<Real>& X, std::size_t count, const LaneOf& lane_of, const Take& take) const {
    for (std::size_t start = 0; start < count; start += kLanes) {
      std::array<Lane, kLanes> lanes;
      for (std::size_t i = 0; i < kLanes; ++i) lanes[i] = lane_of(std::min(start + i, count - 1));
      sets_.empty() ? descend<false>(X, lanes) : descend<true>(X, lanes);
      for (std::size_t i = 0; i < std::min(kLanes, count - start); ++i) {
        take(lanes[i].row, lanes[i].tree, leaf_of_node_[lanes[i].node]);
      }
    }
  }

  template <bool has_sets, typename Real>
  void descend(const Matrix<Real>& X, std::array<Lane, kLanes>& lanes) const {
    const auto at_leaf = [&](const Lane& lane) { return steps_[lane.node].left() == lane.node; };
    while (!std::all_of(lanes.begin(), lanes.end(), at_leaf)) {
      for (int level = 0; level < kLevelsPerLook; ++level) {
        for (Lane& lane : lanes) lane.node = go_on<has_sets>(X, lane.row, lane.node);
      }
    }
  }

  // Returns the node that a row goes on to.
  template <bool has_sets, typename Real>
  std::size_t go_on(const Matrix<Real>& X, std::size_t row, std::size_t node) const {
    const Step& step = steps_[node];
    const bool by_set = has_sets && step.feature < 0;
    const std::size_t feature = static_cast<std::size_t>(by_set ? ~step.feature : step.feature);
    const double x = static_cast<double>(X(row, feature));
    bool right = (x > step.threshold) | (std::isnan(x) & !step.missing_left());
    if (by_set) {
      const std::uint64_t* set = find_set(sets_.data(), static_cast<std::int32_t>(step.threshold));
      right = !goes_left(to_category(x), set, step.missing_left());
    }
    return step.left() + right;
  }

  // Walks the rows of a block from their nodes to their leaves, counted within the tree, by their codes. All rows that
  // have not arrived go down one level after the other, so none waits for those that have a longer way.
  template <bool has_raw_steps, typename Real>
  void walk_codes(const Matrix<Real>& X, std::size_t row, std::size_t rows, const PreparedTree& tree,
                  const std::int8_t* codes, std::uint32_t* node) const {
    const CodedStep* steps = coded_steps_.data() + tree.first_step;
    std::array<std::uint8_t, kCodedRows> walking;
    for (std::size_t i = 0; i < rows; ++i) walking[i] = static_cast<std::uint8_t>(i);
    for (std::size_t count = rows; count > 0;) {
      std::size_t still_walking = 0;
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint8_t place = walking[i];
        const std::uint32_t from = node[place];
        const CodedStep step = steps[from];
        if (has_raw_steps && step.is_raw()) {
          node[place] = static_cast<std::uint32_t>(go_on<true>(X, row + place, tree.root + from) - tree.root);
        } else {
          const bool right = codes[step.column() * kCodedRows + place] > step.threshold();
          node[place] = step.left + right;
        }
        walking[still_walking] = place;
        still_walking += node[place] != from;  // A leaf leads to itself.
      }
      count = still_walking;
    }
  }

  static const std::uint64_t* find_set(const std::uint64_t* codes, std::int32_t set) {
    return codes + kWordsOfSet * static_cast<std::size_t>(set);
  }

  std::size_t features_, outputs_;
  Encoder encoder_;
  std::vector<std::uint64_t> sets_;
  std::vector<PreparedTree> trees_;
  std::vector<Step> steps_;
  std::vector<CodedStep> coded_steps_;
  std::vector<char> deep_columns_;  // The deep trees compare these columns of codes, of those for thresholds.
  bool has_raw_steps_ = false;      // Some coded steps are made on raw values.
  std::vector<Leaf> leaf_of_node_, leaf_of_slot_;
  ManyReals vectors_;  // Only leaves have vectors here. There are none with one output.
  std::vector<Move> moves_;
};

}  // namespace untwist
