// Checks arrays and looks for interrupts at the border to Python.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "../binning.hpp"
#include "../matrix.hpp"
#include "../threads.hpp"

namespace untwist::python {

namespace nb = nanobind;

template <typename T>
using Vector = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename Real>
using Table = nb::ndarray<const Real, nb::ndim<2>, nb::device::cpu>;
template <typename T>
using VectorOrTable = nb::ndarray<const T, nb::c_contig, nb::device::cpu>;
template <typename T>
using Output = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutputTable = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutputOrTable = nb::ndarray<T, nb::c_contig, nb::device::cpu>;

inline void require(bool condition, const char* what) {
  if (!condition) throw std::invalid_argument(what);
}

// The fields of packed records may lie across the places of numbers, where the loops cannot read them.
template <typename... Arrays>
void require_aligned(const Arrays&... arrays) {
  (require(reinterpret_cast<std::uintptr_t>(arrays.data()) % sizeof(*arrays.data()) == 0, "arrays must be aligned"),
   ...);
}

inline void require_threads(int threads) { require(threads >= 1, "threads must be positive"); }

inline void require_max_bins(int max_bins) {
  require(2 <= max_bins && max_bins <= kMaxBins, "max_bins must be 2 to 255");
}

// Returns the largest weight, 0 if there are none. It must be positive unless the rows are one of several blocks.
inline double require_weights(const Vector<double>& weight, std::size_t rows, bool is_block = false) {
  require_aligned(weight);
  if (weight.shape(0) == 0) return 0.0;
  require(weight.shape(0) == rows, "there must be one weight per row, or none");
  double largest = 0.0;
  for (std::size_t row = 0; row < rows; ++row) {
    require(weight.data()[row] >= 0.0 && std::isfinite(weight.data()[row]), "weights must be finite and not negative");
    largest = std::max(largest, weight.data()[row]);
  }
  require(largest > 0.0 || is_block, "at least one weight must be positive");
  return largest;
}

// Checks and copies the numbers of categories of columns.
inline std::vector<int> read_category_counts(const Vector<std::int32_t>& n_categories) {
  require_aligned(n_categories);
  for (std::size_t i = 0; i < n_categories.shape(0); ++i) {
    const std::int32_t count = n_categories.data()[i];
    require(0 <= count && count <= kMaxCategories, "a column must have 0 to 254 categories");
  }
  return {n_categories.data(), n_categories.data() + n_categories.shape(0)};
}

template <typename Real>
Matrix<Real> view(const Table<Real>& X) {
  require_aligned(X);
  return {X.data(), X.shape(0), X.shape(1), X.stride(0), X.stride(1)};
}

template <typename T>
std::vector<T> copy(const Vector<T>& values) {
  return {values.data(), values.data() + values.shape(0)};
}

// Makes a NumPy array that owns the values.
template <typename T, typename Allocator>
nb::object to_numpy(std::vector<T, Allocator> values) {
  using Values = std::vector<T, Allocator>;
  auto* kept = new Values(std::move(values));
  nb::capsule owner(kept, [](void* pointer) noexcept { delete static_cast<Values*>(pointer); });
  return nb::cast(nb::ndarray<nb::numpy, T, nb::ndim<1>>(kept->data(), {kept->size()}, owner));
}

// Makes a NumPy array of the values that has one dimension where a row has one number, else two.
template <typename T, typename Allocator>
nb::object to_numpy_rows(std::vector<T, Allocator> values, std::size_t numbers_per_row) {
  const std::size_t rows = values.size() / numbers_per_row;
  nb::object flat = to_numpy(std::move(values));
  return numbers_per_row == 1 ? flat : flat.attr("reshape")(rows, numbers_per_row);
}

// Returns how many of the threads so much work is worth.
inline int worthwhile_threads(std::size_t steps, int threads) {
  // Fewer steps than this are done before another thread has woken up.
  constexpr std::size_t kStepsForThreads = 20000;
  return steps < kStepsForThreads ? 1 : threads;
}

// Asks Python for Ctrl-C, from a thread that has released the GIL. It may be asked often: Python itself is, ten times a
// second.
class InterruptCheck {
 public:
  bool operator()() {
    if (interrupted_ || Clock::now() < next_) return interrupted_;
    const nb::gil_scoped_acquire locked;
    interrupted_ = PyErr_CheckSignals() != 0;
    next_ = Clock::now() + kPulse;
    return interrupted_;
  }

  // Raises what the signal left behind, which is KeyboardInterrupt as a rule. The caller has the GIL.
  void raise_if_interrupted() const {
    if (interrupted_) throw nb::python_error();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // A user does not notice so short a wait, and the GIL is hardly ever taken from others.
  static constexpr auto kPulse = std::chrono::milliseconds(100);

  Clock::time_point next_ = Clock::now() + kPulse;
  bool interrupted_ = false;
};

// Runs work(pool) without the GIL and gives it up on Ctrl-C.
template <typename Work>
void run_interruptibly(int threads, const Work& work) {
  InterruptCheck check;
  {
    nb::gil_scoped_release unlocked;
    ThreadPool pool(threads, [&check] { return check(); });
    try {
      work(pool);
    } catch (const Interrupted&) {
      // The check raises it again as Python's own exception.
    }
  }
  check.raise_if_interrupted();
}

}  // namespace untwist::python
