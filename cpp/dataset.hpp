// Binned rows, grouped by class, that any number of boosters share.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "binning.hpp"
#include "hashing.hpp"
#include "large_memory.hpp"
#include "sketch.hpp"
#include "sparse_binning.hpp"

namespace untwist {

// So many codes after the last one may be read, though they mean nothing: a block of rows is always read whole.
inline constexpr std::size_t kPadding = 256;

// A column has one feature of all rows.
struct CodeColumn {
  const Code* data;
  std::size_t stride;

  Code operator[](std::size_t row) const { return data[row * stride]; }
};

// A column that has one code in most rows lists the others, in the order of the rows or of the codes.
struct CodeList {
  const std::uint32_t* row;
  const Code* code;
  std::size_t count;
  Code usual;  // All rows that are not listed have this code.
};

// The codes of a dataset are in memory twice, by row and by column, or once: by row, by column, or as those columns and
// lists that a sparse table is made of.
enum class Layout { kRowsAndColumns, kRows, kColumns, kSparse };

// A table with few rows and many columns needs no histograms, as what they sum up is no larger than they are, and so it
// needs no codes by row.
inline bool is_wide(std::size_t rows, std::size_t features) {
  constexpr std::size_t kFewRows = 512;
  constexpr std::size_t kManyColumns = 1024;
  return rows <= kFewRows && features >= kManyColumns;
}

using ManyCodes = std::vector<Code, LargeMemory<Code, true>>;

class Dataset {
 public:
  // Rows are ordered by their class, and within a class they keep their order.
  Dataset(const std::uint32_t* label, std::size_t rows, std::size_t classes, std::size_t features,
          Layout layout = Layout::kRowsAndColumns)
      : rows(rows),
        features(features),
        class_start(classes + 1, 0),
        order(rows),
        columns(features),
        layout(layout),
        by_row(has_rows() ? rows * features + kPadding : 0),
        by_column(layout == Layout::kRowsAndColumns || layout == Layout::kColumns ? rows * features + kPadding : 0) {
    for (std::size_t row = 0; row < rows; ++row) ++class_start[label[row] + 1];
    for (std::size_t k = 0; k < classes; ++k) class_start[k + 1] += class_start[k];
    std::vector<std::size_t> next(class_start.begin(), class_start.end() - 1);
    for (std::size_t row = 0; row < rows; ++row) order[next[label[row]]++] = static_cast<std::uint32_t>(row);
  }

  // Draws the sample of rows that places the thresholds, if there are many rows, as a Sketch does. All columns must be
  // observed before the first are added.
  template <typename Real>
  void observe(const Matrix<Real>& X, const WholeWeights& weight, ThreadPool& pool) {
    // So many rows are enough work to be worth a thread's while.
    constexpr std::size_t kBlockRows = 1024;
    std::size_t rows_with_weight = 0;
    std::size_t first_row = rows;
    for (std::size_t row = 0; row < rows; ++row) {
      rows_with_weight += weight[row] > 0;
      if (weight[row] > 0 && first_row == rows) first_row = row;
    }
    if (rows_with_weight <= kSampleRows) return;
    hash_sums_.resize(rows, 0);
    std::vector<std::vector<char>> differs(static_cast<std::size_t>(pool.size()), std::vector<char>(X.columns, 0));
    pool.chunks(rows, kBlockRows, [&](int thread, std::size_t first, std::size_t last) {
      auto& varies = differs[static_cast<std::size_t>(thread)];
      for (std::size_t row = first; row < last; ++row) {
        for (std::size_t column = 0; column < X.columns; ++column) {
          const std::uint64_t hash = hash_value(X(row, column));
          hash_sums_[row] += hash;
          varies[column] |= weight[row] > 0 && hash != hash_value(X(first_row, column));
        }
      }
    });
    for (std::size_t column = 0; column < X.columns; ++column) {
      const bool varies =
          std::any_of(differs.begin(), differs.end(), [&](const auto& seen) { return seen[column] != 0; });
      if (!varies) constant_sum_ += hash_value(X(first_row, column));
    }
    const std::uint64_t largest_hash = largest_sampled_hash(rows_with_weight);
    sampled_ = true;
    sample_.clear();
    for (std::size_t row = 0; row < rows; ++row) {
      if (weight[row] > 0 && mix(hash_sums_[row] - constant_sum_) <= largest_hash) sample_.push_back(row);
    }
  }

