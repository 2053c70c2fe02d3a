// Finds the bins of a table that comes in blocks of rows, perhaps to several workers. They are the same as if all of it
// were in memory.
//
// If there are more than kSampleRows rows, a sample places the thresholds. It is drawn by a sum of hashes of a row's
// values, from which those of constant columns are taken out again. So neither the order of the rows nor columns that
// say nothing matter. How many rows there are and which columns are constant is known in the end only. Until then rows
// are kept as generously as what is known so far asks for. If a column turns out to vary when rows have been dropped
// already, all rows must be seen again.
#pragma once

#include <algorithm>
#include <array>
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

// At most about so many rows place the thresholds of a column with many values, enough for 255 bins of nearly equal
// weight.
inline constexpr std::size_t kSampleRows = 100000;

// A row is in the sample of `rows` rows if its hash is not larger than this.
inline std::uint64_t largest_sampled_hash(std::uint64_t rows) {
  constexpr std::uint64_t kAll = ~std::uint64_t{0};
  return rows <= kSampleRows ? kAll : kAll / rows * kSampleRows;
}

class Sketch {
 public:
  // `largest_weight` is the largest weight of all rows, 0 if they have none.
  Sketch(std::vector<int> category_counts, int max_bins, double largest_weight)
      : columns(category_counts.size()),
        category_counts(std::move(category_counts)),
        max_bins(max_bins),
        largest_weight(largest_weight),
        first_hash_(columns, 0),
        varies_(columns, 0),
        values_(columns) {}

  // Sees a block of rows for the first time.
  template <typename Real>
  void observe(const Matrix<Real>& X, const double* weight, ThreadPool& pool) {
    if (drawing_) throw std::invalid_argument("all rows must be observed before the first are drawn");
    const WholeWeights whole(weight, weight == nullptr ? 0 : X.rows, largest_weight);
    std::uint64_t rows_here = 0;
    for (std::size_t row = 0; row < X.rows; ++row) {
      if (whole[row] == 0) continue;
      const bool is_first_of_all = rows_seen_ + rows_here == 0;
      if (is_first_of_all) {
        for (std::size_t column = 0; column < columns; ++column) first_hash_[column] = hash_value(X(row, column));
      }
      ++rows_here;
    }
    const auto varied_before = varies_;
    const auto sums = hash_rows<true>(X, whole, pool);
    must_draw_ = must_draw_ || (rows_seen_ > kSampleRows && varies_ != varied_before);
    rows_seen_ += rows_here;
    if (!must_draw_) keep(X, whole, sums);
    if (must_draw_) rows_.clear();
  }

  // Tells whether all rows must be seen again, by draw.
  bool needs_draw() const { return must_draw_ && !(drawing_ && rows_drawn_from_ == rows_seen_); }

  // Sees a block of rows again.
  template <typename Real>
  void draw(const Matrix<Real>& X, const double* weight, ThreadPool& pool) {
    if (!must_draw_) throw std::invalid_argument("draw must be called only where needs_draw is true");
    begin_draw();
    const WholeWeights whole(weight, weight == nullptr ? 0 : X.rows, largest_weight);
    for (std::size_t row = 0; row < X.rows; ++row) rows_drawn_from_ += whole[row] > 0;
    if (rows_drawn_from_ > rows_seen_) {
      throw std::invalid_argument("draw must see only the rows that were observed");
    }
    keep(X, whole, hash_rows<false>(X, whole, pool));
  }

  std::vector<Column> find_bins(ThreadPool& pool) {
    if (needs_draw()) throw std::invalid_argument("all rows must be drawn first, the same that were observed");
    tidy();
    const Matrix<double> kept(rows_.values.data(), rows_.sums.size(), columns, static_cast<std::ptrdiff_t>(columns), 1);
    const auto draw_values = [this](std::size_t column) -> const DrawnValues& { return values_[column]; };
    const BinningRows binning_rows{nullptr, rows_seen_ > kSampleRows};
    return untwist::find_bins(kept, category_counts, rows_.weights, binning_rows, draw_values, max_bins, pool);
  }

