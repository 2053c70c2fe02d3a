// Finds the leaves of many coded rows at once, and with them what a tree adds to their scores.
//
// Rows move from slot to slot as moves.hpp describes, but by the codes of the dataset.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "dataset.hpp"
#include "tree.hpp"
#include "vectorised.hpp"

namespace untwist {

// So many rows find their leaves together: their slots stay in the first cache.
inline constexpr std::size_t kSlottedRows = 256;

// The number of a slot is a byte.
inline constexpr std::size_t kMaxSlots = 256;

// Moves rows from slot `from` to slot `to` where the code is above `last`, unless it is `also_left`.
UNTWIST_VECTORISED inline void move_rows(const Code* __restrict code, Code last, Code also_left, std::uint8_t from,
                                         std::uint8_t to, std::uint8_t* __restrict slot) {
  const std::uint8_t change = from ^ to;
  for (std::size_t i = 0; i < kSlottedRows; ++i) {
    const std::uint8_t moves = (slot[i] == from) & (code[i] > last) & (code[i] != also_left);
    slot[i] = static_cast<std::uint8_t>(slot[i] ^ (static_cast<std::uint8_t>(-moves) & change));
  }
}

class LeafFinder {
 public:
  LeafFinder(const Tree& tree, const Dataset& data) : tree_(tree), data_(data) {
    std::vector<std::uint8_t> slot(tree.size(), 0);
    node_of_slot_.push_back(0);
    for (std::size_t i = 0; i < tree.size(); ++i) {  // Parents come before their children.
      const Node& node = tree[i];
      if (node.is_leaf()) continue;
      if (node_of_slot_.size() == kMaxSlots) break;  // Rows walk down the remaining splits one by one.
      const std::uint8_t new_slot = static_cast<std::uint8_t>(node_of_slot_.size());
      const std::size_t left = static_cast<std::size_t>(node.left);
      slot[left] = slot[i];
      slot[left + 1] = new_slot;
      node_of_slot_[slot[i]] = left;
      node_of_slot_.push_back(left + 1);
      const auto feature = static_cast<std::size_t>(node.feature);
      const auto found = std::find(features_.begin(), features_.end(), feature);
      moves_.push_back({&node, slot[i], new_slot, static_cast<std::size_t>(found - features_.begin())});
      if (found == features_.end()) features_.push_back(feature);
    }
    if (data.has_rows()) return;
    for (const std::size_t feature : features_) {
      written_.push_back(data.is_listed(feature) ? data.write_out(feature) : std::vector<Code>());
    }
  }

  // Writes the values of the leaves of up to kSlottedRows rows from `first` on. Reads the codes of kSlottedRows rows.
  void find_values(std::size_t first, std::size_t count, double* value) const {
    const Slots slot = find_slots(first, count);
    for (std::size_t i = 0; i < count; ++i) value[i] = find_leaf_of_slot(slot[i], first + i).value;
  }

  // Writes the places of these leaves in the tree.
  void find_places(std::size_t first, std::size_t count, std::uint32_t* place) const {
    const Slots slot = find_slots(first, count);
    for (std::size_t i = 0; i < count; ++i) {
      place[i] = static_cast<std::uint32_t>(&find_leaf_of_slot(slot[i], first + i) - tree_.data());
    }
  }

 private:
  using Slots = std::array<std::uint8_t, kSlottedRows>;

  Slots find_slots(std::size_t first, std::size_t count) const {
    Slots slot{};
    const std::vector<Code> columns = data_.has_columns() ? std::vector<Code>() : gather_columns(first, count);
    for (const SlotMove& move : moves_) {
      const Node& node = *move.node;
      const std::size_t feature = static_cast<std::size_t>(node.feature);
      const Code* code = nullptr;
      if (!data_.has_columns()) {
        code = columns.data() + move.place * kSlottedRows;
      } else if (data_.is_listed(feature)) {
        code = written_[move.place].data() + first;
      } else {
        code = data_.column(feature).data + first;
      }
      const Column& column = data_.columns[feature];
      if (column.category_count == 0) {
        const Code also_left = node.missing_left ? column.missing_code() : node.code;
        move_rows(code, node.code, also_left, move.from, move.to, slot.data());
        continue;
      }
      for (std::size_t i = 0; i < count; ++i) {
        if (slot[i] == move.from && !node.goes_left.has(code[i])) slot[i] = move.to;
      }
    }
    return slot;
  }

  const Node& find_leaf_of_slot(std::uint8_t slot, std::size_t row) const {
    const Node& node = tree_[node_of_slot_[slot]];
    if (node.is_leaf()) return node;
    if (!data_.has_rows()) return find_leaf(tree_, node, [&](std::size_t feature) { return data_.code(row, feature); });
    const Code* codes = data_.row(row);
    return find_leaf(tree_, node, [codes](std::size_t feature) { return codes[feature]; });
  }

  // At this node, the rows of slot `from` that go right move to slot `to`.
  struct SlotMove {
    const Node* node;
    std::uint8_t from, to;
    std::size_t place;  // The node's feature has this place in features_.
  };

  // Gathers the codes of the features that the tree uses, column by column, from a dataset that has rows only.
  std::vector<Code> gather_columns(std::size_t first, std::size_t count) const {
    std::vector<Code> columns(features_.size() * kSlottedRows);
    for (std::size_t i = 0; i < count; ++i) {
      const Code* row = data_.row(first + i);
      for (std::size_t k = 0; k < features_.size(); ++k) columns[k * kSlottedRows + i] = row[features_[k]];
    }
    return columns;
  }

  const Tree& tree_;
  const Dataset& data_;
  std::vector<SlotMove> moves_;
  std::vector<std::size_t> features_;
  std::vector<std::vector<Code>> written_;  // The listed ones of these features have a code for every row here.
  std::vector<std::size_t> node_of_slot_;
};

}  // namespace untwist
