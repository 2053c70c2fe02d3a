// The parts of the module. Each adds its classes and functions, and is a translation unit of its own, so that they
// compile in parallel.
//
// All of them include the same type casters: the compiler does not notice a missing one, and calls would fail.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

namespace untwist::python {

void bind_links(nanobind::module_& module);
void bind_datasets(nanobind::module_& module);
void bind_boosters(nanobind::module_& module);
void bind_forests(nanobind::module_& module);
void bind_randomised_trees(nanobind::module_& module);

}  // namespace untwist::python
