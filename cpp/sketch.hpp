// Bins of a table that is seen in blocks of rows, each by one of several workers if need be: the same as if all of it
// were in memory at once.
//
// Of more than kSample rows a sample places the thresholds. It is drawn by a sum of hashes of a row's values, from
// which those of constant columns are taken out again, so that neither the order of the rows nor columns that say
// nothing matter. How many rows there are and which columns are constant is known in the end only: rows are kept as
// generously as what is known so far asks for, and if a column turns out to vary when rows have been dropped already,
// all rows must be seen again.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "hashing.hpp"

namespace untwist {

// The most rows looked at to place the thresholds of a column with many values.
inline constexpr std::size_t kSample = 100000;

// A row is drawn if its hash is not larger.
inline std::uint64_t drawn_up_to(std::uint64_t rows) { return rows <= kSample ? ~0ULL : ~0ULL / rows * kSample; }

class Sketch {
 public:
  // `largest` is the largest weight of all rows, 0 if they have none.
  Sketch(std::vector<int> categories, int max_bins, double largest)
      : columns(categories.size()),
        categories(std::move(categories)),
        max_bins(max_bins),
        largest(largest),
        first_hash_(columns, 0),
        varies_(columns, 0),
        values_(columns) {}

  // The first look at a block.
  template <typename Real>
  void look(const Matrix<Real>& X, const double* weight, ThreadPool& pool) {
    if (drawing_) throw std::invalid_argument("all rows must be looked at before the first are drawn");
    const WholeWeights whole(weight, weight == nullptr ? 0 : X.rows, largest);
    std::uint64_t present = 0;
    for (std::size_t row = 0; row < X.rows; ++row) {
      if (whole[row] > 0 && present_ + present++ == 0) {
        for (std::size_t column = 0; column < columns; ++column) first_hash_[column] = hash_of(X(row, column));
      }
    }
    const auto before = varies_;
    const auto sums = hash_sums(X, whole, pool);
    lost_ = lost_ || (present_ > kSample && varies_ != before);
    present_ += present;
    if (!lost_) keep(X, whole, sums);
    if (lost_) rows_.clear();
    pool.chunks(columns, 1, [&](int, std::size_t first, std::size_t last) {
      for (std::size_t column = first; column < last; ++column) {
        for (std::size_t row = 0; row < X.rows && categories[column] == 0; ++row) {
          const double value = static_cast<double>(X(row, column));
          if (!std::isnan(value) && whole[row] > 0) values_[column].add(value, whole[row]);
        }
      }
    });
  }

  // Whether all rows must be seen again, by draw.
  bool needs_draw() const { return lost_ && !(drawing_ && drawn_ == present_); }

  template <typename Real>
  void draw(const Matrix<Real>& X, const double* weight, ThreadPool& pool) {
    if (!lost_) throw std::invalid_argument("there is nothing to draw: one look at the rows was enough");
    begin_draw();
    const WholeWeights whole(weight, weight == nullptr ? 0 : X.rows, largest);
    for (std::size_t row = 0; row < X.rows; ++row) drawn_ += whole[row] > 0;
    if (drawn_ > present_) throw std::invalid_argument("draw must see the rows that look saw, but there are more");
    keep(X, whole, hash_sums(X, whole, pool));
  }

  std::vector<Column> bins(ThreadPool& pool) {
    if (needs_draw()) throw std::invalid_argument("all rows must be drawn first, the same that were looked at");
    tidy();
    const Matrix<double> kept(rows_.values.data(), rows_.sums.size(), columns, static_cast<std::ptrdiff_t>(columns), 1);
    const auto more = [this](std::size_t column) -> const DrawnValues& { return values_[column]; };
    return find_bins(kept, categories, rows_.weights, nullptr, present_ > kSample, more, max_bins, pool);
  }

