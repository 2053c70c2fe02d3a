// Builds the histograms of a joint tree's nodes: for every bin of every feature the sums of all lanes.
//
// Sums are whole numbers, so neither threads nor the order of the rows matter, and the histogram of a node is that of
// its parent minus that of its sibling, exactly.
//
// histogram_builder.hpp does the same for two classes, plane by plane. Here a bin has all its lanes side by side, so
// that a row adds to them by one instruction.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <type_traits>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "joint_lanes.hpp"
#include "joint_splitting.hpp"
#include "rows.hpp"
#include "threads.hpp"

namespace untwist {

template <typename Bin>
using JointHistogram = AlignedVector<Bin>;

// Adds rows to the sums of one column, as [bin][lane].
template <typename SomeBin, std::size_t lanes>
struct JointAdder {
  using Bin = SomeBin;
  using Totals = LaneSums<lanes>;

  std::size_t size(std::size_t bins) const { return bins * lanes; }

  void add(Bin* sums, std::size_t, std::size_t, Code code, const Entry& entry) const {
    Bin* place = sums + code * lanes;
    const Lane* of_row = of_rows + entry.row * lanes;
    for (std::size_t i = 0; i < lanes; ++i) place[i] += of_row[i];
  }

  void put_rest(Bin* sums, std::size_t bins, Code code, const Totals& totals) const {
    LaneSums<lanes> rest = totals;
    for (std::size_t bin = 0; bin < bins; ++bin) {
      for (std::size_t i = 0; i < lanes; ++i) rest.sum[i] -= sums[bin * lanes + i];
    }
    for (std::size_t i = 0; i < lanes; ++i) sums[code * lanes + i] = static_cast<Bin>(rest.sum[i]);
  }

  const Lane* of_rows;
};

// Bins have 32 bits where the sums over all rows fit, else 64.
template <typename Bin, std::size_t lanes>
class JointHistogramBuilder {
 public:
  // The rows of a node are to be summed up into its histogram.
  struct Request {
    NodeRows rows;
    JointHistogram<Bin>* histogram;
  };

  // The lanes of at most `flush_rows` rows together fit into 32 bits.
  JointHistogramBuilder(const Dataset& data, std::size_t flush_rows)
      : data_(data), flush_rows_(flush_rows), piece_rows_(std::min(kPieceRows, flush_rows)) {
    layout_.start.push_back(0);
    for (const Column& column : data.columns) {
      layout_.start.push_back(layout_.start.back() + static_cast<std::uint32_t>(column.values()) + 1);
    }
  }

  // Makes room for the sums of so many threads.
  void prepare(int threads) {
    if (adds_in_place(threads)) return;
    while (workers_.size() < static_cast<std::size_t>(threads)) {
      workers_.push_back(Worker{0, 0, AlignedVector<Lane>(size(), 0)});
    }
  }

  // Returns a histogram with any content. It is one that was given back, if there is one.
  std::unique_ptr<JointHistogram<Bin>> take() {
    if (spare_.empty()) return std::make_unique<JointHistogram<Bin>>(size());
    auto histogram = std::move(spare_.back());
    spare_.pop_back();
    return histogram;
  }

  void give_back(std::unique_ptr<JointHistogram<Bin>> histogram) {
    if (histogram != nullptr) spare_.push_back(std::move(histogram));
  }

  // Fills the histograms of some nodes from their rows.
  void build(const Entry* entries, const Lane* of_rows, const std::vector<Request>& requests, ThreadPool& pool) {
    const bool in_place = adds_in_place(pool.size());
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      std::fill(requests[i].histogram->begin(), requests[i].histogram->end(), Bin{0});
      cut(pieces, i, requests[i].rows, in_place ? data_.rows : piece_rows_);
    }
    const auto deliver = [&](int thread) {
      if (in_place) return;
      Worker& worker = workers_[static_cast<std::size_t>(thread)];
      if (worker.rows > 0) flush(*requests[worker.owner].histogram, worker.sums);
      worker.rows = 0;
    };
    for_each_piece(
        pool, pieces,
        [&](int thread, const Piece& piece) {
          const std::size_t rows = piece.last - piece.first;
          const NodeRows& all = requests[piece.owner].rows;
          if constexpr (std::is_same_v<Bin, Lane>) {
            // Nobody else adds to a histogram whose rows are a single piece.
            if (rows == all.size()) return add(entries + piece.first, rows, of_rows, *requests[piece.owner].histogram);
          }
          Worker& worker = workers_[static_cast<std::size_t>(thread)];
          if (worker.owner != piece.owner || worker.rows + rows > flush_rows_) deliver(thread);
          worker.owner = piece.owner;
          worker.rows += rows;
          add(entries + piece.first, rows, of_rows, worker.sums);
        },
        deliver);
  }

  // Takes one feature of a histogram away from another.
  void subtract(JointHistogram<Bin>& from, const JointHistogram<Bin>& part, std::size_t feature) const {
    Bin* whole = from.data() + layout_.start[feature] * lanes;
    const Bin* taken = part.data() + layout_.start[feature] * lanes;
    const std::size_t count = (layout_.start[feature + 1] - layout_.start[feature]) * lanes;
    for (std::size_t i = 0; i < count; ++i) whole[i] -= taken[i];
  }

  // Returns the first row of a feature's sums.
  const Bin* column(const JointHistogram<Bin>& histogram, std::size_t feature) const {
    return histogram.data() + layout_.start[feature] * lanes;
  }

 private:
  // A thread adds the rows of one node at a time.
  struct Worker {
    std::size_t owner;
    std::size_t rows;  // So many rows are in the sums.
    AlignedVector<Lane> sums;
  };

  std::size_t size() const { return layout_.bins() * lanes; }

  // A single thread needs no sums of its own where those of the nodes are as narrow.
  static bool adds_in_place(int threads) { return threads == 1 && std::is_same_v<Bin, Lane>; }

  void add(const Entry* entries, std::size_t count, const Lane* of_rows, AlignedVector<Lane>& sums) const {
    add_lanes<lanes>(data_.by_row.data(), data_.features, layout_.start.data(), entries, count, of_rows, sums.data());
  }

  // Adds a thread's sums to a histogram and clears them.
  void flush(JointHistogram<Bin>& histogram, AlignedVector<Lane>& sums) {
    const std::lock_guard<std::mutex> guard(flushing_);
    for (std::size_t i = 0; i < sums.size(); ++i) histogram[i] += sums[i];
    std::fill(sums.begin(), sums.end(), 0);
  }

  const Dataset& data_;
  const std::size_t flush_rows_, piece_rows_;
  BinLayout layout_;
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<JointHistogram<Bin>>> spare_;
  std::mutex flushing_;
};

}  // namespace untwist