  // Returns what this one has seen, or if rows are being drawn what it has drawn, for another one to merge.
  std::vector<std::uint64_t> state() {
    tidy();
    std::vector<std::uint64_t> words{kMark, fingerprint(), drawing_, must_draw_, rows_seen_, rows_drawn_from_};
    for (std::size_t column = 0; column < columns && !drawing_; ++column) {
      const auto values = values_[column].sort();
      words.insert(words.end(), {first_hash_[column], varies_[column], values.size()});
      for (const auto& entry : values) words.insert(words.end(), {entry.key, entry.weight});
    }
    if (drawing_) words.push_back(constant_sum());
    words.push_back(rows_.sums.size());
    words.insert(words.end(), rows_.sums.begin(), rows_.sums.end());
    words.insert(words.end(), rows_.weights.begin(), rows_.weights.end());
    const std::size_t size = words.size();
    words.resize(size + rows_.values.size());
    if (!rows_.values.empty()) {
      std::memcpy(words.data() + size, rows_.values.data(), sizeof(double) * rows_.values.size());
    }
    words.push_back(checksum(words.data(), words.size()));
    return words;
  }

  // Takes in the state of another one, of other rows.
  void merge(const std::vector<std::uint64_t>& words) {
    Reader from(words);
    if (words.size() < kMinWords || words.back() != checksum(words.data(), words.size() - 1) || from.read() != kMark) {
      throw std::invalid_argument("the bytes must be the state of a Sketch");
    }
    if (from.read() != fingerprint()) {
      throw std::invalid_argument("both sketches must have the same columns, max_bins and largest weight");
    }
    const bool drawing = from.read() != 0;
    const bool must_draw = from.read() != 0;
    const std::uint64_t rows_seen = from.read();
    const std::uint64_t rows_drawn_from = from.read();
    if (drawing) {
      if (!must_draw_ || rows_seen != rows_seen_ || from.read() != constant_sum()) {
        throw std::invalid_argument("both sketches must have observed the same rows");
      }
      begin_draw();
      rows_drawn_from_ += rows_drawn_from;
    } else {
      if (drawing_) throw std::invalid_argument("what was observed must be merged before the first rows are drawn");
      merge_observed(from, rows_seen, must_draw);
    }
    const std::size_t count = from.read();
    const std::uint64_t* sums = from.read_many(count);
    const std::uint64_t* weights = from.read_many(count);
    const std::uint64_t* values = from.read_many(count, columns);
    if (must_draw_ && !drawing_) return rows_.clear();
    rows_.sums.insert(rows_.sums.end(), sums, sums + count);
    rows_.weights.insert(rows_.weights.end(), weights, weights + count);
    const std::size_t size = rows_.values.size();
    rows_.values.resize(size + count * columns);
    if (count > 0) std::memcpy(rows_.values.data() + size, values, sizeof(double) * count * columns);
    tidy();
  }

  const std::size_t columns;
  const std::vector<int> category_counts;
  const int max_bins;
  const double largest_weight;

 private:
  // The first word of every state tells it from other bytes.
  static constexpr std::uint64_t kMark = 0x554E545357454348ULL;

  // The sums of so many rows stay in the first cache while the columns go by.
  static constexpr std::size_t kBlockRows = 256;

  // A state has at least the mark, the fingerprint, two flags, three counts and the checksum.
  static constexpr std::size_t kMinWords = 8;

  // These rows have different contents. The weights of copies are added up.
  struct Rows {
    std::vector<std::uint64_t> sums, weights;
    std::vector<double> values;

    void clear() { *this = Rows(); }
  };

  // Reads words that may be nonsense, and never beyond the last one.
  class Reader {
   public:
    explicit Reader(const std::vector<std::uint64_t>& words) : words_(words) {}

    std::uint64_t read() { return *read_many(1); }

    const std::uint64_t* read_many(std::size_t count, std::size_t width = 1) {
      const std::size_t left = words_.size() - at_;
      if (count > left || (count > 0 && width > left / count)) {
        throw std::invalid_argument("the state of a Sketch must be complete");
      }
      return words_.data() + std::exchange(at_, at_ + count * width);
    }

