// Scores of raw rows: the sum of one leaf per tree.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "binning.hpp"
#include "threads.hpp"

namespace untwist {

// All trees one after the other; `left` counts from the first node of the tree.
struct Forest {
  const std::int64_t* offset;  // first node of each tree, and one past the last
  const std::int32_t* feature;
  const std::int32_t* left;
  const double* threshold;
  const std::uint8_t* missing_left;
  const double* value;
};

// Adds trees [first, last) to the scores, a block of rows at a time so that both rows and trees stay in cache.
template <typename Real>
void add_scores(const Matrix<Real>& X, const Forest& forest, std::size_t first, std::size_t last, double* scores,
                ThreadPool& pool) {
  constexpr std::size_t kBlock = 256;
  pool.chunks(X.rows, kBlock, [&](int, std::size_t begin, std::size_t end) {
    for (std::size_t tree = first; tree < last; ++tree) {
      const std::size_t root = static_cast<std::size_t>(forest.offset[tree]);
      for (std::size_t row = begin; row < end; ++row) {
        std::size_t node = root;
        while (forest.feature[node] >= 0) {
          const double x = static_cast<double>(X(row, static_cast<std::size_t>(forest.feature[node])));
          const bool goes_left = std::isnan(x) ? forest.missing_left[node] != 0 : x <= forest.threshold[node];
          node = root + static_cast<std::size_t>(forest.left[node]) + (goes_left ? 0 : 1);
        }
        scores[row] += forest.value[node];
      }
    }
  });
}

}  // namespace untwist
