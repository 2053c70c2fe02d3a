// Binds datasets and sketches for Python.
#include "../dataset.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "../binning.hpp"
#include "../rows.hpp"
#include "../sketch.hpp"
#include "arrays.hpp"
#include "module.hpp"

namespace untwist::python {

namespace {

// ---- datasets ----

std::shared_ptr<Dataset> make_dataset(const Vector<std::uint32_t>& labels, std::size_t classes, std::size_t features,
                                      bool lean, bool sparse) {
  const std::size_t rows = labels.shape(0);
  require(rows > 0 && features > 0 && rows < std::numeric_limits<Row>::max(), "X must have rows and columns");
  require(classes <= rows, "there must be at most as many classes as rows");
  require_aligned(labels);
  for (std::size_t row = 0; row < rows; ++row) {
    require(labels.data()[row] < classes, "labels must be below the number of classes");
  }
  require(!(lean && sparse), "a dataset must not be lean and sparse");
  Layout layout = is_wide(rows, features) ? Layout::kColumns : Layout::kRowsAndColumns;
  if (lean) layout = Layout::kRows;
  if (sparse) layout = Layout::kSparse;
  return std::make_shared<Dataset>(labels.data(), rows, classes, features, layout);
}

template <typename Real>
void observe(Dataset& dataset, const Table<Real>& X, const Vector<double>& weight, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.rows == dataset.rows, "there must be one label per row");
  require_weights(weight, dataset.rows);
  require_threads(threads);
  if (dataset.rows <= kSampleRows) return;
  run_interruptibly(
      threads, [&](ThreadPool& pool) { dataset.observe(matrix, WholeWeights(weight.data(), weight.shape(0)), pool); });
}

template <typename Real>
void add_columns(Dataset& dataset, const Table<Real>& X, std::size_t first, const Vector<std::int32_t>& n_categories,
                 const Vector<double>& weight, int max_bins, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.rows == dataset.rows, "there must be one label per row");
  require(first <= dataset.features && matrix.columns <= dataset.features - first,
          "the columns of X must be among the features");
  require(dataset.has_columns(), "the dataset must not be lean");
  require(dataset.layout != Layout::kSparse, "the dataset must not be sparse");
  require(n_categories.shape(0) == matrix.columns, "there must be one number of categories per column");
  const auto counts = read_category_counts(n_categories);
  require_max_bins(max_bins);
  require_threads(threads);
  require_weights(weight, dataset.rows);
  run_interruptibly(worthwhile_threads(matrix.rows * matrix.columns, threads), [&](ThreadPool& pool) {
    const WholeWeights whole(weight.data(), weight.shape(0));
    dataset.add_columns(matrix, first, counts, whole, max_bins, pool);
  });
}

template <typename Real>
void add_sparse_columns(Dataset& dataset, const Vector<std::int64_t>& start, const Vector<std::int32_t>& row,
                        const Vector<Real>& value, const Vector<double>& weight, int max_bins, int threads) {
  require(dataset.layout == Layout::kSparse, "the dataset must be sparse");
  require_aligned(start, row, value);
  require(start.shape(0) == dataset.features + 1 && row.shape(0) == value.shape(0), "the arrays must fit together");
  const auto cells = static_cast<std::int64_t>(row.shape(0));
  require(start.data()[0] == 0 && start.data()[dataset.features] == cells &&
              std::is_sorted(start.data(), start.data() + dataset.features + 1),
          "columns must follow each other");
  for (std::size_t column = 0; column < dataset.features; ++column) {
    for (auto i = start.data()[column]; i < start.data()[column + 1]; ++i) {
      const bool is_next = i == start.data()[column] || row.data()[i - 1] < row.data()[i];
      require(is_next && row.data()[i] >= 0 && static_cast<std::size_t>(row.data()[i]) < dataset.rows,
              "the rows of a column must be in order, each once, and below their number");
    }
  }
  require_max_bins(max_bins);
  require_threads(threads);
  require_weights(weight, dataset.rows);
  const SparseMatrix<Real> matrix{dataset.rows, dataset.features, start.data(), row.data(), value.data()};
  run_interruptibly(worthwhile_threads(row.shape(0), threads), [&](ThreadPool& pool) {
    dataset.add_sparse_columns(matrix, WholeWeights(weight.data(), weight.shape(0)), max_bins, pool);
  });
}

