// Binds randomised trees for Python.
#include "../randomised.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "../dataset.hpp"
#include "arrays.hpp"
#include "flat_forest.hpp"
#include "module.hpp"

namespace untwist::python {

namespace {

// Returns the trees as flat arrays.
nb::tuple grow_randomised(const std::shared_ptr<Dataset>& dataset, const Vector<double>& sample_weight,
                          std::size_t trees, std::size_t first_tree, double min_samples_leaf, double max_features,
                          double smoothing, std::uint64_t seed, int threads) {
  require(trees > 0 && min_samples_leaf >= 0.0 && std::isfinite(min_samples_leaf) && smoothing > 0.0 &&
              std::isfinite(smoothing),
          "all settings must be in range");
  require(max_features > 0.0 && max_features <= 1.0, "shares must lie in (0, 1]");
  require_threads(threads);
  const double largest = require_weights(sample_weight, dataset->rows);
  const std::vector<double> weight = copy(sample_weight);
  require(largest <= (are_whole(weight) ? kMaxCopies : 1.0), "weights must be at most 1, or counts");
  RandomisedGrowth growth;
  growth.trees = trees;
  growth.first_tree = first_tree;
  growth.min_samples_leaf = min_samples_leaf;
  growth.max_features = max_features;
  growth.smoothing = smoothing;
  growth.seed = seed;
  FlatForest flat;
  run_interruptibly(threads,
                    [&](ThreadPool& pool) { flat = untwist::grow_randomised(*dataset, weight, growth, pool); });
  return to_tuple(std::move(flat));
}

}  // namespace

void bind_randomised_trees(nb::module_& module) {
  module.def("grow_randomised", &grow_randomised, nb::arg("dataset"), nb::kw_only(), nb::arg("sample_weight"),
             nb::arg("trees"), nb::arg("first_tree"), nb::arg("min_samples_leaf"), nb::arg("max_features"),
             nb::arg("smoothing"), nb::arg("seed"), nb::arg("threads"),
             "Flat arrays of extremely randomised trees, with a row of values per node, or one value for two classes. "
             "min_samples_leaf and smoothing count in units of the sample weights, of which there is one per row, or "
             "none.");
}

}  // namespace untwist::python