  // Bins the columns of X and keeps their codes from feature `first` on. A column of numbers has 0 categories.
  template <typename Real>
  void add_columns(const Matrix<Real>& X, std::size_t first, const std::vector<int>& category_counts,
                   const WholeWeights& weight, int max_bins, ThreadPool& pool) {
    std::vector<std::uint64_t>().swap(hash_sums_);  // The sample is drawn, so their memory can go.
    const auto draw_values = [&](std::size_t column) {
      DrawnValues drawn;
      for (std::size_t row = 0; row < rows; ++row) {
        const double value = static_cast<double>(X(row, column));
        if (!std::isnan(value) && weight[row] > 0) drawn.add(value, weight[row]);
      }
      return drawn;
    };
    const BinningRows binning_rows{sampled_ ? &sample_ : nullptr, sampled_};
    auto bins = find_bins(X, category_counts, weight, binning_rows, draw_values, max_bins, pool);
    std::move(bins.begin(), bins.end(), columns.begin() + static_cast<std::ptrdiff_t>(first));
    const CodeTable codes{has_rows() ? by_row.data() + first : nullptr, features, by_column.data() + first * rows,
                          rows};
    encode(X, weight, {order.data(), rows, 0}, columns.data() + first, codes, pool);
  }

  // Bins all columns of a sparse table. A column of which most rows have the code of 0 lists the others.
  template <typename Real>
  void add_sparse_columns(const SparseMatrix<Real>& X, const WholeWeights& weight, int max_bins, ThreadPool& pool) {
    std::vector<std::uint32_t> place(rows);
    for (std::size_t i = 0; i < rows; ++i) place[order[i]] = static_cast<std::uint32_t>(i);
    const SparseSample<Real> sample(X, weight);
    std::vector<Column> bins(features);
    std::vector<StoredColumn> stored(features);
    const auto for_each_code = [&](std::size_t column, const auto& job) {
      for (auto i = X.start[column]; i < X.start[column + 1]; ++i) {
        const Code code = find_code(bins[column], static_cast<double>(X.value[i]));
        if (code != stored[column].usual) job(place[static_cast<std::size_t>(X.row[i])], code);
      }
    };
    const auto for_each_column = [&](const auto& job) {
      pool.chunks(features, kSparseColumnsTogether, [&](int, std::size_t first, std::size_t last) {
        for (std::size_t column = first; column < last; ++column) job(column, stored[column]);
      });
    };
    for_each_column([&](std::size_t column, StoredColumn& one) {
      bins[column] = find_sparse_bins(X, column, weight, sample, max_bins);
      one.usual = find_code(bins[column], 0.0);
      for_each_code(column, [&](std::uint32_t, Code) { ++one.count; });
      one.is_listed = kListedShare * one.count <= rows;
      one.may_miss = bins[column].missing;
    });
    std::size_t listed = 0;
    std::size_t written = 0;
    for (StoredColumn& one : stored) {
      one.start = one.is_listed ? listed : written;
      (one.is_listed ? listed : written) += one.is_listed ? one.count : rows;
    }
    std::vector<std::uint32_t> listed_row(listed), row_by_code(listed);
    std::vector<Code> listed_code(listed), code_by_code(listed);
    ManyCodes codes(written + kPadding);
    for_each_column([&](std::size_t column, const StoredColumn& one) {
      if (!one.is_listed) {
        Code* of_column = codes.data() + one.start;
        std::fill_n(of_column, rows, one.usual);
        for_each_code(column, [&](std::uint32_t row, Code code) { of_column[row] = code; });
        return;
      }
      std::vector<std::pair<std::uint32_t, Code>> sorted;
      for_each_code(column, [&](std::uint32_t row, Code code) { sorted.emplace_back(row, code); });
      std::sort(sorted.begin(), sorted.end());
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        listed_row[one.start + i] = sorted[i].first;
        listed_code[one.start + i] = sorted[i].second;
      }
      // Codes below the usual one come first and rise; those above it come after these and fall.
      std::sort(sorted.begin(), sorted.end(), [&](const auto& a, const auto& b) {
        const bool a_is_above = a.second > one.usual;
        const bool b_is_above = b.second > one.usual;
        if (a_is_above != b_is_above) return b_is_above;
        if (a.second != b.second) return a_is_above ? a.second > b.second : a.second < b.second;
        return a.first < b.first;
      });
      for (std::size_t i = 0; i < sorted.size(); ++i) {
        row_by_code[one.start + i] = sorted[i].first;
        code_by_code[one.start + i] = sorted[i].second;
      }
    });
    // Whoever interrupts this leaves the dataset as it was.
    columns = std::move(bins);
    stored_ = std::move(stored);
    listed_row_ = std::move(listed_row);
    listed_code_ = std::move(listed_code);
    row_by_code_ = std::move(row_by_code);
    code_by_code_ = std::move(code_by_code);
    by_column = std::move(codes);
  }

