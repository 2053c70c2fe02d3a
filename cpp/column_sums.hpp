// Sums up one column at a time, by node and bin, where no histograms are kept: for datasets that have no codes by row,
// and for nodes with few rows.
//
// Of a wide table a histogram of all columns would be larger than the rows that it sums up. So none is kept: a column
// is summed up for several nodes at once, searched, and forgotten. That takes what the column holds: its codes in the
// rows of the nodes or, where it is a list, the listed ones. All other rows have the usual code, whose sum is what the
// listed rows leave of a node.
//
// The columns of a node with few rows are summed up like this in any table (FewRowsSums), as its histogram would have
// more bins than the node has rows.
//
// An Adder knows what is summed up. It has the types Bin and Totals (of a node), size(bins), which is how many numbers
// a node has, add(sums, bins, side, code, entry), clear(sums, bins, codes), which makes at least the bins of these
// codes 0, and put_rest(sums, bins, code, totals), which gives a code what is left of the totals.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "dataset.hpp"
#include "rows.hpp"
#include "tree.hpp"

namespace untwist {

// These are the sums of one column in one node, in the order that the adder has them.
template <typename Bin>
struct SummedColumn {
  const Bin* sums;
  std::size_t bins;
  const CodeSet* filled = nullptr;  // Only these bins have rows. Null means that any may have some.
};

// Sums up the columns of nodes with few rows, one after the other, and notes which bins have rows, so that only these
// are searched.
template <typename Adder>
class FewRowsSums {
 public:
  using Bin = typename Adder::Bin;

  // What is returned holds until the next call.
  SummedColumn<Bin> sum_up(const CodeColumn& column, const NodeRows& rows, const Entry* entries, const Adder& adder) {
    sums_.resize(adder.size(kBins), Bin{0});
    adder.clear(sums_.data(), kBins, filled_);
    // Each code has a byte of its own: to set a bit of a shared word, a row would have to wait for the row before.
    std::array<std::uint8_t, kBins> marks{};
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t i = rows.first[side]; i < rows.last[side]; ++i) {
        const Code code = column[entries[i].row];
        adder.add(sums_.data(), kBins, side, code, entries[i]);
        marks[code] = 1;
      }
    }
    filled_ = CodeSet::of_marks(marks.data());
    return {sums_.data(), kBins, &filled_};
  }

 private:
  std::vector<Bin> sums_;  // They are 0 but for the bins that are filled.
  CodeSet filled_;
};

// These nodes are searched at the same time.
template <typename Adder>
class SearchedNodes {
 public:
  struct Node {
    NodeRows rows;
    typename Adder::Totals totals;
    bool can_split;  // If not, it is not summed up.
  };

  // A row is in a node, on the side of its class, 0 the negative and 1 the positive one. Its place is 2 * node + side.
  struct Place {
    std::uint32_t place = kNowhere;
    std::uint32_t weight = 0;
  };
  static constexpr std::uint32_t kNowhere = std::numeric_limits<std::uint32_t>::max();

  // Takes nodes whose rows are ranges of `entries`. The dataset has `rows` rows.
  void set(std::vector<Node> nodes, const Entry* entries, std::size_t rows) {
    nodes_ = std::move(nodes);
    entries_ = entries;
    places_.assign(rows, Place{});
    for (std::size_t node = 0; node < nodes_.size(); ++node) {
      if (!nodes_[node].can_split) continue;
      const NodeRows& some = nodes_[node].rows;
      for (std::size_t side = 0; side < 2; ++side) {
        for (std::size_t i = some.first[side]; i < some.last[side]; ++i) {
          places_[entries[i].row] = {static_cast<std::uint32_t>(2 * node + side), entries[i].weight};
        }
      }
    }
  }

  std::size_t size() const { return nodes_.size(); }
  const Node& operator[](std::size_t node) const { return nodes_[node]; }
  const Entry* entries() const { return entries_; }
  const Place& place(std::size_t row) const { return places_[row]; }

 private:
  std::vector<Node> nodes_;
  const Entry* entries_ = nullptr;
  std::vector<Place> places_;  // It has all rows of the dataset.
};

// A thread has the sums of one column here, as [node][bin] or in whatever order the adder has them.
template <typename Adder>
class ColumnSums {
 public:
  using Bin = typename Adder::Bin;
  using Nodes = SearchedNodes<Adder>;

  // Sums up a column. Of a list, nodes without a listed row are left out, as all their rows have the same code.
  void sum_up(const Dataset& data, std::size_t feature, const Nodes& nodes, const Adder& adder) {
    begin(data.columns[feature], nodes.size(), adder);
    if (data.is_listed(feature)) return add_list(data.list(feature), nodes, adder);
    for (std::size_t node = 0; node < nodes.size(); ++node) {
      if (nodes[node].can_split) {
        add_rows(node, nodes[node].rows, nodes.entries(), data.column(feature).data, adder);
      }
    }
  }

  // Sums up a column in one node.
  SummedColumn<Bin> sum_up_node(const Dataset& data, std::size_t feature, const NodeRows& rows, const Entry* entries,
                                const Adder& adder) {
    begin(data.columns[feature], 1, adder);
    if (data.is_listed(feature)) {
      const std::vector<Code> codes = data.write_out(feature);
      add_rows(0, rows, entries, codes.data(), adder);
    } else {
      add_rows(0, rows, entries, data.column(feature).data, adder);
    }
    return of(0);
  }

  // Returns the nodes that have sums.
  const std::vector<std::size_t>& nodes() const { return summed_; }

  SummedColumn<Bin> of(std::size_t node) const { return {sums_.data() + node * size_, bins_}; }

 private:
  void begin(const Column& column, std::size_t nodes, const Adder& adder) {
    for (const std::size_t node : summed_) has_sums_[node] = 0;
    summed_.clear();
    has_sums_.resize(std::max(has_sums_.size(), nodes), 0);
    bins_ = static_cast<std::size_t>(column.values()) + 1;
    size_ = adder.size(bins_);
    if (sums_.size() < nodes * size_) sums_.resize(nodes * size_);
  }

  // Returns the sums of a node, which are 0 at first.
  Bin* open(std::size_t node) {
    Bin* sums = sums_.data() + node * size_;
    if (has_sums_[node]) return sums;
    has_sums_[node] = 1;
    summed_.push_back(node);
    std::fill_n(sums, size_, Bin{0});
    return sums;
  }

  void add_rows(std::size_t node, const NodeRows& rows, const Entry* entries, const Code* codes, const Adder& adder) {
    Bin* sums = open(node);
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t i = rows.first[side]; i < rows.last[side]; ++i) {
        adder.add(sums, bins_, side, codes[entries[i].row], entries[i]);
      }
    }
  }

  void add_list(const CodeList& list, const Nodes& nodes, const Adder& adder) {
    for (std::size_t i = 0; i < list.count; ++i) {
      const auto [place, weight] = nodes.place(list.row[i]);
      if (place == Nodes::kNowhere) continue;
      adder.add(open(place / 2), bins_, place % 2, list.code[i], {list.row[i], weight});
    }
    for (const std::size_t node : summed_) {
      adder.put_rest(sums_.data() + node * size_, bins_, list.usual, nodes[node].totals);
    }
  }

  std::size_t bins_ = 0;  // A column has so many here. The last of them is that of missing values.
  std::size_t size_ = 0;  // A node has so many numbers.
  std::vector<Bin> sums_;
  std::vector<char> has_sums_;
  std::vector<std::size_t> summed_;
};

}  // namespace untwist
