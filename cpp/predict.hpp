// Scores of raw rows: the sum of one leaf per tree.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "binning.hpp"
#include "threads.hpp"

namespace untwist {

// Trees one after the other; `left` counts from the first node of the tree.
struct Forest {
  const std::int64_t* offset;  // first node of each tree, and one past the last
  const std::int32_t* feature;
  const std::int32_t* left;
  const double* threshold;
  const std::uint8_t* missing_left;
  const double* value;
};

// A node that needs no branch: a leaf leads to itself, whatever the row.
struct Step {
  double threshold;
  std::int32_t feature;
  std::int32_t left;  // twice the index of the left child, plus one if missing values go left
};

// Trees [first, last) as steps, and the depth of each.
class Walk {
 public:
  Walk(const Forest& forest, std::size_t first, std::size_t last) : forest_(forest), first_(first) {
    for (std::size_t tree = first; tree < last; ++tree) {
      const std::size_t root = static_cast<std::size_t>(forest.offset[tree]);
      const std::size_t nodes = static_cast<std::size_t>(forest.offset[tree + 1]) - root;
      std::vector<int> depth(nodes, 0);
      for (std::size_t node = 0; node < nodes; ++node) {  // parents come before their children
        if (forest.feature[root + node] < 0) {
          steps_.push_back({std::numeric_limits<double>::infinity(), 0, static_cast<std::int32_t>(2 * node + 1)});
          continue;
        }
        const std::int32_t left = forest.left[root + node];
        steps_.push_back({forest.threshold[root + node], forest.feature[root + node], 2 * left + forest.missing_left[root + node]});
        for (std::int32_t child = left; child < left + 2; ++child) depth[static_cast<std::size_t>(child)] = depth[node] + 1;
      }
      depth_.push_back(*std::max_element(depth.begin(), depth.end()));
      start_.push_back(steps_.size() - nodes);
    }
  }

  // Adds the trees to the scores of rows [begin, end), a few rows at a time so that their loads overlap.
  template <typename Real>
  void add(const Matrix<Real>& X, std::size_t begin, std::size_t end, double* scores) const {
    for (std::size_t tree = 0; tree < depth_.size(); ++tree) {
      const Step* steps = steps_.data() + start_[tree];
      const double* value = forest_.value + forest_.offset[first_ + tree];
      std::size_t row = begin;
      for (; row + kTogether <= end; row += kTogether) walk<kTogether>(X, row, steps, depth_[tree], value, scores);
      for (; row < end; ++row) walk<1>(X, row, steps, depth_[tree], value, scores);
    }
  }

 private:
  static constexpr std::size_t kTogether = 8;

  template <std::size_t together, typename Real>
  static void walk(const Matrix<Real>& X, std::size_t row, const Step* steps, int depth, const double* value, double* scores) {
    std::uint32_t node[together] = {};
    for (int level = 0; level < depth; ++level) {
      for (std::size_t i = 0; i < together; ++i) {
        const Step& step = steps[node[i]];
        const double x = static_cast<double>(X(row + i, static_cast<std::size_t>(step.feature)));
        const std::uint32_t packed = static_cast<std::uint32_t>(step.left);
        const std::uint32_t missing = x != x;
        const std::uint32_t right = (x > step.threshold) | (missing & ~packed & 1U);
        node[i] = (packed >> 1) + right;
      }
    }
    for (std::size_t i = 0; i < together; ++i) scores[row + i] += value[node[i]];
  }

  Forest forest_;
  std::size_t first_;
  std::vector<Step> steps_;
  std::vector<std::size_t> start_;
  std::vector<int> depth_;
};

// Adds trees [first, last) to the scores, a block of rows at a time so that both rows and trees stay in cache.
template <typename Real>
void add_scores(const Matrix<Real>& X, const Forest& forest, std::size_t first, std::size_t last, double* scores,
                ThreadPool& pool) {
  constexpr std::size_t kBlock = 512;
  const Walk trees(forest, first, last);
  pool.chunks(X.rows, kBlock, [&](int, std::size_t begin, std::size_t end) {
    for (std::size_t row = begin; row < end; row += kBlock) trees.add(X, row, std::min(end, row + kBlock), scores);
  });
}

}  // namespace untwist
