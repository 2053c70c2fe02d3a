// The compiled core as a Python module. The .cpp files in python/ check what comes in, release the GIL inside, and each
// ends with what it adds to the module.
#include <nanobind/nanobind.h>

#include <exception>
#include <new>
#include <stdexcept>

#include "python/module.hpp"
#include "vectorised.hpp"

namespace {

// Says in a sentence what the allocator only calls std::bad_alloc, and a vector too long for any memory a length error.
void tell_of_memory(const std::exception_ptr& failure, void*) {
  constexpr const char* kWords =
      "there is not enough memory for this: give fewer rows, columns or classes at a time, or free memory";
  try {
    std::rethrow_exception(failure);
  } catch (const std::bad_alloc&) {
    PyErr_SetString(PyExc_MemoryError, kWords);
  } catch (const std::length_error&) {
    PyErr_SetString(PyExc_MemoryError, kWords);
  }
}

}  // namespace

NB_MODULE(_core, module) {
  nanobind::register_exception_translator(tell_of_memory);
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
