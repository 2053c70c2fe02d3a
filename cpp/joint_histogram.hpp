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
class JointHistogramBuilder {
 public:
  // The rows of a node are to be summed up into its histogram.
  struct Request {
    NodeRows rows;
    Histogram<Bin>* histogram;
  };

  // The lanes of at most `rows_within_32_bits` rows together fit into 32 bits.
  JointHistogramBuilder(const Dataset& data, std::size_t rows_within_32_bits)
      : data_(data), rows_within_32_bits_(rows_within_32_bits) {
    layout_.start.push_back(0);
    for (const Column& column : data.columns) {
      layout_.start.push_back(layout_.start.back() + static_cast<std::uint32_t>(column.values()) + 1);
    }
  }

  // Makes room for the sums of so many threads.
  void prepare(int threads) {
    if (std::is_same_v<Bin, Lane>) return;
    while (workers_.size() < static_cast<std::size_t>(threads)) workers_.emplace_back(layout_.bins() * lanes);
  }

  // Returns a histogram with any content. It is one that was given back, if there is one.
  std::unique_ptr<Histogram<Bin>> take() {
    if (spare_.empty()) return std::make_unique<Histogram<Bin>>(layout_.bins() * lanes);
    auto histogram = std::move(spare_.back());
    spare_.pop_back();
    return histogram;
  }

  void give_back(std::unique_ptr<Histogram<Bin>> histogram) {
    if (histogram != nullptr) spare_.push_back(std::move(histogram));
  }

  // Fills the histograms of some nodes from their rows, or gives them parts.
  void build(const Entry* entries, const Lane* of_rows, const std::vector<Request>& requests, ThreadPool& pool) {
    std::size_t rows = 0;
    for (const Request& request : requests) rows += request.rows.size();
    const std::size_t widest = choose_width(pool.size());
    const std::size_t blocks = (data_.features + widest - 1) / widest;
    const std::size_t usual_rows = choose_strip_rows(rows, requests.size(), blocks, pool.size());
    std::vector<Strip> strips;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      cut_strips(strips, i, requests[i].rows, kSides, data_.features, widest, usual_rows);
      requests[i].histogram->parts.clear();
    }
    balance_strips(strips, pool.size());
    const std::vector<Bin*> places = place_strips(strips, requests);
    const bool few = rows * data_.features < kFewCells;
    pool.chunks(strips.size(), few ? strips.size() : 1, [&](int thread, std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) sum_up(entries, of_rows, strips[i], places[i], thread);
    });
  }

  // Adds up the parts of one feature, if there are any.
  void gather(Histogram<Bin>& histogram, std::size_t feature) const {
    Bin* to = histogram.sums.data() + find_place(0, feature);
    const std::size_t count = find_place(feature, feature + 1);
    bool is_first = true;
    for (const HistogramPart<Bin>& part : histogram.parts) {
      if (!part.has(0, feature)) continue;
      const Bin* from = part.sums + find_place(part.first_feature, feature);
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
    Bin* whole = from.sums.data() + find_place(0, feature);
    const Bin* taken = part.sums.data() + find_place(0, feature);
    const std::size_t count = find_place(feature, feature + 1);
    for (std::size_t i = 0; i < count; ++i) whole[i] -= taken[i];
  }

  // Returns the first row of a feature's sums.
  const Bin* column(const Histogram<Bin>& histogram, std::size_t feature) const {
    return histogram.sums.data() + find_place(0, feature);
  }

 private:
  // All rows are on one side of the list.
  static constexpr std::size_t kSides = 1;

  // With fewer cells than this the sums are there before another thread has woken up.
  static constexpr std::size_t kFewCells = 8192;

  // Returns how many numbers are between two features.
  std::size_t find_place(std::size_t from, std::size_t to) const {
    return (layout_.start[to] - layout_.start[from]) * lanes;
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

  // Returns where each strip begins: in its histogram, or in the memory of parts, of which the histogram is told.
  std::vector<Bin*> place_strips(const std::vector<Strip>& strips, const std::vector<Request>& requests) {
    const auto find_size = [&](const Strip& strip) {
      return strip.is_whole ? 0 : find_place(strip.first_feature, strip.last_feature);
    };
    std::size_t size = 0;
    for (const Strip& strip : strips) size += find_size(strip);
    if (size > part_sums_.size()) part_sums_.resize(size);
    std::vector<Bin*> places;
    places.reserve(strips.size());
    Bin* next = part_sums_.data();
    for (const Strip& strip : strips) {
      Histogram<Bin>& histogram = *requests[strip.owner].histogram;
      if (strip.is_whole) {
        places.push_back(histogram.sums.data() + find_place(0, strip.first_feature));
        continue;
      }
      places.push_back(next);
      histogram.parts.push_back({strip.side, strip.first_feature, strip.last_feature, next});
      next += find_size(strip);
    }
    return places;
  }

  // Writes the sums of a strip to its place.
  void sum_up(const Entry* entries, const Lane* of_rows, const Strip& strip, Bin* place, int thread) {
    const std::size_t count = find_place(strip.first_feature, strip.last_feature);
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
  AlignedVector<Bin> part_sums_;              // The parts of the histograms that were built last are here.
  std::vector<std::unique_ptr<Histogram<Bin>>> spare_;
};

}  // namespace untwist
