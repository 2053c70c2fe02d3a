// The compiled core as a Python module. The .cpp files in python/ check what comes in, release the GIL inside, and each
// ends with what it adds to the module.
#include <nanobind/nanobind.h>

#include "python/module.hpp"
#include "vectorised.hpp"

NB_MODULE(_core, module) {
  nanobind::set_leak_warnings(false);  // At exit other libraries may still hold a model, which is nobody's fault.
  module.doc() = "The compiled core of untwist.";
  untwist::python::bind_links(module);
  untwist::python::bind_datasets(module);
  untwist::python::bind_boosters(module);
  untwist::python::bind_forests(module);
  untwist::python::bind_randomised_trees(module);
  module.def(
      "instruction_set", [] { return untwist::name_instruction_set(); },
      "The widest instruction set that the hot loops use here: AVX-512, AVX2, NEON or the baseline of the processors.");
}