  // Takes over bins that were found elsewhere, before the first rows are added.
  void set_bins(std::vector<Column> bins) { columns = std::move(bins); }

  // Keeps the codes of a block of rows with all columns, from row `first` on, by the bins that were set.
  template <typename Real>
  void add_rows(const Matrix<Real>& X, std::size_t first, const WholeWeights& weight, ThreadPool& pool) {
    for (std::size_t k = 0; k + 1 < class_start.size(); ++k) {
      // Within a class the rows of a block are neighbours, as rows keep their order there.
      const auto find_place = [&](std::size_t row) {
        const std::uint32_t* begin = order.data() + class_start[k];
        const std::uint32_t* end = order.data() + class_start[k + 1];
        return static_cast<std::size_t>(std::lower_bound(begin, end, row) - order.data());
      };
      const std::size_t start = find_place(first);
      const std::size_t end = find_place(first + X.rows);
      const CodeTable codes{has_rows() ? by_row.data() + start * features : nullptr, features,
                            has_columns() ? by_column.data() + start : nullptr, rows};
      encode(X, weight, {order.data() + start, end - start, first}, columns.data(), codes, pool);
    }
  }

  const Code* row(std::size_t index) const { return by_row.data() + index * features; }
  bool has_rows() const { return layout == Layout::kRowsAndColumns || layout == Layout::kRows; }
  bool has_columns() const { return layout != Layout::kRows; }

  // Tells whether a column has a list instead of a code for every row.
  bool is_listed(std::size_t feature) const { return !stored_.empty() && stored_[feature].is_listed; }

  CodeList list(std::size_t feature) const {
    const StoredColumn& stored = stored_[feature];
    return {listed_row_.data() + stored.start, listed_code_.data() + stored.start, stored.count, stored.usual};
  }

  // Tells whether a column is a list of numbers none of which is missing.
  bool is_complete_list(std::size_t feature) const { return is_listed(feature) && !stored_[feature].may_miss; }

  // Returns the list with codes below the usual one first, from the smallest on, then those above, from the largest on:
  // whatever splits a column sends a beginning of one of both parts the other way than the usual code.
  CodeList list_by_code(std::size_t feature) const {
    const StoredColumn& stored = stored_[feature];
    return {row_by_code_.data() + stored.start, code_by_code_.data() + stored.start, stored.count, stored.usual};
  }

  // Returns a column that is not listed.
  CodeColumn column(std::size_t feature) const {
    if (!has_columns()) return {by_row.data() + feature, features};
    return {by_column.data() + (stored_.empty() ? feature * rows : stored_[feature].start), 1};
  }

