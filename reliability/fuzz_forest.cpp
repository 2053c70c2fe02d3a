// Flat arrays that claim to be trees, sound or not. They must be refused, or walked as a plain loop walks them.
#include <cmath>
#include <stdexcept>
#include <vector>

#include "../cpp/flat_forest.hpp"
#include "../cpp/forest.hpp"
#include "../cpp/hashing.hpp"
#include "../tests/cpp/naive_forest.hpp"
#include "choices.hpp"

using namespace untwist;

namespace {

// An input has too few bytes for many rows: later values repeat the first kChosenValues.
constexpr std::size_t kChosenValues = 64;

// Values repeat with a period just below that, a prime, so that rows do not repeat as a whole.
constexpr std::size_t kValuePeriod = 61;

void add_tree(Choices& choices, FlatForest& forest, std::size_t features, std::size_t splits) {
  const std::size_t nodes = 2 * splits + 1;
  std::size_t next = 1;
  for (std::size_t node = 0; node < nodes; ++node) {
    const bool is_split = next < nodes && (node + 1 == next || choices.below(2) == 0);
    forest.feature.push_back(is_split ? static_cast<std::int32_t>(choices.below(features)) : -1);
    forest.left.push_back(is_split ? static_cast<std::int32_t>(next) : -1);
    const bool by_set = is_split && choices.below(4) == 0;
    const std::size_t sets = forest.codes.size() / kWordsOfSet;
    forest.set.push_back(by_set ? static_cast<std::int32_t>(choices.below(sets)) : -1);
    forest.threshold.push_back(is_split ? choices.number() : 0.0);
    forest.missing_left.push_back(static_cast<std::uint8_t>(choices.below(2)));
    forest.value.push_back(static_cast<double>(choices.below(256)) / 4.0);
    next += is_split ? 2 : 0;
  }
  forest.offset.push_back(static_cast<std::int64_t>(forest.feature.size()));
}

void damage(Choices& choices, FlatForest& forest) {
  if (forest.feature.empty()) return;
  const std::size_t node = choices.below(forest.feature.size());
  switch (choices.below(6)) {
    case 0: forest.feature[node] = choices.wild(); break;
    case 1: forest.left[node] = choices.wild(); break;
    case 2: forest.set[node] = choices.wild(); break;
    case 3: forest.threshold[node] = choices.number(); break;
    case 4: {
      const std::int64_t wild = choices.wild();
      const std::int64_t factor = choices.one_of({std::int64_t{1}, std::int64_t{0x7FFFFFFF}});
      forest.offset[choices.below(forest.offset.size())] = wild * factor;
      break;
    }
    default: forest.missing_left[node] = static_cast<std::uint8_t>(choices.wild()); break;
  }
}

template <typename Real>
void compare(Choices& choices, const FlatForest& flat, const Forest& forest, std::size_t features) {
  const int row_count = choices.one_of({0, 1, 7, 8, 33, 48, 300});
  const std::size_t rows = static_cast<std::size_t>(row_count);
  std::vector<Real> values(rows * features);
  for (std::size_t i = 0; i < values.size(); ++i) {
    const bool chosen = i < kChosenValues;
    values[i] =
        chosen ? static_cast<Real>(std::max(-1e38, std::min(1e38, choices.number()))) : values[i % kValuePeriod];
  }
  const bool by_column = choices.below(2) == 1;
  const std::ptrdiff_t row_stride = by_column ? 1 : static_cast<std::ptrdiff_t>(features);
  const std::ptrdiff_t column_stride = by_column ? static_cast<std::ptrdiff_t>(rows) : 1;
  const Matrix<Real> X(values.data(), rows, features, row_stride, column_stride);
  const std::size_t trees = flat.offset.size() - 1;
  const std::size_t first = choices.below(trees + 1);
  const std::size_t width = trees - first;
  std::vector<double> scores(rows, 0.0), expected(rows, 0.0);
  std::vector<std::int32_t> leaves(rows * width, -1);
  ThreadPool pool(1);
  forest.add_scores(X, first, trees, scores.data(), pool);
  forest.leaves(X, first, trees, leaves.data(), pool);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t tree = first; tree < trees; ++tree) {
      const std::int32_t leaf = find_leaf_naively(flat, tree, X, row);
      check(leaves[row * width + tree - first] == leaf, "leaves");
      expected[row] += flat.value[static_cast<std::size_t>(flat.offset[tree] + leaf)];
    }
  }
  check(scores == expected, "scores");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  FlatForest flat;
  const std::size_t features = 1 + choices.below(6);
  for (std::size_t words = kWordsOfSet * (1 + choices.below(3)); words > 0; --words) {
    flat.codes.push_back(kGoldenRatio * (words + choices.below(256)));
  }
  const bool more_splits_than_slots = choices.below(8) == 0;
  for (std::size_t trees = choices.below(more_splits_than_slots ? 2 : 5); trees > 0; --trees) {
    add_tree(choices, flat, features, choices.below(more_splits_than_slots ? 300 : 9));
  }
  for (std::size_t times = choices.below(4); times > 0; --times) damage(choices, flat);
  try {
    const Forest forest(flat.view(), choices.below(16) == 0 ? choices.below(8) : features);
    if (forest.features() != features) return 0;
    compare<double>(choices, flat, forest, features);
    compare<float>(choices, flat, forest, features);
  } catch (const std::invalid_argument&) {
    // Damaged arrays are refused.
  }
  return 0;
}