   private:
    const std::vector<std::uint64_t>& words_;
    std::size_t at_ = 0;
  };

  static std::uint64_t checksum(const std::uint64_t* words, std::size_t count) {
    std::uint64_t sum = count;
    for (std::size_t i = 0; i < count; ++i) sum = mix(sum ^ words[i]);
    return sum;
  }

  // Returns a number that two sketches share only if their states can be merged.
  std::uint64_t fingerprint() const {
    std::uint64_t sum = hash_value(largest_weight) ^ static_cast<std::uint64_t>(max_bins);
    for (const int count : category_counts) sum = mix(sum ^ static_cast<std::uint64_t>(count));
    return sum;
  }

  // Returns what the columns that are constant so far add to every row's sum.
  std::uint64_t constant_sum() const {
    std::uint64_t sum = 0;
    for (std::size_t column = 0; column < columns; ++column) sum += varies_[column] ? 0 : first_hash_[column];
    return sum;
  }

  void begin_draw() {
    if (!std::exchange(drawing_, true)) rows_.clear();
  }

  // This is what a thread has seen of a column.
  struct SeenColumn {
    bool varies = false;
    DrawnValues values;
  };

  // Returns for every row the sum of the hashes of its values, notes which columns vary and, where it collects values,
  // draws some of every column of numbers. All of it takes one pass over the memory of the table.
  template <bool collects_values, typename Real>
  std::vector<std::uint64_t> hash_rows(const Matrix<Real>& X, const WholeWeights& whole, ThreadPool& pool) {
    // The values that each thread draws from so many columns at a time take little memory.
    constexpr std::size_t kColumnsTogether = 64;
    std::vector<std::uint64_t> sums(X.rows, 0);
    for (std::size_t start = 0; start < columns; start += kColumnsTogether) {
      const std::size_t count = std::min(kColumnsTogether, columns - start);
      std::vector<std::vector<SeenColumn>> seen(static_cast<std::size_t>(pool.size()));
      pool.chunks(X.rows, kBlockRows, [&](int thread, std::size_t begin, std::size_t end) {
        auto& of_thread = seen[static_cast<std::size_t>(thread)];
        of_thread.resize(count);
        for (std::size_t first = begin; first < end; first += kBlockRows) {
          const std::size_t last = std::min(first + kBlockRows, end);
          for (std::size_t i = 0; i < count; ++i) {
            hash_block<collects_values>(X, whole, start + i, first, last, sums.data(), of_thread[i]);
          }
        }
      });
      pool.chunks(count, 1, [&](int, std::size_t first, std::size_t last) {
        for (std::size_t i = first; i < last; ++i) {
          for (const auto& of_thread : seen) {
            if (of_thread.empty()) continue;
            varies_[start + i] |= of_thread[i].varies;
            values_[start + i].add_all(of_thread[i].values);
          }
        }
      });
    }
    return sums;
  }

  // Does this for one column of up to kBlockRows rows.
  template <bool collects_values, typename Real>
  void hash_block(const Matrix<Real>& X, const WholeWeights& whole, std::size_t column, std::size_t first,
                  std::size_t last, std::uint64_t* sums, SeenColumn& seen) const {
    std::array<std::uint64_t, kBlockRows> hashes;
    bool varies = false;
    for (std::size_t row = first; row < last; ++row) {
      const std::uint64_t hash = hash_value(X(row, column));
      hashes[row - first] = hash;
      sums[row] += hash;
      varies |= hash != first_hash_[column] && whole[row] > 0;
    }
    seen.varies |= varies;
    if (!collects_values || category_counts[column] > 0) return;
    for (std::size_t row = first; row < last; ++row) {
      if (!seen.values.takes(hashes[row - first]) || whole[row] == 0) continue;
      const double value = static_cast<double>(X(row, column));
      if (!std::isnan(value)) seen.values.add(value, whole[row]);
    }
  }

