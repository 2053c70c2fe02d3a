// Binds forests for Python.
#include "../forest.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>

#include "arrays.hpp"
#include "module.hpp"

namespace untwist::python {

namespace {

std::unique_ptr<Forest> make_forest(const Vector<std::int64_t>& offset, const Vector<std::int32_t>& feature,
                                    const Vector<std::int32_t>& left, const Vector<double>& threshold,
                                    const Vector<std::uint8_t>& missing_left, const VectorOrTable<double>& value,
                                    const Vector<std::int32_t>& set, const Vector<std::uint64_t>& codes,
                                    std::size_t features) {
  const std::size_t nodes = feature.shape(0);
  require(offset.shape(0) > 0, "offset must have one entry more than there are trees");
  require(value.ndim() == 1 || value.ndim() == 2, "a value must be a number, or a row of numbers");
  require(left.shape(0) == nodes && threshold.shape(0) == nodes && missing_left.shape(0) == nodes &&
              value.shape(0) == nodes && set.shape(0) == nodes,
          "there must be one entry per node");
  require(codes.shape(0) % kWordsOfSet == 0, "a set of codes must have four words");
  require_aligned(offset, feature, left, threshold, value, set, codes);
  const std::size_t outputs = value.ndim() == 1 ? 1 : value.shape(1);
  const ForestArrays arrays(offset, feature, left, threshold, missing_left, value, set, codes, outputs);
  return std::make_unique<Forest>(arrays, features);
}

// Checks what both ways of walking a forest need, and returns the rows.
template <typename Real>
Matrix<Real> view_rows(const Forest& forest, const Table<Real>& X, std::size_t first, std::size_t last, int threads) {
  const Matrix<Real> matrix = view(X);
  require(matrix.columns == forest.features(), "X must have the columns that the trees were grown on");
  require_threads(threads);
  require(first <= last && last <= forest.trees(), "first and last must be a range of the trees");
  return matrix;
}

template <typename Real>
void add_scores(const Forest& forest, const Table<Real>& X, std::size_t first, std::size_t last, int threads,
                const OutputOrTable<double>& out) {
  const Matrix<Real> matrix = view_rows(forest, X, first, last, threads);
  require(out.ndim() == 1 || out.ndim() == 2, "scores must be a number per row, or a row of numbers");
  require(out.shape(0) == matrix.rows && (out.ndim() == 1 ? 1 : out.shape(1)) == forest.outputs(),
          "there must be one score per row and output");
  require_aligned(out);
  double* to = out.data();
  run_interruptibly(worthwhile_threads(matrix.rows * (last - first), threads),
                    [&](ThreadPool& pool) { forest.add_scores(matrix, first, last, to, pool); });
}

template <typename Real>
void leaves(const Forest& forest, const Table<Real>& X, std::size_t first, std::size_t last, int threads,
            const OutputTable<std::int32_t>& out) {
  const Matrix<Real> matrix = view_rows(forest, X, first, last, threads);
  require(out.shape(0) == matrix.rows && out.shape(1) == last - first, "there must be one leaf per row and tree");
  require_aligned(out);
  std::int32_t* to = out.data();
  run_interruptibly(worthwhile_threads(matrix.rows * (last - first), threads),
                    [&](ThreadPool& pool) { forest.leaves(matrix, first, last, to, pool); });
}

// Binds what takes tables of numbers in single and in double precision.
template <typename Real>
void bind_tables(nb::class_<Forest>& forest) {
  const auto X = nb::arg("X");
  const auto first = nb::arg("first");
  const auto last = nb::arg("last");
  const auto threads = nb::arg("threads");
  const auto out = nb::arg("out").noconvert();
  forest
      .def("add_scores", &add_scores<Real>, X, first, last, threads, out,
           "Add the scores of trees [first, last) to out.")
      .def("leaves", &leaves<Real>, X, first, last, threads, out, "The leaves of trees [first, last).");
}

}  // namespace

void bind_forests(nb::module_& module) {
  nb::class_<Forest> forest(module, "Forest");
  forest.def(nb::new_(&make_forest), nb::arg("offset"), nb::arg("feature"), nb::arg("left"), nb::arg("threshold"),
             nb::arg("missing_left"), nb::arg("value"), nb::arg("set"), nb::arg("codes"), nb::arg("features"),
             "Trees prepared to be walked.");
  bind_tables<double>(forest);
  bind_tables<float>(forest);
}

}  // namespace untwist::python
