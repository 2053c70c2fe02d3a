// Scores of raw rows: the sum of one leaf per tree. Many rows are encoded, a block at a time, and split by whole trees
// (coder.hpp). Few rows, few trees, and what labels cannot tell of trees with very many splits, are walked on the raw
// values, several rows or trees at a time so that their loads overlap.
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

#include "binning.hpp"
#include "coder.hpp"
#include "threads.hpp"

namespace untwist {

// The flat arrays of a forest as Python holds them: trees one after the other, parents before their children, a right
// child just after the left one, which `left` counts from the first node of the tree.
struct ForestArrays {
  std::size_t trees, nodes, sets;
  const std::int64_t* offset;          // first node of each tree, and one past the last
  const std::int32_t *feature, *left;  // feature -1: a leaf
  const double* threshold;             // left where x <= threshold
  const std::uint8_t* missing_left;
  const double* value;
  const std::int32_t* set;     // -1: numeric; else left where bit x of the set is 1
  const std::uint64_t* codes;  // four words per set
};

// Trees made ready for both ways. Nothing changes after construction: any number of threads may read.
class Forest {
 public:
  Forest(const ForestArrays& arrays, std::size_t features)
      : features_(features),
        coder_(checked_thresholds(arrays, features)),
        sets_(arrays.codes, arrays.codes + 4 * arrays.sets) {
    for (std::size_t tree = 0; tree < arrays.trees; ++tree) add_tree(arrays, tree);
  }

  std::size_t features() const { return features_; }
  std::size_t trees() const { return trees_.size(); }

  // Adds trees [first, last) to the scores, in order.
  template <typename Real>
  void add_scores(const Matrix<Real>& X, std::size_t first, std::size_t last, double* scores, ThreadPool& pool) const {
    find_ends(X, first, last, pool, [=](std::size_t row, std::size_t, const End& end) { scores[row] += end.value; });
  }

  // The leaf of each row in trees [first, last), as a node of its tree: out[row * (last - first) + tree - first].
  template <typename Real>
  void leaves(const Matrix<Real>& X, std::size_t first, std::size_t last, std::int32_t* out, ThreadPool& pool) const {
    find_ends(X, first, last, pool, [=](std::size_t row, std::size_t tree, const End& end) {
      out[row * (last - first) + tree - first] = end.node;
    });
  }

 private:
  struct Step {  // a node that needs no branch: a leaf leads to itself, whatever the row
    double threshold;
    std::int32_t feature;  // ~feature for a set, whose number is then the threshold
    std::uint32_t left;    // twice the left child, plus one if missing values go left
  };
  struct End {
    double value;
    std::int32_t node;  // within its tree
  };
  struct Tree {
    std::size_t root;         // in steps_ and node_ends_
    std::size_t move, moves;  // the first one, and their number
    std::size_t end;          // of label 0, in label_ends_
    bool deep;                // more splits than moves: a label may stand for a node that is no leaf
  };
  struct Lane {
    std::size_t row, tree, node;
  };

  static constexpr std::size_t kFewRows = 48;
  static constexpr std::size_t kTogether = 8;

  static void require(bool condition, const char* what) {
    if (!condition) throw std::invalid_argument(what);
  }

