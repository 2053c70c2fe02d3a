// Builds the histograms of nodes from their rows, on many threads.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <numeric>
#include <type_traits>
#include <utility>
#include <vector>

#include "column_sums.hpp"
#include "dataset.hpp"
#include "histogram.hpp"
#include "rows.hpp"
#include "sample_weights.hpp"
#include "splitting.hpp"
#include "strips.hpp"
#include "threads.hpp"

namespace untwist {

// A row of sample weight 1 counts as this in fixed point, which is as fine as the weights of many rows.
inline constexpr float kOneRow = 131072.0f;

// Adds rows to the sums of one column, as [plane][bin]. The planes are those of a histogram.
template <typename SomeBin>
struct ClassAdder {
  using Bin = SomeBin;
  using Totals = std::array<Bin, 4>;  // There is one for each plane.

  std::size_t size(std::size_t bins) const { return planes * bins; }

  void add(Bin* sums, std::size_t bins, std::size_t side, Code code, const Entry& entry) const {
    Bin* place = sums + side * bins + code;
    *place += entry.weight;
    if (counts_rows()) place[2 * bins] += count(entry.row);
  }

  // To clear all bins takes less time than to find those that are not empty.
  void clear(Bin* sums, std::size_t bins, const CodeSet&) const { std::fill_n(sums, size(bins), Bin{0}); }

  void put_rest(Bin* sums, std::size_t bins, Code code, const Totals& totals) const {
    for (std::size_t plane = 0; plane < planes; ++plane) {
      Bin* of_plane = sums + plane * bins;
      of_plane[code] = std::accumulate(of_plane, of_plane + bins, totals[plane], std::minus<Bin>());
    }
  }

  // Returns what the rows of a node, whose weights are known, sum up to.
  Totals find_totals(const ClassWeights& weight, const NodeRows& rows, const Entry* entries) const {
    Totals totals{static_cast<Bin>(weight[0]), static_cast<Bin>(weight[1])};
    if (!counts_rows()) return totals;
    for (std::size_t side = 0; side < 2; ++side) {
      for (std::size_t i = rows.first[side]; i < rows.last[side]; ++i) totals[2 + side] += count(entries[i].row);
    }
    return totals;
  }

  ColumnHistogram<Bin> view(const SummedColumn<Bin>& column) const {
    const auto [sums, bins, filled] = column;
    if (!counts_rows()) return {sums, sums + bins, nullptr, nullptr, filled};
    return {sums, sums + bins, sums + 2 * bins, sums + 3 * bins, filled};
  }

  // The last two of four planes count the rows of both classes.
  bool counts_rows() const { return planes == 4; }

  std::uint32_t count(Row row) const { return sample_weight == nullptr ? one_row : sample_weight[row]; }

  std::size_t planes;
  const std::uint32_t* sample_weight;  // Null means that all rows count as one_row.
  std::uint32_t one_row;
};

// Bins have 32 bits where all weights together fit, else 64. A histogram has its sums as [plane][feature][bin]. The
// planes are the weights of the negative and of the positive class and, where rows are counted, the sample weights of
// both.
template <typename Bin>
class HistogramBuilder : public StripBuilder<HistogramBuilder<Bin>, Bin> {
 public:
  using typename StripBuilder<HistogramBuilder<Bin>, Bin>::Request;

  HistogramBuilder(const Dataset& data, const TrainingWeights& weights, bool counts_rows)
      : StripBuilder<HistogramBuilder<Bin>, Bin>(data.features, (counts_rows ? 4 : 2) * data.features * kBins),
        data_(data),
        counts_rows_(counts_rows),
        planes_(counts_rows ? 4 : 2),
        plane_size_(data.features * kBins),
        rows_within_32_bits_(kRowsWithin32Bits / static_cast<std::size_t>(std::ceil(weights.largest))) {
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
    const std::size_t cells = std::min(data_.features, kMaxFeatures) * kBins;
    workers_.resize(std::max(workers_.size(), static_cast<std::size_t>(threads)));
    for (Worker& worker : workers_) {
      if (counts_rows_) {
        worker.wide_sums.resize(cells);
      } else if (!adds_in_place()) {
        worker.sums.resize(cells);
      }
    }
  }

  // Fills the histograms of some nodes from their rows, or gives them parts.
  void build(const Entry* entries, const std::vector<Request>& requests, ThreadPool& pool) {
    this->build_strips(requests, kMaxFeatures, pool,
                       [&](const Strip& strip, Bin* place, int thread) { sum_up(entries, strip, place, thread); });
  }

  // Adds up the parts of one feature, if there are any.
  void gather(Histogram<Bin>& histogram, std::size_t feature) const {
    const std::size_t bins = static_cast<std::size_t>(data_.columns[feature].bins());
    for (std::size_t side = 0; side < kSides; ++side) {
      bool is_first = true;
      for (const HistogramPart<Bin>& part : histogram.parts) {
        if (!part.has(side, feature)) continue;
        const std::size_t width = part.last_feature - part.first_feature;
        for (std::size_t plane = side, i = 0; plane < planes_; plane += kSides, ++i) {
          const Bin* from = part.sums + (i * width + feature - part.first_feature) * kBins;
          Bin* to = histogram.sums.data() + plane * plane_size_ + feature * kBins;
          if (is_first) {
            std::copy_n(from, bins, to);
          } else {
            for (std::size_t bin = 0; bin < bins; ++bin) to[bin] += from[bin];
          }
        }
        is_first = false;
      }
    }
  }

