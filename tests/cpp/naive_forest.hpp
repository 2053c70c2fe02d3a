// The slow twin of Forest: one row walks down one tree, as the description of the arrays says.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>

#include "../../cpp/flat_forest.hpp"

namespace untwist {

// The leaf that a row comes to, as a node of its tree.
template <typename Real>
std::int32_t find_leaf_naively(const FlatForest& forest, std::size_t tree, const Matrix<Real>& X, std::size_t row) {
  const std::size_t root = static_cast<std::size_t>(forest.offset[tree]);
  std::size_t node = root;
  while (forest.feature[node] >= 0) {
    const double x = static_cast<double>(X(row, static_cast<std::size_t>(forest.feature[node])));
    const bool by_set = forest.set[node] >= 0;
    const bool is_category = x >= 0.0 && x < 256.0 && x == std::floor(x);
    const bool is_known = by_set ? is_category : !std::isnan(x);
    bool left = forest.missing_left[node] != 0;
    if (is_known && by_set) {
      const std::size_t category = static_cast<std::size_t>(x);
      const std::size_t first_word = 4 * static_cast<std::size_t>(forest.set[node]);
      left = forest.codes[first_word + category / 64] >> (category % 64) & 1;
    } else if (is_known) {
      left = x <= forest.threshold[node];
    }
    node = root + static_cast<std::size_t>(forest.left[node]) + (left ? 0 : 1);
  }
  return static_cast<std::int32_t>(node - root);
}

}  // namespace untwist
