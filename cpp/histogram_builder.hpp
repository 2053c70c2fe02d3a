// Builds the histograms of nodes from their rows, on many threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "histogram.hpp"
#include "rows.hpp"
#include "sample_weights.hpp"
#include "splitting.hpp"
#include "threads.hpp"

namespace untwist {

// A row of sample weight 1 counts as this in fixed point, which is as fine as the weights of many rows.
inline constexpr float kOneRow = 131072.0f;

// A histogram has all sums of a node, as [plane][feature][bin]. The planes are the weights of the negative and of the
// positive class and, where rows are counted, the sample weights of both.
template <typename Bin>
using Histogram = std::vector<Bin>;

// Adds rows to the sums of one column, as [plane][bin]. The planes are those of a histogram.
template <typename SomeBin>
struct ClassAdder {
  using Bin = SomeBin;
  using Totals = std::array<Bin, 4>;  // There is one for each plane.

  std::size_t size(std::size_t bins) const { return planes * bins; }

  void add(Bin* sums, std::size_t bins, std::size_t side, Code code, const Entry& entry) const {
    Bin* place = sums + side * bins + code;
    *place += entry.weight;
    if (planes == 4) place[2 * bins] += count(entry.row);
  }

  void put_rest(Bin* sums, std::size_t bins, Code code, const Totals& totals) const {
    for (std::size_t plane = 0; plane < planes; ++plane) {
      Bin* of_plane = sums + plane * bins;
      of_plane[code] = std::accumulate(of_plane, of_plane + bins, totals[plane], std::minus<Bin>());
    }
  }

  // Returns what the rows of a node, whose weights are known, sum up to.
  Totals find_totals(const ClassWeights& weight, const NodeRows& rows, const Entry* entries) const {
    Totals totals{static_cast<Bin>(weight[0]), static_cast<Bin>(weight[1])};
    if (planes == 2) return totals;
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t i = rows.first[side]; i < rows.last[side]; ++i) totals[2 + side] += count(entries[i].row);
    }
    return totals;
  }

  ColumnHistogram<Bin> view(const Bin* sums, std::size_t bins) const {
    if (planes == 2) return {sums, sums + bins, nullptr, nullptr};
    return {sums, sums + bins, sums + 2 * bins, sums + 3 * bins};
  }

  std::uint32_t count(Row row) const { return sample_weight == nullptr ? one_row : sample_weight[row]; }

  std::size_t planes;
  const std::uint32_t* sample_weight;  // Null means that all rows count as one_row.
  std::uint32_t one_row;
};

// Bins have 32 bits where all weights together fit, else 64.
template <typename Bin>
class HistogramBuilder {
 public:
  // The rows of a node are to be summed up into its histogram.
  struct Request {
    NodeRows rows;
    Histogram<Bin>* histogram;
  };

  HistogramBuilder(const Dataset& data, const TrainingWeights& weights, bool counts_rows)
      : data_(data),
        counts_rows_(counts_rows),
        planes_(counts_rows ? 4 : 2),
        plane_size_(data.features * kBins),
        flush_rows_(kFlushRows / static_cast<std::size_t>(std::ceil(weights.largest))),
        piece_rows_(std::min(kPieceRows, flush_rows_)) {
    if (!counts_rows) return;
    for (const float weight : weights.weight) {
      sample_weight_.push_back(static_cast<std::uint32_t>(weight * kOneRow + 0.5f));
    }
  }

  // Returns what sums up one column at a time, where no histograms are built.
  ClassAdder<Bin> adder() const {
    return {planes_, sample_weight_.empty() ? nullptr : sample_weight_.data(), static_cast<std::uint32_t>(kOneRow)};
  }

  // Makes room for the sums of so many threads.
  void prepare(int threads) {
    while (workers_.size() < static_cast<std::size_t>(threads)) {
      Worker worker;
      if (counts_rows_) {
        worker.wide_sums.resize(plane_size_);
      } else {
        worker.sums.resize(plane_size_);
      }
      workers_.push_back(std::move(worker));
    }
  }

  // Returns a histogram with any content. It is one that was given back, if there is one.
  std::unique_ptr<Histogram<Bin>> take() {
    if (spare_.empty()) return std::make_unique<Histogram<Bin>>(planes_ * plane_size_);
    auto histogram = std::move(spare_.back());
    spare_.pop_back();
    return histogram;
  }

  void give_back(std::unique_ptr<Histogram<Bin>> histogram) {
    if (histogram != nullptr) spare_.push_back(std::move(histogram));
  }