  // What this one has seen, or if rows are being drawn what it has drawn, for another one to merge.
  std::vector<std::uint64_t> state() {
    tidy();
    std::vector<std::uint64_t> words{kMark, fingerprint(), drawing_, lost_, present_, drawn_};
    for (std::size_t column = 0; column < columns && !drawing_; ++column) {
      const auto values = values_[column].sorted();
      words.insert(words.end(), {first_hash_[column], varies_[column], values.size()});
      for (const auto& entry : values) words.insert(words.end(), {entry.key, entry.weight});
    }
    if (drawing_) words.push_back(constant());
    words.push_back(rows_.sums.size());
    words.insert(words.end(), rows_.sums.begin(), rows_.sums.end());
    words.insert(words.end(), rows_.weights.begin(), rows_.weights.end());
    const std::size_t size = words.size();
    words.resize(size + rows_.values.size());
    if (!rows_.values.empty()) std::memcpy(words.data() + size, rows_.values.data(), 8 * rows_.values.size());
    words.push_back(checksum(words.data(), words.size()));
    return words;
  }

  void merge(const std::vector<std::uint64_t>& words) {
    Reader from(words);
    if (words.size() < 8 || words.back() != checksum(words.data(), words.size() - 1) || from.next() != kMark) {
      throw std::invalid_argument("these bytes are not the state of a Sketch");
    }
    if (from.next() != fingerprint())
      throw std::invalid_argument("a Sketch of other columns, max_bins or largest weight");
    const bool drawing = from.next() != 0, lost = from.next() != 0;
    const std::uint64_t present = from.next(), drawn = from.next();
    if (drawing) {
      if (!lost_ || present != present_ || from.next() != constant())
        throw std::invalid_argument("drawn by a Sketch that has not seen the same rows");
      begin_draw();
      drawn_ += drawn;
    } else {
      if (drawing_) throw std::invalid_argument("merge what was looked at before the first rows are drawn");
      merge_look(from, present, lost);
    }
    const std::size_t count = from.next();
    const std::uint64_t* sums = from.next(count);
    const std::uint64_t* weights = from.next(count);
    const std::uint64_t* values = from.next(count, columns);
    if (lost_ && !drawing_) return rows_.clear();
    rows_.sums.insert(rows_.sums.end(), sums, sums + count);
    rows_.weights.insert(rows_.weights.end(), weights, weights + count);
    const std::size_t size = rows_.values.size();
    rows_.values.resize(size + count * columns);
    if (count > 0) std::memcpy(rows_.values.data() + size, values, 8 * count * columns);
    tidy();
  }

  const std::size_t columns;
  const std::vector<int> categories;
  const int max_bins;
  const double largest;

 private:
  static constexpr std::uint64_t kMark = 0x554E545357454348ULL;

  struct Rows {  // of different contents, with their weights: those of copies are added up
    std::vector<std::uint64_t> sums, weights;
    std::vector<double> values;

    void clear() { *this = Rows(); }
  };

  class Reader {  // of words that may be nonsense
   public:
    explicit Reader(const std::vector<std::uint64_t>& words) : words_(words) {}

    std::uint64_t next() { return *next(1); }

    const std::uint64_t* next(std::size_t count, std::size_t width = 1) {
      const std::size_t left = words_.size() - at_;
      if (count > left || (count > 0 && width > left / count))
        throw std::invalid_argument("the state of a Sketch ends too early");
      return words_.data() + std::exchange(at_, at_ + count * width);
    }

   private:
    const std::vector<std::uint64_t>& words_;
    std::size_t at_ = 0;
  };

  static std::uint64_t checksum(const std::uint64_t* words, std::size_t count) {
    std::uint64_t sum = count;
    for (std::size_t i = 0; i < count; ++i) sum = mixed(sum ^ words[i]);
    return sum;
  }

  std::uint64_t fingerprint() const {
    std::uint64_t sum = hash_of(largest) ^ static_cast<std::uint64_t>(max_bins);
    for (const int count : categories) sum = mixed(sum ^ static_cast<std::uint64_t>(count));
    return sum;
  }

  // What the columns that are constant so far add to every row's sum.
  std::uint64_t constant() const {
    std::uint64_t sum = 0;
    for (std::size_t column = 0; column < columns; ++column) sum += varies_[column] ? 0 : first_hash_[column];
    return sum;
  }

  void begin_draw() {
    if (!std::exchange(drawing_, true)) rows_.clear();
  }

