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
#include <type_traits>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "joint_lanes.hpp"
#include "joint_splitting.hpp"
#include "rows.hpp"
#include "strips.hpp"
#include "threads.hpp"

namespace untwist {

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

  void clear(Bin* sums, std::size_t bins, const CodeSet& codes) const {
    codes.for_each(bins, [&](std::size_t code) { std::fill_n(sums + code * lanes, lanes, Bin{0}); });
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

// Bins have 32 bits where the sums over all rows fit, else 64. A histogram has its sums as [feature][bin][lane].
template <typename Bin, std::size_t lanes>
class JointHistogramBuilder : public StripBuilder<JointHistogramBuilder<Bin, lanes>, Bin> {
 public:
  using typename StripBuilder<JointHistogramBuilder<Bin, lanes>, Bin>::Request;

  // The lanes of at most `rows_within_32_bits` rows together fit into 32 bits.
  JointHistogramBuilder(const Dataset& data, std::size_t rows_within_32_bits)
      : JointHistogramBuilder(data, rows_within_32_bits, lay_out(data)) {}

  // Makes room for the sums of so many threads.
  void prepare(int threads) {
    if (std::is_same_v<Bin, Lane>) return;
    while (workers_.size() < static_cast<std::size_t>(threads)) workers_.emplace_back(layout_.bins() * lanes);
  }

  // Fills the histograms of some nodes from their rows, or gives them parts.
  void build(const Entry* entries, const Lane* of_rows, const std::vector<Request>& requests, ThreadPool& pool) {
    this->build_strips(requests, choose_width(pool.size()), pool, [&](const Strip& strip, Bin* place, int thread) {
      sum_up(entries, of_rows, strip, place, thread);
    });
  }

  // Adds up the parts of one feature, if there are any.
  void gather(Histogram<Bin>& histogram, std::size_t feature) const {
    Bin* to = histogram.sums.data() + count_between(0, feature);
    const std::size_t count = count_between(feature, feature + 1);
    bool is_first = true;
    for (const HistogramPart<Bin>& part : histogram.parts) {
      if (!part.has(0, feature)) continue;
      const Bin* from = part.sums + count_between(part.first_feature, feature);
      if (is_first) {
        std::copy_n(from, count, to);
      } else {
        for (std::size_t i = 0; i < count; ++i) to[i] += from[i];
      }
      is_first = false;
    }
  }

  // Takes one feature of a histogram away from another.
  void subtract(Histogram<Bin>& from, const Histogram<Bin>& part, std::size_t feature) const {
    Bin* whole = from.sums.data() + count_between(0, feature);
    const Bin* taken = part.sums.data() + count_between(0, feature);
    const std::size_t count = count_between(feature, feature + 1);
    for (std::size_t i = 0; i < count; ++i) whole[i] -= taken[i];
  }

  // Returns the first row of a feature's sums.
  const Bin* column(const Histogram<Bin>& histogram, std::size_t feature) const {
    return histogram.sums.data() + count_between(0, feature);
  }

 private:
  friend StripBuilder<JointHistogramBuilder<Bin, lanes>, Bin>;

  // All rows are on one side of the list.
  static constexpr std::size_t kSides = 1;

  static constexpr std::size_t kFewCells = 8192;

  JointHistogramBuilder(const Dataset& data, std::size_t rows_within_32_bits, BinLayout layout)
      : StripBuilder<JointHistogramBuilder<Bin, lanes>, Bin>(data.features, layout.bins() * lanes),
        data_(data),
        rows_within_32_bits_(rows_within_32_bits),
        layout_(std::move(layout)) {}

  static BinLayout lay_out(const Dataset& data) {
    BinLayout layout;
    layout.start.push_back(0);
    for (const Column& column : data.columns) {
      layout.start.push_back(layout.start.back() + static_cast<std::uint32_t>(column.values()) + 1);
    }
    return layout;
  }

  // Returns how many sums the features from one up to another have.
  std::size_t count_between(std::size_t from, std::size_t to) const {
    return (layout_.start[to] - layout_.start[from]) * lanes;
  }

  std::size_t count_sums(const Strip& strip) const { return count_between(strip.first_feature, strip.last_feature); }

  Bin* find_place(Histogram<Bin>& histogram, const Strip& strip) const {
    return histogram.sums.data() + count_between(0, strip.first_feature);
  }

  // Returns how many features a strip has. Sums of all lanes are large, so threads have features of their own rather
  // than sums that are added up afterwards, but enough of them to make use of a row that was fetched.
  std::size_t choose_width(int threads) const {
    constexpr std::size_t kFewFeatures = 4;
    if (threads == 1) return std::max<std::size_t>(1, data_.features);
    const std::size_t each =
        (data_.features + static_cast<std::size_t>(threads) - 1) / static_cast<std::size_t>(threads);
    return std::max(kFewFeatures, each);
  }

  // Writes the sums of a strip to its place.
  void sum_up(const Entry* entries, const Lane* of_rows, const Strip& strip, Bin* place, int thread) {
    const std::size_t count = count_sums(strip);
    std::fill_n(place, count, Bin{0});
    if constexpr (std::is_same_v<Bin, Lane>) {
      add(entries, of_rows, strip, strip.first, strip.last, place);
    } else {
      AlignedVector<Lane>& sums = workers_[static_cast<std::size_t>(thread)];
      for (std::size_t first = strip.first; first < strip.last; first += rows_within_32_bits_) {
        std::fill_n(sums.data(), count, Lane{0});
        add(entries, of_rows, strip, first, std::min(strip.last, first + rows_within_32_bits_), sums.data());
        for (std::size_t i = 0; i < count; ++i) place[i] += sums[i];
      }
    }
  }

  void add(const Entry* entries, const Lane* of_rows, const Strip& strip, std::size_t first, std::size_t last,
           Lane* sums) const {
    const FeatureBlock block{strip.first_feature, strip.last_feature - strip.first_feature, data_.features};
    add_lanes<lanes>(data_.by_row.data(), block, layout_.start.data(), entries + first, last - first, of_rows, sums);
  }

  const Dataset& data_;
  const std::size_t rows_within_32_bits_;
  BinLayout layout_;
  std::vector<AlignedVector<Lane>> workers_;  // A thread adds rows here first where the histogram has wider sums.
};

}  // namespace untwist
