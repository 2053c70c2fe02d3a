// Hands flat arrays of trees over to Python.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "../flat_forest.hpp"
#include "arrays.hpp"

namespace untwist::python {

// Returns (edge, leverage, offset, feature, left, threshold, missing_left, value, gain, set, codes), as
// `untwist.boosting.forest.Forest` describes them. Values are a table where there is a row of them per node.
inline nb::tuple to_tuple(FlatForest flat) {
  nb::object value = to_numpy_rows(std::move(flat.value), flat.outputs);
  return nb::make_tuple(to_numpy(std::move(flat.edge)), to_numpy(std::move(flat.leverage)),
                        to_numpy(std::move(flat.offset)), to_numpy(std::move(flat.feature)),
                        to_numpy(std::move(flat.left)), to_numpy(std::move(flat.threshold)),
                        to_numpy(std::move(flat.missing_left)), std::move(value), to_numpy(std::move(flat.gain)),
                        to_numpy(std::move(flat.set)), to_numpy(std::move(flat.codes)));
}

}  // namespace untwist::python