  // Of every row the sum over its values; notes which columns vary.
  template <typename Real>
  std::vector<std::uint64_t> hash_sums(const Matrix<Real>& X, const WholeWeights& whole, ThreadPool& pool) {
    constexpr std::size_t kBlock = 256;
    std::vector<std::uint64_t> sums(X.rows, 0);
    std::vector<std::vector<std::uint8_t>> differs(static_cast<std::size_t>(pool.size()),
                                                   std::vector<std::uint8_t>(columns, 0));
    pool.chunks(X.rows, kBlock, [&](int thread, std::size_t begin, std::size_t end) {
      auto& varies = differs[static_cast<std::size_t>(thread)];
      for (std::size_t first = begin; first < end; first += kBlock) {
        const std::size_t last = std::min(first + kBlock, end);
        for (std::size_t column = 0; column < columns; ++column) {
          bool any = false;
          for (std::size_t row = first; row < last; ++row) {
            const std::uint64_t hash = hash_of(X(row, column));
            sums[row] += hash;
            any |= hash != first_hash_[column] && whole[row] > 0;
          }
          varies[column] |= any;
        }
      }
    });
    for (const auto& seen : differs) {
      for (std::size_t column = 0; column < columns; ++column) varies_[column] |= seen[column];
    }
    return sums;
  }

  // Keeps the rows that are drawn, as far as is known.
  template <typename Real>
  void keep(const Matrix<Real>& X, const WholeWeights& whole, const std::vector<std::uint64_t>& sums) {
    const std::uint64_t constants = constant(), most = drawn_up_to(present_);
    for (std::size_t row = 0; row < X.rows; ++row) {
      if (whole[row] == 0 || mixed(sums[row] - constants) > most) continue;
      rows_.sums.push_back(sums[row]);
      rows_.weights.push_back(whole[row]);
      for (std::size_t column = 0; column < columns; ++column) {
        const double value = static_cast<double>(X(row, column));
        rows_.values.push_back(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value + 0.0);
      }
    }
    if (rows_.sums.size() > crowded_) {
      tidy();
      crowded_ = 2 * std::max(rows_.sums.size(), kSample);
    }
  }

  // Copies become one row, and those that are not drawn after all go. The rows are in order then, whoever saw them
  // first.
  void tidy() {
    const std::uint64_t constants = constant(), most = drawn_up_to(present_);
    const auto values = [this](std::size_t row) { return rows_.values.data() + row * columns; };
    std::vector<std::size_t> order(rows_.sums.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      return rows_.sums[a] != rows_.sums[b] ? rows_.sums[a] < rows_.sums[b]
                                            : std::memcmp(values(a), values(b), 8 * columns) < 0;
    });
    Rows kept;
    for (const std::size_t row : order) {
      if (mixed(rows_.sums[row] - constants) > most) continue;
      const bool copy = !kept.sums.empty() && kept.sums.back() == rows_.sums[row] &&
                        std::memcmp(kept.values.data() + kept.values.size() - columns, values(row), 8 * columns) == 0;
      if (copy) {
        kept.weights.back() += rows_.weights[row];
        continue;
      }
      kept.sums.push_back(rows_.sums[row]);
      kept.weights.push_back(rows_.weights[row]);
      kept.values.insert(kept.values.end(), values(row), values(row) + columns);
    }
    rows_ = std::move(kept);
  }

  void merge_look(Reader& from, std::uint64_t present, bool lost) {
    std::vector<std::uint8_t> own = varies_, other(columns);
    for (std::size_t column = 0; column < columns; ++column) {
      const std::uint64_t hash = from.next();
      other[column] = from.next() != 0;
      if (present_ == 0) first_hash_[column] = hash;
      if (present > 0 && (other[column] || hash != first_hash_[column])) varies_[column] = 1;
      const std::size_t count = from.next();
      const std::uint64_t* entries = from.next(count, 2);
      for (std::size_t i = 0; i < count; ++i) {
        if (entries[2 * i + 1] > 0) values_[column].add(from_key<double>(entries[2 * i]), entries[2 * i + 1]);
      }
    }
    lost_ = lost_ || lost || (present_ > kSample && varies_ != own) || (present > kSample && varies_ != other);
    present_ += present;
  }

  std::uint64_t present_ = 0, drawn_ = 0;  // rows with a weight
  bool lost_ = false, drawing_ = false;
  std::vector<std::uint64_t> first_hash_;  // by column, of any row with a weight
  std::vector<std::uint8_t> varies_;
  std::vector<DrawnValues> values_;
  Rows rows_;
  std::size_t crowded_ = 2 * kSample;
};

}  // namespace untwist