  // Keeps the rows that are in the sample by what is known so far.
  template <typename Real>
  void keep(const Matrix<Real>& X, const WholeWeights& whole, const std::vector<std::uint64_t>& sums) {
    const std::uint64_t constant = constant_sum();
    const std::uint64_t largest_hash = largest_sampled_hash(rows_seen_);
    for (std::size_t row = 0; row < X.rows; ++row) {
      if (whole[row] == 0 || mix(sums[row] - constant) > largest_hash) continue;
      rows_.sums.push_back(sums[row]);
      rows_.weights.push_back(whole[row]);
      for (std::size_t column = 0; column < columns; ++column) {
        const double value = static_cast<double>(X(row, column));
        rows_.values.push_back(std::isnan(value) ? std::numeric_limits<double>::quiet_NaN() : value + 0.0);
      }
    }
    if (rows_.sums.size() > rows_before_tidying_) {
      tidy();
      rows_before_tidying_ = 2 * std::max(rows_.sums.size(), kSampleRows);
    }
  }

  // Makes one row of copies and drops those that are not in the sample after all. The rows are in order then, whoever
  // saw them first.
  void tidy() {
    const std::uint64_t constant = constant_sum();
    const std::uint64_t largest_hash = largest_sampled_hash(rows_seen_);
    const std::size_t row_bytes = sizeof(double) * columns;
    const auto values = [this](std::size_t row) { return rows_.values.data() + row * columns; };
    std::vector<std::size_t> order(rows_.sums.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    std::sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
      if (rows_.sums[a] != rows_.sums[b]) return rows_.sums[a] < rows_.sums[b];
      return std::memcmp(values(a), values(b), row_bytes) < 0;
    });
    Rows kept;
    for (const std::size_t row : order) {
      if (mix(rows_.sums[row] - constant) > largest_hash) continue;
      const bool is_copy = !kept.sums.empty() && kept.sums.back() == rows_.sums[row] &&
                           std::memcmp(kept.values.data() + kept.values.size() - columns, values(row), row_bytes) == 0;
      if (is_copy) {
        kept.weights.back() += rows_.weights[row];
        continue;
      }
      kept.sums.push_back(rows_.sums[row]);
      kept.weights.push_back(rows_.weights[row]);
      kept.values.insert(kept.values.end(), values(row), values(row) + columns);
    }
    rows_ = std::move(kept);
  }

  // Takes in what another one has observed, up to its rows.
  void merge_observed(Reader& from, std::uint64_t rows_seen, bool must_draw) {
    const std::vector<std::uint8_t> varied_here = varies_;
    std::vector<std::uint8_t> varied_there(columns);
    for (std::size_t column = 0; column < columns; ++column) {
      const std::uint64_t hash = from.read();
      varied_there[column] = from.read() != 0;
      if (rows_seen_ == 0) first_hash_[column] = hash;
      const bool differs = varied_there[column] || hash != first_hash_[column];
      if (rows_seen > 0 && differs) varies_[column] = 1;
      const std::size_t count = from.read();
      const std::uint64_t* entries = from.read_many(count, 2);
      for (std::size_t i = 0; i < count; ++i) {
        const std::uint64_t key = entries[2 * i];
        const std::uint64_t weight = entries[2 * i + 1];
        if (weight > 0) values_[column].add(from_key<double>(key), weight);
      }
    }
    const bool dropped_here = rows_seen_ > kSampleRows && varies_ != varied_here;
    const bool dropped_there = rows_seen > kSampleRows && varies_ != varied_there;
    must_draw_ = must_draw_ || must_draw || dropped_here || dropped_there;
    rows_seen_ += rows_seen;
  }

  std::uint64_t rows_seen_ = 0;        // So many rows with a weight were observed.
  std::uint64_t rows_drawn_from_ = 0;  // So many rows with a weight were seen again.
  bool must_draw_ = false;             // Rows were dropped that belong to the sample.
  bool drawing_ = false;
  std::vector<std::uint64_t> first_hash_;  // A column has the hash of its value in some row with a weight.
  std::vector<std::uint8_t> varies_;
  std::vector<DrawnValues> values_;
  Rows rows_;
  std::size_t rows_before_tidying_ = 2 * kSampleRows;  // As many again as can stay keep the cost of tidying low.
};

}  // namespace untwist
