// Cuts the work of summing up the rows of nodes into strips, so that every thread has some.
//
// A strip has some rows of one side of a node in some features. Where it has all rows of its side, it is the only one
// to write to its place in the histogram. Otherwise its sums are a part of the histogram's, and whoever searches a
// feature first adds up the parts of that feature, so that adding up is spread over the threads as searching is.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <utility>
#include <vector>

#include "aligned_memory.hpp"
#include "rows.hpp"
#include "threads.hpp"

namespace untwist {

struct Strip : Piece {
  std::size_t first_feature, last_feature;
  bool is_whole;  // It has all rows of its side.
};

// A part has the sums of a strip that is not whole, in the layout that its builder has for the features of the strip.
template <typename Bin>
struct HistogramPart {
  std::size_t side;
  std::size_t first_feature, last_feature;
  const Bin* sums;

  bool has(std::size_t some_side, std::size_t feature) const {
    return side == some_side && first_feature <= feature && feature < last_feature;
  }
};

// A histogram has all sums of a node, as its builder lays them out, or the parts that add up to them.
template <typename Bin>
struct Histogram {
  explicit Histogram(std::size_t size) : sums(size) {}

  AlignedVector<Bin> sums;
  std::vector<HistogramPart<Bin>> parts;  // They are there until the node has been searched.
};

// Appends the strips of a node's rows on so many sides. A strip has up to `widest` features and about `usual_rows`
// rows, at most half as many again.
inline void cut_strips(std::vector<Strip>& strips, std::size_t owner, const NodeRows& rows, std::size_t sides,
                       std::size_t features, std::size_t widest, std::size_t usual_rows) {
  const std::size_t blocks = (features + widest - 1) / widest;
  for (std::size_t side = 0; side < sides; ++side) {
    const std::size_t count = rows.last[side] - rows.first[side];
    const std::size_t slices = std::max<std::size_t>(1, (count + usual_rows / 2) / usual_rows);
    for (std::size_t slice = 0; slice < slices; ++slice) {
      const std::size_t first = rows.first[side] + count * slice / slices;
      const std::size_t last = rows.first[side] + count * (slice + 1) / slices;
      for (std::size_t block = 0; block < blocks; ++block) {
        strips.push_back(
            {{owner, side, first, last}, features * block / blocks, features * (block + 1) / blocks, slices == 1});
      }
    }
  }
}

// Returns about how many rows a strip should have. `rows` is the number of rows of all nodes, and features come in
// `blocks` blocks.
inline std::size_t choose_strip_rows(std::size_t rows, std::size_t nodes, std::size_t blocks, int threads) {
  // The strips of a single node are alike, so that one for each thread will do. More would be more parts to add up.
  const std::size_t strips_per_thread = nodes == 1 ? 1 : 2;
  // The sums of fewer rows than this take longer to add up than to find.
  constexpr std::size_t kFewRows = 1024;
  if (threads == 1) return std::max<std::size_t>(1, rows);
  return std::max(kFewRows, rows * blocks / (strips_per_thread * static_cast<std::size_t>(threads)) + 1);
}

// Orders strips so that equal shares of neighbours, which ThreadPool::chunks gives to threads, have about as many rows.
inline void balance_strips(std::vector<Strip>& strips, int threads) {
  const auto shares = static_cast<std::size_t>(threads);
  if (shares == 1 || strips.size() <= shares) return;
  const auto is_larger = [](const Strip& a, const Strip& b) { return a.last - a.first > b.last - b.first; };
  std::stable_sort(strips.begin(), strips.end(), is_larger);
  std::vector<Strip> balanced;
  balanced.reserve(strips.size());
  for (std::size_t share = 0; share < shares; ++share) {
    for (std::size_t i = share; i < strips.size(); i += shares) balanced.push_back(strips[i]);
  }
  strips.swap(balanced);
}

// Builds histograms in strips, and keeps those that were given back for use again. A builder derives from it and has
// the constants kSides and kFewCells (with fewer the sums are there before another thread has woken up),
// count_sums(strip), which is how many sums a strip has, and find_place(histogram, strip), which is where those of a
// whole one go.
template <typename Builder, typename Bin>
class StripBuilder {
 public:
  // The rows of a node are to be summed up into its histogram.
  struct Request {
    NodeRows rows;
    Histogram<Bin>* histogram;
  };

  // Returns a histogram with any content. It is one that was given back, if there is one.
  std::unique_ptr<Histogram<Bin>> take() {
    if (spare_.empty()) return std::make_unique<Histogram<Bin>>(histogram_size_);
    auto histogram = std::move(spare_.back());
    spare_.pop_back();
    return histogram;
  }

  void give_back(std::unique_ptr<Histogram<Bin>> histogram) {
    if (histogram != nullptr) spare_.push_back(std::move(histogram));
  }

 protected:
  // A histogram has so many sums of all features.
  StripBuilder(std::size_t features, std::size_t histogram_size)
      : features_(features), histogram_size_(histogram_size) {}

  // Fills the histograms of some nodes from their rows, or gives them parts. A strip has up to `widest` features, and
  // sum_up(strip, place, thread) writes its sums to their place.
  template <typename SumUp>
  void build_strips(const std::vector<Request>& requests, std::size_t widest, ThreadPool& pool, const SumUp& sum_up) {
    std::size_t rows = 0;
    for (const Request& request : requests) rows += request.rows.size();
    const std::size_t blocks = (features_ + widest - 1) / widest;
    const std::size_t usual_rows = choose_strip_rows(rows, requests.size(), blocks, pool.size());
    std::vector<Strip> strips;
    for (std::size_t i = 0; i < requests.size(); ++i) {
      cut_strips(strips, i, requests[i].rows, Builder::kSides, features_, widest, usual_rows);
      requests[i].histogram->parts.clear();
    }
    balance_strips(strips, pool.size());
    const std::vector<Bin*> places = place_strips(strips, requests);
    const bool is_little_work = rows * features_ < Builder::kFewCells;
    pool.chunks(strips.size(), is_little_work ? strips.size() : 1,
                [&](int thread, std::size_t first, std::size_t last) {
                  for (std::size_t i = first; i < last; ++i) sum_up(strips[i], places[i], thread);
                });
  }

 private:
  const Builder& self() const { return static_cast<const Builder&>(*this); }

  // Returns where each strip begins: in its histogram, or in the memory of parts, of which the histogram is told.
  std::vector<Bin*> place_strips(const std::vector<Strip>& strips, const std::vector<Request>& requests) {
    std::size_t size = 0;
    for (const Strip& strip : strips) size += strip.is_whole ? 0 : self().count_sums(strip);
    if (size > part_sums_.size()) part_sums_.resize(size);
    std::vector<Bin*> places;
    places.reserve(strips.size());
    Bin* next = part_sums_.data();
    for (const Strip& strip : strips) {
      Histogram<Bin>& histogram = *requests[strip.owner].histogram;
      if (strip.is_whole) {
        places.push_back(self().find_place(histogram, strip));
        continue;
      }
      places.push_back(next);
      histogram.parts.push_back({strip.side, strip.first_feature, strip.last_feature, next});
      next += self().count_sums(strip);
    }
    return places;
  }

  const std::size_t features_, histogram_size_;
  AlignedVector<Bin> part_sums_;  // The parts of the histograms that were built last are here.
  std::vector<std::unique_ptr<Histogram<Bin>>> spare_;
};

}  // namespace untwist