template <typename Real>
void add_rows(Dataset& dataset, const Table<Real>& X, std::size_t first, const Vector<double>& weight, int threads) {
  const Matrix<Real> matrix = view(X);
  require(dataset.layout != Layout::kSparse, "the dataset must not be sparse");
  require(matrix.columns == dataset.features, "a block must have all columns");
  require(first <= dataset.rows && matrix.rows <= dataset.rows - first,
          "the rows of X must be among those of the dataset");
  require_threads(threads);
  require_weights(weight, matrix.rows, true);
  run_interruptibly(worthwhile_threads(matrix.rows * matrix.columns, threads), [&](ThreadPool& pool) {
    dataset.add_rows(matrix, first, WholeWeights(weight.data(), weight.shape(0)), pool);
  });
}

nb::object hashes(Dataset& dataset) {
  const auto& by_class = dataset.hashes();
  std::vector<std::uint64_t> as_given(dataset.rows);
  for (std::size_t i = 0; i < dataset.rows; ++i) as_given[dataset.order[i]] = by_class[i];
  return to_numpy(std::move(as_given));
}

// ---- sketches ----

std::unique_ptr<Sketch> make_sketch(const Vector<std::int32_t>& n_categories, int max_bins, double largest_weight) {
  require(n_categories.shape(0) > 0, "there must be columns");
  require_max_bins(max_bins);
  require(largest_weight >= 0.0 && std::isfinite(largest_weight), "the largest weight must be finite and not negative");
  return std::make_unique<Sketch>(read_category_counts(n_categories), max_bins, largest_weight);
}

// Shows a sketch a block of rows, for the first time or again.
template <typename Real, bool again>
void show(Sketch& sketch, const Table<Real>& X, const Vector<double>& weight, int threads) {
  const Matrix<Real> matrix = view(X);
  const bool weighted = sketch.largest_weight > 0.0;
  require(matrix.columns == sketch.columns, "a block must have all columns");
  require_threads(threads);
  require(weight.shape(0) == (weighted ? matrix.rows : 0),
          "there must be one weight per row if there is a largest one, else none");
  require(require_weights(weight, matrix.rows, true) <= sketch.largest_weight,
          "a weight must not be above the largest");
  const double* weights = weighted ? weight.data() : nullptr;
  nb::gil_scoped_release unlocked;
  ThreadPool pool(worthwhile_threads(matrix.rows * matrix.columns, threads));
  if (again) {
    sketch.draw(matrix, weights, pool);
  } else {
    sketch.observe(matrix, weights, pool);
  }
}

nb::bytes state(Sketch& sketch) {
  const auto words = sketch.state();
  return nb::bytes(words.data(), sizeof(std::uint64_t) * words.size());
}

void merge(Sketch& sketch, const nb::bytes& state) {
  require(state.size() % sizeof(std::uint64_t) == 0, "the bytes must be the state of a Sketch");
  std::vector<std::uint64_t> words(state.size() / sizeof(std::uint64_t));
  if (!words.empty()) std::memcpy(words.data(), state.c_str(), state.size());
  sketch.merge(words);
}

nb::list thresholds(Sketch& sketch, int threads) {
  require_threads(threads);
  ThreadPool pool(threads);
  nb::list found;
  for (auto& column : sketch.find_bins(pool)) found.append(to_numpy(std::move(column.thresholds)));
  return found;
}

void set_bins(Dataset& dataset, Sketch& sketch, int threads) {
  require_threads(threads);
  require(dataset.layout != Layout::kSparse, "the dataset must not be sparse");
  require(dataset.features == sketch.columns, "the Sketch must have as many columns as the dataset has features");
  ThreadPool pool(threads);
  dataset.set_bins(sketch.find_bins(pool));
}

// ---- codes ----

// Python gets this code for a missing value, whatever the number of bins of its column.
constexpr Code kMissingCode = 255;