  // The thresholds of each feature. This is the border to foreign bytes: what passes is safe to walk.
  static std::vector<std::vector<double>> checked_thresholds(const ForestArrays& arrays, std::size_t features) {
    std::vector<std::vector<double>> thresholds(features);
    const std::int64_t* offset = arrays.offset;
    const std::int64_t sets = static_cast<std::int64_t>(arrays.sets);
    require(arrays.nodes < std::size_t{1} << 31, "too many nodes");
    require(offset[0] == 0 && offset[arrays.trees] == static_cast<std::int64_t>(arrays.nodes), "trees hold all nodes");
    for (std::size_t tree = 0; tree < arrays.trees; ++tree) {  // all of them before any node is read
      require(offset[tree] < offset[tree + 1], "a tree has nodes");
    }
    for (std::size_t tree = 0; tree < arrays.trees; ++tree) {
      const std::int64_t nodes = offset[tree + 1] - offset[tree];
      std::vector<char> reached(static_cast<std::size_t>(nodes), 0);
      reached[0] = 1;
      for (std::int64_t node = 0; node < nodes; ++node) {
        require(reached[static_cast<std::size_t>(node)], "every node but the first has a parent");
        const std::int64_t at = offset[tree] + node;
        if (arrays.feature[at] == -1) continue;
        const std::size_t feature = static_cast<std::size_t>(arrays.feature[at]);
        require(arrays.feature[at] >= 0 && feature < features, "there are fewer features");
        require(arrays.left[at] > node && arrays.left[at] + std::int64_t{1} < nodes, "children follow their parent");
        char* children = reached.data() + arrays.left[at];
        require(!children[0] && !children[1], "a node has one parent");
        children[0] = children[1] = 1;
        require(arrays.set[at] >= -1 && arrays.set[at] < sets, "there are fewer sets");
        if (arrays.set[at] >= 0) continue;
        require(!std::isnan(arrays.threshold[at]), "a threshold is a number");
        thresholds[feature].push_back(arrays.threshold[at]);
      }
    }
    return thresholds;
  }

  void add_tree(const ForestArrays& arrays, std::size_t tree) {
    const std::size_t root = static_cast<std::size_t>(arrays.offset[tree]);
    const std::size_t nodes = static_cast<std::size_t>(arrays.offset[tree + 1]) - root;
    Tree made{root, moves_.size(), 0, label_ends_.size(), false};
    std::vector<std::uint8_t> label(nodes, 0);
    std::vector<std::size_t> end{root};  // of each label
    for (std::size_t node = 0; node < nodes; ++node) {
      const std::size_t at = root + node;
      node_ends_.push_back({arrays.value[at], static_cast<std::int32_t>(node)});
      if (arrays.feature[at] < 0) {
        steps_.push_back({std::numeric_limits<double>::infinity(), 0, static_cast<std::uint32_t>(2 * at + 1)});
        continue;
      }
      const std::size_t feature = static_cast<std::size_t>(arrays.feature[at]);
      const std::size_t left = static_cast<std::size_t>(arrays.left[at]);
      const bool missing_left = arrays.missing_left[at] != 0;
      const bool numeric = arrays.set[at] < 0;
      steps_.push_back({numeric ? arrays.threshold[at] : arrays.set[at],
                        numeric ? arrays.feature[at] : ~arrays.feature[at],
                        static_cast<std::uint32_t>(2 * (root + left) + missing_left)});
      if (made.moves == kMaxMoves) {
        made.deep = true;
        continue;
      }
      Move move = numeric ? coder_.compare(feature, arrays.threshold[at], missing_left)
                          : coder_.look_up(feature, arrays.codes + 4 * std::int64_t{arrays.set[at]}, missing_left);
      move.from = static_cast<std::int8_t>(label[node]);
      move.to = static_cast<std::int8_t>(++made.moves);
      moves_.push_back(move);
      label[left] = label[node];  // the left child keeps the label, the right one gets a new one
      label[left + 1] = static_cast<std::uint8_t>(made.moves);
      end[label[node]] = root + left;
      end.push_back(root + left + 1);
    }
    for (const std::size_t node : end) label_ends_.push_back(node_ends_[node]);
    trees_.push_back(made);
  }

