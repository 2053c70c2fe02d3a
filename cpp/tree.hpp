// Regression trees fitted to labels -1 and +1 with fixed-point weights, and what they say about a row of codes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "binning.hpp"
#include "vectors.hpp"

namespace untwist {

struct Node {
  std::int32_t feature = -1;  // -1: a leaf
  std::int32_t left = -1;     // index of the left child; the right one follows it
  Code code = 0;              // left if the row's code is at most this
  bool missing_left = false;
  double value = 0.0;  // G / (W + l2), and what the round adds to the score
  double gain = 0.0;   // by how much the split raises the sum of G^2 / W
};

using Tree = std::vector<Node>;  // the root first

inline bool goes_left(const Node& node, Code code, Code missing_code) {
  return code == missing_code ? node.missing_left : code <= node.code;
}

inline double leaf_value(const Tree& tree, const std::vector<Code>& missing_codes, const Code* codes) {
  const Node* node = tree.data();
  while (node->feature >= 0) {
    const std::size_t feature = static_cast<std::size_t>(node->feature);
    const bool left = goes_left(*node, codes[feature], missing_codes[feature]);
    node = tree.data() + node->left + (left ? 0 : 1);
  }
  return node->value;
}

// For every candidate split, sum of G^2 / (W + l2) over its two sides, with one division each. NaN where a
// side is empty and l2 is 0.
UNTWIST_VECTORISED inline void split_values(const double* __restrict G_left, const double* __restrict W_left, int count,
                                            double G, double W, double l2, double* __restrict value) {
  for (int i = 0; i < count; ++i) {
    const double left = W_left[i] + l2;
    const double right = W - W_left[i] + l2;
    const double G_right = G - G_left[i];
    value[i] = (G_left[i] * G_left[i] * right + G_right * G_right * left) / (left * right);
  }
}

}  // namespace untwist
