// The parts of the module. Each adds its classes and functions, and is compiled on its own, so that several are at
// once.
//
// All of them convert the same types: a conversion that one lacks is missed by its calls, and not by the compiler.
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