  // Takes one feature of a histogram away from another.
  void subtract(Histogram<Bin>& from, const Histogram<Bin>& part, std::size_t feature) const {
    const std::size_t bins = static_cast<std::size_t>(data_.columns[feature].bins());
    for (std::size_t plane = 0; plane < planes_; ++plane) {
      const std::size_t start = plane * plane_size_ + feature * kBins;
      subtract_sums(from.sums.data() + start, part.sums.data() + start, bins);
    }
  }

  ColumnHistogram<Bin> column(const Histogram<Bin>& histogram, std::size_t feature) const {
    const Bin* negative = histogram.sums.data() + feature * kBins;
    const Bin* positive = negative + plane_size_;
    if (!counts_rows_) return {negative, positive, nullptr, nullptr};
    return {negative, positive, negative + 2 * plane_size_, positive + 2 * plane_size_};
  }

 private:
  friend StripBuilder<HistogramBuilder<Bin>, Bin>;

  static constexpr std::size_t kSides = 2;

  // Weights are at most 2^17 where there are many rows, so the sum of so many stays within 32 bits.
  static constexpr std::size_t kRowsWithin32Bits = 16384;

  static constexpr std::size_t kFewCells = 16384;

  // A thread adds rows here first where the histogram has wider sums, or where a weight and a count share a number.
  struct Worker {
    std::vector<std::uint32_t> sums;
    std::vector<std::uint64_t> wide_sums;  // These are used instead where rows are counted.
  };

  // Weights are added to the sums themselves where these are as wide.
  bool adds_in_place() const { return !counts_rows_ && std::is_same_v<Bin, WeightOnly::Cell>; }

  std::size_t count_sums(const Strip& strip) const {
    return (strip.last_feature - strip.first_feature) * kBins * (planes_ / kSides);
  }

  Bin* find_place(Histogram<Bin>& histogram, const Strip& strip) const {
    return histogram.sums.data() + strip.side * plane_size_ + strip.first_feature * kBins;
  }

  // Writes the sums of a strip to its place. Where rows are counted, their sums are `to_rows` numbers after those of
  // the weights.
  void sum_up(const Entry* entries, const Strip& strip, Bin* place, int thread) {
    const std::size_t cells = (strip.last_feature - strip.first_feature) * kBins;
    const std::size_t to_rows = strip.is_whole ? kSides * plane_size_ : cells;
    std::fill_n(place, cells, Bin{0});
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    if (counts_rows_) {
      std::fill_n(place + to_rows, cells, Bin{0});
      const std::uint32_t* sample_weight = sample_weight_.empty() ? nullptr : sample_weight_.data();
      const WeightAndRows summand{sample_weight, static_cast<std::uint32_t>(kOneRow)};
      for_each_batch_within_32_bits(strip, [&](std::size_t first, std::size_t last) {
        std::fill_n(worker.wide_sums.data(), cells, WeightAndRows::Cell{0});
        add(entries, strip, first, last, summand, worker.wide_sums.data());
        for (std::size_t i = 0; i < cells; ++i) place[i] += static_cast<std::uint32_t>(worker.wide_sums[i]);
        for (std::size_t i = 0; i < cells; ++i) {
          place[to_rows + i] += static_cast<std::uint32_t>(worker.wide_sums[i] >> WeightAndRows::kRowsShift);
        }
      });
      return;
    }
    if constexpr (std::is_same_v<Bin, WeightOnly::Cell>) {
      add(entries, strip, strip.first, strip.last, WeightOnly{}, place);
    } else {
      for_each_batch_within_32_bits(strip, [&](std::size_t first, std::size_t last) {
        std::fill_n(worker.sums.data(), cells, WeightOnly::Cell{0});
        add(entries, strip, first, last, WeightOnly{}, worker.sums.data());
        for (std::size_t i = 0; i < cells; ++i) place[i] += worker.sums[i];
      });
    }
  }

  // Calls job(first, last) for rows whose sums fit into 32 bits.
  template <typename Job>
  void for_each_batch_within_32_bits(const Strip& strip, const Job& job) const {
    for (std::size_t first = strip.first; first < strip.last; first += rows_within_32_bits_) {
      job(first, std::min(strip.last, first + rows_within_32_bits_));
    }
  }

  template <typename Summand>
  void add(const Entry* entries, const Strip& strip, std::size_t first, std::size_t last, const Summand& summand,
           typename Summand::Cell* sums) const {
    for (; first < last; first += kPieceRows) {
      add_rows(data_.by_row.data() + strip.first_feature, data_.features, strip.last_feature - strip.first_feature,
               entries + first, std::min(kPieceRows, last - first), summand, sums);
    }
  }

  const Dataset& data_;
  const bool counts_rows_;
  const std::size_t planes_, plane_size_;
  const std::size_t rows_within_32_bits_;
  std::vector<std::uint32_t>
      sample_weight_;  // A row has its sample weight in fixed point. Empty means kOneRow for all.
  std::vector<Worker> workers_;
};

}  // namespace untwist
