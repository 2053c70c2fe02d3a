// The leaves of a block of rows: every split of the tree moves the rows concerned from one label to another, many at a
// time. A row meets every split, and that still beats walking down row by row by far.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset.hpp"
#include "tree.hpp"
#include "vectors.hpp"

namespace untwist {

inline constexpr std::size_t kLabelled = 256;  // rows to a block

// Moves rows of label `from` to label `to` where the code is above `last`, unless it is `also`.
UNTWIST_VECTORISED inline void move_rows(const Code* __restrict code, Code last, Code also, std::uint8_t from,
                                         std::uint8_t to, std::uint8_t* __restrict label) {
  const std::uint8_t change = from ^ to;
  for (std::size_t i = 0; i < kLabelled; ++i) {
    const std::uint8_t moves = (label[i] == from) & (code[i] > last) & (code[i] != also);
    label[i] = static_cast<std::uint8_t>(label[i] ^ (static_cast<std::uint8_t>(-moves) & change));
  }
}

class LeafFinder {
 public:
  LeafFinder(const Tree& tree, const Dataset& data) : tree_(tree), data_(data) {
    std::vector<std::uint8_t> label(tree.size(), 0);
    nodes_.push_back(0);
    for (std::size_t i = 0; i < tree.size(); ++i) {  // parents come before their children
      const Node& node = tree[i];
      if (node.feature < 0) continue;
      if (nodes_.size() > 255) break;  // the rest is more than labels can tell
      const std::uint8_t right = static_cast<std::uint8_t>(nodes_.size());
      const std::size_t left = static_cast<std::size_t>(node.left);
      label[left] = label[i];
      label[left + 1] = right;
      nodes_[label[i]] = left;
      nodes_.push_back(left + 1);
      const auto feature = static_cast<std::size_t>(node.feature);
      const auto found = std::find(features_.begin(), features_.end(), feature);
      moves_.push_back({&node, label[i], right, static_cast<std::size_t>(found - features_.begin())});
      if (found == features_.end()) features_.push_back(feature);
    }
  }

  // The values of up to kLabelled rows from `first` on. Reads the codes of kLabelled rows.
  void values(std::size_t first, std::size_t count, double* value) const {
    std::array<std::uint8_t, kLabelled> label{};
    std::vector<Code> turned(data_.lean() ? features_.size() * kLabelled : 0);
    for (std::size_t i = 0; i < count && data_.lean(); ++i) {
      const Code* row = data_.row(first + i);
      for (std::size_t k = 0; k < features_.size(); ++k) turned[k * kLabelled + i] = row[features_[k]];
    }
    for (const auto& move : moves_) {
      const Node& node = *move.node;
      const Code* code = data_.lean() ? turned.data() + move.place * kLabelled
                                      : data_.column(static_cast<std::size_t>(node.feature)).data + first;
      const Column& column = data_.columns[static_cast<std::size_t>(node.feature)];
      if (column.categories == 0) {
        move_rows(code, node.code, node.missing_left ? column.missing_code() : node.code, move.from, move.to,
                  label.data());
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (label[i] == move.from && !node.goes_left.has(code[i])) label[i] = move.to;
      }
    }
    for (std::size_t i = 0; i < count; ++i) {
      const Node* node = &tree_[nodes_[label[i]]];
      if (node->feature >= 0) node = &leaf_below(tree_, *node, data_.row(first + i));
      value[i] = node->value;
    }
  }

 private:
  struct Move {
    const Node* node;
    std::uint8_t from, to;
    std::size_t place;  // of its feature among those that are used
  };

  const Tree& tree_;
  const Dataset& data_;
  std::vector<Move> moves_;
  std::vector<std::size_t> features_;
  std::vector<std::size_t> nodes_;  // where each label stands
};

}  // namespace untwist
