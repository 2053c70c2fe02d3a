// Enters the splits of listed columns into the contests of several nodes, in one pass over each list.
//
// Most columns of a sparse table have few listed rows, and what a list has in one node is fewer still, so that bins for
// all codes of the column would mostly be cleared and found empty. Here a node has one running sum. The list is in the
// order of its codes, from both ends to the usual code, and wherever the code changes the rows so far are one side of a
// split.
#pragma once

#include <array>
#include <cstddef>
#include <limits>
#include <vector>

#include "column_sums.hpp"
#include "dataset.hpp"
#include "rows.hpp"

namespace untwist {

// A thread has one of these. The adder is that of two classes.
template <typename Adder>
class ListedSplits {
 public:
  using Nodes = SearchedNodes<Adder>;

  // Forgets the columns so far, and makes room for so many nodes.
  void begin(std::size_t nodes) { running_.assign(nodes, Running{}); }

  // Enters all splits of a column that misses no value. No two columns since the last beginning have the same place.
  template <typename Contest>
  void enter(std::size_t place, const CodeList& list, const Nodes& nodes, const Adder& adder,
             std::vector<Contest>& contests) {
    touched_.clear();
    const bool counts_rows = adder.counts_rows();
    const auto enter_split = [&](std::size_t node, const Running& sums) {
      Sum all_rows = 0;
      if (counts_rows) all_rows = Sum{nodes[node].totals[2]} + nodes[node].totals[3];
      contests[node].enter_split(place, sums.code < list.usual, sums.weight, sums.rows, all_rows);
    };
    for (std::size_t i = 0; i < list.count; ++i) {
      const auto [side_of_node, weight] = nodes.place(list.row[i]);
      if (side_of_node == Nodes::kNowhere) continue;
      const std::size_t node = side_of_node / 2;
      const Code code = list.code[i];
      Running& sums = running_[node];
      if (sums.place != place) {
        sums.place = place;
        sums.restart(code);
        touched_.push_back(node);
      } else if (sums.code != code) {
        enter_split(node, sums);
        const bool crosses_usual = (sums.code < list.usual) != (code < list.usual);
        if (crosses_usual) sums.restart(code);
        sums.code = code;
      }
      sums.weight[side_of_node % 2] += weight;
      if (counts_rows) sums.rows += adder.count(list.row[i]);
    }
    for (const std::size_t node : touched_) enter_split(node, running_[node]);
  }

 private:
  static constexpr std::size_t kNoPlace = std::numeric_limits<std::size_t>::max();

  // A node has these sums over the rows up to the newest code.
  struct Running {
    // The numbers are set one by one: assigning a whole struct would make the processor wait for earlier writes to it.
    void restart(Code first) {
      weight[0] = 0;
      weight[1] = 0;
      rows = 0;
      code = first;
    }

    std::size_t place = kNoPlace;  // They are of the column at this place.
    ClassWeights weight{};
    Sum rows = 0;
    Code code = 0;
  };

  std::vector<Running> running_;
  std::vector<std::size_t> touched_;  // The nodes that the column has listed rows in.
};

}  // namespace untwist
