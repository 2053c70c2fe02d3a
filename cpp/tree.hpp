// Regression trees over codes, and what they say about a row.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "binning.hpp"

namespace untwist {

class CodeSet {  // of codes 0 to 255
 public:
  static CodeSet up_to(Code last) {
    CodeSet set;
    for (unsigned word = 0; word <= last / 64U; ++word) {
      set.words_[word] = word < last / 64U ? ~0ULL : ~0ULL >> (63U - last % 64U);
    }
    return set;
  }

  bool has(Code code) const { return words_[code / 64U] >> (code % 64U) & 1U; }

  void put(Code code, bool in) {
    const std::uint64_t bit = 1ULL << (code % 64U);
    words_[code / 64U] = in ? words_[code / 64U] | bit : words_[code / 64U] & ~bit;
  }

  const std::array<std::uint64_t, 4>& words() const { return words_; }

 private:
  std::array<std::uint64_t, 4> words_{};
};

struct Node {
  std::int32_t feature = -1;  // -1: a leaf
  std::int32_t left = -1;     // index of the left child; the right one follows it
  Code code = 0;              // of a column of numbers: the last one that goes left
  bool missing_left = false;
  CodeSet goes_left;   // codes of the rows that go left, the missing code among them
  double value = 0.0;  // G / (W + l2), and what the round adds to the score
  double gain = 0.0;   // by how much the split raises the sum of G^2 / (W + l2), as a share of the total weight
};

using Tree = std::vector<Node>;  // the root first

// The leaf below `from` that a row comes to.
inline const Node& leaf_below(const Tree& tree, const Node& from, const Code* codes) {
  const Node* node = &from;
  while (node->feature >= 0) node = tree.data() + node->left + (node->goes_left.has(codes[node->feature]) ? 0 : 1);
  return *node;
}

}  // namespace untwist