  // Fills the histograms of some nodes from their rows.
  void build(const Entry* entries, const std::vector<Request>& requests, ThreadPool& pool) {
    std::vector<Piece> pieces;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      std::fill(requests[i].histogram->begin(), requests[i].histogram->end(), Bin{0});
      cut(pieces, i, requests[i].rows, piece_rows_);
    }
    if (counts_rows_) {
      const std::uint32_t* sample_weight = sample_weight_.empty() ? nullptr : sample_weight_.data();
      sum_up(entries, requests, pieces, WeightAndRows{sample_weight, static_cast<std::uint32_t>(kOneRow)}, pool);
    } else {
      sum_up(entries, requests, pieces, WeightOnly{}, pool);
    }
  }

  // Takes one feature of a histogram away from another.
  void subtract(Histogram<Bin>& from, const Histogram<Bin>& part, std::size_t feature) const {
    const std::size_t bins = static_cast<std::size_t>(data_.columns[feature].bins());
    for (std::size_t plane = 0; plane < planes_; ++plane) {
      const std::size_t start = plane * plane_size_ + feature * kBins;
      for (std::size_t bin = start; bin < start + bins; ++bin) from[bin] -= part[bin];
    }
  }

  ColumnHistogram<Bin> column(const Histogram<Bin>& histogram, std::size_t feature) const {
    const Bin* negative = histogram.data() + feature * kBins;
    const Bin* positive = negative + plane_size_;
    if (!counts_rows_) return {negative, positive, nullptr, nullptr};
    return {negative, positive, negative + 2 * plane_size_, positive + 2 * plane_size_};
  }

 private:
  // Weights are at most 2^17 where there are many rows, so the sum of so many stays within 32 bits.
  static constexpr std::size_t kFlushRows = 16384;

  // A worker has the sums of a thread, and knows which side of which request they are of.
  struct Worker {
    std::vector<std::uint32_t> sums;
    std::vector<std::uint64_t> wide_sums;  // These are used instead where rows are counted.
    std::size_t owner = 0, side = 0;
    std::size_t rows = 0;  // So many rows are in the sums.
  };

  // Every thread keeps sums of one side of one node as long as it gets pieces of it and they cannot overflow.
  template <typename Summand>
  void sum_up(const Entry* entries, const std::vector<Request>& requests, std::vector<Piece>& pieces,
              const Summand& summand, ThreadPool& pool) {
    const auto deliver = [&](int thread) {
      Worker& worker = workers_[static_cast<std::size_t>(thread)];
      if (worker.rows > 0) flush(*requests[worker.owner].histogram, worker.side, sums<Summand>(worker));
      worker.rows = 0;
    };
    const auto add_piece = [&](int thread, const Piece& piece) {
      Worker& worker = workers_[static_cast<std::size_t>(thread)];
      const std::size_t rows = piece.last - piece.first;
      const bool is_other = worker.owner != piece.owner || worker.side != piece.side;
      if (is_other || worker.rows + rows > flush_rows_) deliver(thread);
      worker.owner = piece.owner;
      worker.side = piece.side;
      worker.rows += rows;
      add_rows(data_.by_row.data(), data_.features, entries + piece.first, rows, summand, sums<Summand>(worker));
    };
    for_each_piece(pool, pieces, add_piece, deliver);
  }

  template <typename Summand>
  static typename Summand::Cell* sums(Worker& worker) {
    if constexpr (std::is_same_v<Summand, WeightAndRows>) {
      return worker.wide_sums.data();
    } else {
      return worker.sums.data();
    }
  }

  // Adds a thread's sums to a histogram and clears them.
  template <typename Cell>
  void flush(Histogram<Bin>& histogram, std::size_t side, Cell* sums) {
    const std::lock_guard<std::mutex> guard(flushing_);
    Bin* weights = histogram.data() + side * plane_size_;
    for (std::size_t feature = 0; feature < data_.features; ++feature) {
      const std::size_t start = feature * kBins;
      const std::size_t end = start + static_cast<std::size_t>(data_.columns[feature].bins());
      for (std::size_t i = start; i < end; ++i) weights[i] += static_cast<std::uint32_t>(sums[i]);
      if constexpr (std::is_same_v<Cell, WeightAndRows::Cell>) {
        Bin* rows = weights + 2 * plane_size_;
        for (std::size_t i = start; i < end; ++i)
          rows[i] += static_cast<std::uint32_t>(sums[i] >> WeightAndRows::kRowsShift);
      }
      std::fill(sums + start, sums + end, Cell{0});
    }
  }

  const Dataset& data_;
  const bool counts_rows_;
  const std::size_t planes_, plane_size_;
  const std::size_t flush_rows_, piece_rows_;
  std::vector<std::uint32_t>
      sample_weight_;  // A row has its sample weight in fixed point. Empty means kOneRow for all.
  std::vector<Worker> workers_;
  std::vector<std::unique_ptr<Histogram<Bin>>> spare_;
  std::mutex flushing_;
};

}  // namespace untwist