  // Calls take(row, tree, end) for all rows and trees [first, last), for each row in the order of the trees.
  template <typename Real, typename Take>
  void find_ends(const Matrix<Real>& X, std::size_t first, std::size_t last, ThreadPool& pool, const Take& take) const {
    require(X.columns == features_, "X and the trees have different features");
    require(first <= last && last <= trees_.size(), "there are fewer trees");
    const bool few = X.rows < kFewRows;
    const std::vector<char> needed = few ? std::vector<char>() : needed_columns(first, last);
    std::vector<std::vector<std::int8_t>> buffers(static_cast<std::size_t>(pool.size()));
    pool.chunks(X.rows, few ? kTogether : kCodedRows, [&](int thread, std::size_t begin, std::size_t end) {
      auto& codes = buffers[static_cast<std::size_t>(thread)];
      codes.resize(needed.size() * kCodedRows);
      for (std::size_t row = begin; row < end; row += kCodedRows) {
        const std::size_t rows = std::min(kCodedRows, end - row);
        if (!needed.empty()) {
          coder_.encode(X, row, rows, needed, codes.data());
          for (std::size_t tree = first; tree < last; ++tree) split(X, row, rows, tree, codes.data(), take);
        } else if (rows >= kTogether) {
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

  // The columns of codes that the trees need; none if to encode them takes longer than to walk down the trees.
  std::vector<char> needed_columns(std::size_t first, std::size_t last) const {
    std::vector<char> needed(coder_.columns(), 0);
    std::size_t levels = 0;
    for (std::size_t tree = first; tree < last; ++tree) {
      const Tree& asked = trees_[tree];
      for (std::size_t m = asked.move; m < asked.move + asked.moves; ++m) needed[moves_[m].column] = 1;
      for (std::size_t splits = asked.moves; splits > 0; splits /= 2) ++levels;
    }
    return levels > coder_.effort(needed) ? needed : std::vector<char>();
  }

  template <typename Real, typename Take>
  void split(const Matrix<Real>& X, std::size_t row, std::size_t rows, std::size_t tree, const std::int8_t* codes,
             const Take& take) const {
    const Tree& asked = trees_[tree];
    std::array<std::uint8_t, kCodedRows> label;
    find_labels(moves_.data() + asked.move, asked.moves, codes, rows, label.data());
    const End* end = label_ends_.data() + asked.end;
    if (asked.deep) {
      const auto node = [&](std::size_t i) { return asked.root + static_cast<std::size_t>(end[label[i]].node); };
      walk(X, rows, [&](std::size_t i) { return Lane{row + i, tree, node(i)}; }, take);
    } else {
      for (std::size_t i = 0; i < rows; ++i) take(row + i, tree, end[label[i]]);
    }
  }

  // Walks `count` lanes from where they are to their leaves.
  template <typename Real, typename LaneOf, typename Take>
  void walk(const Matrix<Real>& X, std::size_t count, const LaneOf& lane_of, const Take& take) const {
    for (std::size_t start = 0; start < count; start += kTogether) {
      std::array<Lane, kTogether> lanes;
      for (std::size_t i = 0; i < kTogether; ++i) lanes[i] = lane_of(std::min(start + i, count - 1));
      sets_.empty() ? descend<false>(X, lanes) : descend<true>(X, lanes);
      for (std::size_t i = 0; i < std::min(kTogether, count - start); ++i) {
        take(lanes[i].row, lanes[i].tree, node_ends_[lanes[i].node]);
      }
    }
  }

  template <bool sets, typename Real>
  void descend(const Matrix<Real>& X, std::array<Lane, kTogether>& lanes) const {
    const auto at_leaf = [&](const Lane& lane) { return steps_[lane.node].left >> 1 == lane.node; };
    while (!std::all_of(lanes.begin(), lanes.end(), at_leaf)) {
      for (int level = 0; level < 3; ++level) {  // before looking again
        for (Lane& lane : lanes) {
          const Step& step = steps_[lane.node];
          const bool missing_left = step.left & 1;
          const bool by_set = sets && step.feature < 0;
          const std::size_t feature = static_cast<std::size_t>(by_set ? ~step.feature : step.feature);
          const double x = static_cast<double>(X(lane.row, feature));
          bool right = (x > step.threshold) | (std::isnan(x) & !missing_left);
          if (by_set) right = !goes_left(category(x), set_of(step), missing_left);
          lane.node = (step.left >> 1) + right;
        }
      }
    }
  }

  const std::uint64_t* set_of(const Step& step) const {
    return sets_.data() + 4 * static_cast<std::size_t>(step.threshold);
  }

  std::size_t features_;
  Coder coder_;
  std::vector<std::uint64_t> sets_;
  std::vector<Tree> trees_;
  std::vector<Step> steps_;
  std::vector<End> node_ends_, label_ends_;
  std::vector<Move> moves_;
};

}  // namespace untwist