// Writes codes by given thresholds.
template <typename Real>
auto encode_block(const Table<Real>& X, const Vector<std::int32_t>& n_categories,
                  const std::vector<Vector<double>>& thresholds, const OutputTable<Code>& out, int threads) {
  const Matrix<Real> matrix = view(X);
  require(n_categories.shape(0) == matrix.columns && thresholds.size() == matrix.columns,
          "there must be one number of categories and one list of thresholds per column");
  require(out.shape(0) == matrix.rows && out.shape(1) == matrix.columns, "there must be one code per cell");
  require_threads(threads);
  const auto counts = read_category_counts(n_categories);
  std::vector<Column> columns(matrix.columns);
  for (std::size_t i = 0; i < matrix.columns; ++i) {
    Column& column = columns[i];
    require(thresholds[i].shape(0) <= kMaxThresholds, "a column must have at most 254 thresholds");
    require_aligned(thresholds[i]);
    column.category_count = counts[i];
    column.thresholds = copy(thresholds[i]);
    require(std::is_sorted(column.thresholds.begin(), column.thresholds.end()), "thresholds must be in order");
  }
  Code* codes = out.data();
  {
    nb::gil_scoped_release unlocked;
    ThreadPool pool(worthwhile_threads(matrix.rows * matrix.columns, threads));
    std::vector<std::uint32_t> order(matrix.rows);
    std::iota(order.begin(), order.end(), 0U);
    const CodeTable table{codes, matrix.columns, nullptr, 0, kMissingCode};
    encode(matrix, WholeWeights(), {order.data(), matrix.rows, 0}, columns.data(), table, pool);
  }
  std::vector<std::uint8_t> has_missing;
  for (const Column& column : columns) has_missing.push_back(column.missing);
  return to_numpy(std::move(has_missing));
}

// ---- the module ----

// Binds what takes tables of numbers in single and in double precision.
template <typename Real>
void bind_tables(nb::module_& module, nb::class_<Dataset>& dataset, nb::class_<Sketch>& sketch) {
  const auto X = nb::arg("X");
  const auto first = nb::arg("first");
  const auto n_categories = nb::arg("n_categories");
  const auto weight = nb::arg("weight");
  const auto threads = nb::arg("threads");
  dataset.def("observe", &observe<Real>, X, weight, threads, "Observe all columns before the first are added.")
      .def("add_columns", &add_columns<Real>, X, first, n_categories, weight, nb::arg("max_bins"), threads,
           "Bin columns and keep their codes from feature `first` on.")
      .def("add_sparse_columns", &add_sparse_columns<Real>, nb::arg("start"), nb::arg("row"), nb::arg("value"), weight,
           nb::arg("max_bins"), threads,
           "Bin all columns of a sparse table: column c has the cells start[c] to start[c + 1].")
      .def("add_rows", &add_rows<Real>, X, first, weight, threads,
           "Keep the codes of a block of rows from row `first` on.");
  sketch.def("observe", &show<Real, false>, X, weight, threads, "Observe a block of rows.")
      .def("draw", &show<Real, true>, X, weight, threads, "See a block of rows again.");
  module.def("encode", &encode_block<Real>, X, n_categories, nb::arg("thresholds"), nb::arg("out").noconvert(), threads,
             "Write codes of a block of rows, 255 for missing values; 1 for each column that has some, else 0.");
}

}  // namespace

void bind_datasets(nb::module_& module) {
  nb::class_<Dataset> dataset(module, "Dataset");
  dataset
      .def(nb::new_(&make_dataset), nb::arg("labels"), nb::arg("classes"), nb::arg("features"), nb::arg("lean") = false,
           nb::arg("sparse") = false,
           "Rows to be binned, grouped by class; lean: in half the memory, for add_rows only; sparse: for "
           "add_sparse_columns only.")
      .def("set_bins", &set_bins, nb::arg("sketch"), nb::arg("threads") = 1,
           "Take over the bins of a Sketch, before the first rows are added.")
      .def("hashes", &hashes, "A hash of each row's codes.");
  nb::class_<Sketch> sketch(module, "Sketch");
  sketch
      .def(nb::new_(&make_sketch), nb::arg("n_categories"), nb::arg("max_bins"), nb::arg("largest_weight") = 0.0,
           "Bins of rows that come in blocks. The largest weight is that of all rows, 0 if they have none.")
      .def_prop_ro("needs_draw", &Sketch::needs_draw, "Whether all rows must be seen again, by `draw`.")
      .def("state", &state, "What was observed; after a `draw`, what was drawn.")
      .def("merge", &merge, nb::arg("state"), "Take in the state of another Sketch, of other rows.")
      .def("thresholds", &thresholds, nb::arg("threads") = 1, "The thresholds of each column.");
  bind_tables<double>(module, dataset, sketch);
  bind_tables<float>(module, dataset, sketch);
}

}  // namespace untwist::python