  // Returns the codes of a listed column, one for every row, and kPadding more.
  std::vector<Code> write_out(std::size_t feature) const {
    const CodeList listed = list(feature);
    std::vector<Code> codes(rows + kPadding, listed.usual);
    for (std::size_t i = 0; i < listed.count; ++i) codes[listed.row[i]] = listed.code[i];
    return codes;
  }

  Code code(std::size_t row, std::size_t feature) const {
    if (!is_listed(feature)) return column(feature)[row];
    const CodeList listed = list(feature);
    const std::uint32_t* found = std::lower_bound(listed.row, listed.row + listed.count, row);
    return found < listed.row + listed.count && *found == row ? listed.code[found - listed.row] : listed.usual;
  }

  // Lists the columns that are not constant. The others are neither split nor drawn.
  std::vector<std::uint32_t> varying_columns() const {
    std::vector<std::uint32_t> found;
    for (std::size_t feature = 0; feature < features; ++feature) {
      if (columns[feature].varies) found.push_back(static_cast<std::uint32_t>(feature));
    }
    return found;
  }

  // Returns a hash of each row's codes. What is drawn by it does not depend on the order of the rows, and copies go
  // together.
  const std::vector<std::uint64_t>& hashes() {
    std::call_once(hashed_, [this] {
      hashes_.assign(rows, kGoldenRatio);
      const auto varying = varying_columns();
      if (!has_rows()) {
        for (const std::uint32_t feature : varying) mix_in(feature);
        return;
      }
      for (std::size_t index = 0; index < rows; ++index) {
        std::uint64_t hash = kGoldenRatio;
        for (const std::uint32_t feature : varying) hash = mix(hash ^ row(index)[feature]);
        hashes_[index] = hash;
      }
    });
    return hashes_;
  }

  const std::size_t rows, features;
  std::vector<std::size_t> class_start;  // The rows of class k are class_start[k] to class_start[k + 1].
  std::vector<std::uint32_t> order;      // A row had this place in the data that was given.
  std::vector<Column> columns;
  const Layout layout;
  ManyCodes by_row;     // These codes serve sums over all features of a row. They may be left out.
  ManyCodes by_column;  // These serve one feature of many rows. They may be left out, or have some columns only.

 private:
  // A column of a sparse table is a list where few rows differ from the usual code, else it has a code for every row.
  struct StoredColumn {
    std::size_t start = 0;  // It begins here among the lists, or in by_column.
    std::size_t count = 0;  // So many rows have another code than the usual one.
    Code usual = 0;
    bool is_listed = false;
    bool may_miss = false;
  };

  // A column is listed where at most one in so many rows has another code than the usual one. A listed row takes ten
  // bytes, and whoever sums up the list looks up which node the row is in.
  static constexpr std::size_t kListedShare = 8;

  // Mixes the codes of a column into the hashes of all rows.
  void mix_in(std::size_t feature) {
    const std::vector<Code> written = is_listed(feature) ? write_out(feature) : std::vector<Code>();
    const Code* codes = written.empty() ? column(feature).data : written.data();
    for (std::size_t row = 0; row < rows; ++row) hashes_[row] = mix(hashes_[row] ^ codes[row]);
  }

  std::vector<StoredColumn> stored_;  // It is empty unless the table was sparse.
  std::vector<std::uint32_t> listed_row_;
  std::vector<Code> listed_code_;
  std::vector<std::uint32_t> row_by_code_;  // The lists once more, in the order of their codes.
  std::vector<Code> code_by_code_;
  std::vector<std::uint64_t> hash_sums_;  // A row has the sum of the hashes of its values.
  std::uint64_t constant_sum_ = 0;        // Constant columns add this to every hash sum.
  bool sampled_ = false;
  std::vector<std::size_t> sample_;
  std::once_flag hashed_;
  std::vector<std::uint64_t> hashes_;
};

}  // namespace untwist
