// A regression tree over codes tells what a row adds to the score.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <vector>

#include "binning.hpp"

namespace untwist {

// A set of codes has a bit per code, in words of so many bits.
inline constexpr unsigned kWordBits = 64;

// Four words have the bits of all 256 codes.
inline constexpr std::size_t kWordsOfSet = 4;

class CodeSet {
 public:
  // Returns the set of all codes from 0 to `last`.
  static CodeSet up_to(Code last) {
    constexpr std::uint64_t kAllBits = ~std::uint64_t{0};
    CodeSet set;
    const unsigned last_word = last / kWordBits;
    for (unsigned word = 0; word < last_word; ++word) set.words_[word] = kAllBits;
    set.words_[last_word] = kAllBits >> (kWordBits - 1 - last % kWordBits);
    return set;
  }

  // Returns the set of the codes whose marks, one for each of all 256 codes, are 1. The others are 0.
  static CodeSet of_marks(const std::uint8_t* marks) {
    // Times this number, the lowest bits of eight bytes end up side by side in the highest byte.
    constexpr std::uint64_t kGather = 0x0102040810204080ULL;
    constexpr unsigned kMarksTogether = 8;
    CodeSet set;
    for (unsigned code = 0; code < kWordsOfSet * kWordBits; code += kMarksTogether) {
      std::uint64_t some;
      std::memcpy(&some, marks + code, sizeof some);
      set.words_[code / kWordBits] |= some * kGather >> (kWordBits - kMarksTogether) << (code % kWordBits);
    }
    return set;
  }

  bool has(Code code) const { return words_[code / kWordBits] >> (code % kWordBits) & 1U; }

  void put(Code code, bool in) {
    const std::uint64_t bit = std::uint64_t{1} << (code % kWordBits);
    std::uint64_t& word = words_[code / kWordBits];
    word = in ? word | bit : word & ~bit;
  }

  // Calls job(code) for all codes of the set below `end`, from the smallest on.
  template <typename Job>
  void for_each(std::size_t end, const Job& job) const {
    for (std::size_t word = 0; word < kWordsOfSet; ++word) {
      for (std::uint64_t rest = words_[word]; rest != 0; rest &= rest - 1) {
        const std::size_t code = word * kWordBits + static_cast<std::size_t>(__builtin_ctzll(rest));
        if (code >= end) return;
        job(code);
      }
    }
  }

  const std::array<std::uint64_t, kWordsOfSet>& words() const { return words_; }

 private:
  std::array<std::uint64_t, kWordsOfSet> words_{};
};

struct Node {
  std::int32_t feature = -1;  // A leaf has -1.
  std::int32_t left = -1;     // The left child has this index. The right child follows it.
  Code code = 0;              // In a column of numbers this is the last code that goes left.
  bool missing_left = false;
  CodeSet goes_left;   // Rows with these codes go left, perhaps those with missing values among them.
  double value = 0.0;  // A leaf has G / (W + l2), and once the tree is boosted what it adds to the score.
  double gain = 0.0;   // The split raises the sum of G^2 / (W + l2) by this share of the total weight.

  bool is_leaf() const { return feature < 0; }
};

using Tree = std::vector<Node>;  // The root is the first node.

// Returns the leaf below `from` that a row comes to. `code_of(feature)` are its codes.
template <typename CodeOf>
const Node& find_leaf(const Tree& tree, const Node& from, const CodeOf& code_of) {
  const Node* node = &from;
  while (!node->is_leaf()) {
    const Code code = code_of(static_cast<std::size_t>(node->feature));
    node = tree.data() + node->left + (node->goes_left.has(code) ? 0 : 1);
  }
  return *node;
}

}  // namespace untwist
