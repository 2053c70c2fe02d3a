// Flat arrays that claim to be trees, sound or not: refused, or walked as a plain loop walks them.
#include <cmath>
#include <stdexcept>
#include <vector>

#include "../cpp/predict.hpp"
#include "choices.hpp"

using namespace untwist;

namespace {

struct Arrays {
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left, set;
  std::vector<double> threshold, value;
  std::vector<std::uint8_t> missing_left;
  std::vector<std::uint64_t> codes;

  ForestArrays view() const {
    return {offset.size() - 1, feature.size(),      codes.size() / 4, offset.data(), feature.data(), left.data(),
            threshold.data(),  missing_left.data(), value.data(),     set.data(),    codes.data()};
  }
};

void add_tree(Choices& choices, Arrays& arrays, std::size_t features, std::size_t splits) {
  const std::size_t nodes = 2 * splits + 1;
  std::size_t next = 1;
  for (std::size_t node = 0; node < nodes; ++node) {
    const bool splits_here = next < nodes && (node + 1 == next || choices.below(2) == 0);
    arrays.feature.push_back(splits_here ? static_cast<std::int32_t>(choices.below(features)) : -1);
    arrays.left.push_back(splits_here ? static_cast<std::int32_t>(next) : -1);
    arrays.set.push_back(
        splits_here && choices.below(4) == 0 ? static_cast<std::int32_t>(choices.below(arrays.codes.size() / 4)) : -1);
    arrays.threshold.push_back(splits_here ? choices.number() : 0.0);
    arrays.missing_left.push_back(static_cast<std::uint8_t>(choices.below(2)));
    arrays.value.push_back(static_cast<double>(choices.below(256)) / 4.0);
    next += splits_here ? 2 : 0;
  }
  arrays.offset.push_back(static_cast<std::int64_t>(arrays.feature.size()));
}

void damage(Choices& choices, Arrays& arrays) {
  if (arrays.feature.empty()) return;
  const std::size_t node = choices.below(arrays.feature.size());
  switch (choices.below(6)) {
    case 0: arrays.feature[node] = choices.wild(); break;
    case 1: arrays.left[node] = choices.wild(); break;
    case 2: arrays.set[node] = choices.wild(); break;
    case 3: arrays.threshold[node] = choices.number(); break;
    case 4:
      arrays.offset[choices.below(arrays.offset.size())] =
          std::int64_t{choices.wild()} * choices.one({std::int64_t{1}, std::int64_t{0x7FFFFFFF}});
      break;
    default: arrays.missing_left[node] = static_cast<std::uint8_t>(choices.wild()); break;
  }
}

template <typename Real>
std::size_t naive_leaf(const Arrays& arrays, std::size_t tree, const Matrix<Real>& X, std::size_t row) {
  std::size_t node = static_cast<std::size_t>(arrays.offset[tree]);
  const std::size_t root = node;
  while (arrays.feature[node] >= 0) {
    const double x = static_cast<double>(X(row, static_cast<std::size_t>(arrays.feature[node])));
    bool left = x <= arrays.threshold[node];
    if (arrays.set[node] >= 0) {
      const bool known = x >= 0 && x < 256 && x == std::floor(x);
      const std::size_t code = known ? static_cast<std::size_t>(x) : 0;
      left = known ? arrays.codes[4 * static_cast<std::size_t>(arrays.set[node]) + code / 64] >> code % 64 & 1
                   : arrays.missing_left[node] != 0;
    } else if (std::isnan(x)) {
      left = arrays.missing_left[node] != 0;
    }
    node = root + static_cast<std::size_t>(arrays.left[node]) + (left ? 0 : 1);
  }
  return node - root;
}

template <typename Real>
void walk(Choices& choices, const Arrays& arrays, const Forest& forest, std::size_t features) {
  const std::size_t rows = choices.one({std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{8}, std::size_t{33},
                                        std::size_t{48}, std::size_t{300}});
  std::vector<Real> values(rows * features);
  for (std::size_t i = 0; i < values.size(); ++i)
    values[i] = i < 64 ? static_cast<Real>(std::max(-1e38, std::min(1e38, choices.number()))) : values[i % 61];
  const bool by_column = choices.below(2) == 1;
  const Matrix<Real> X(values.data(), rows, features, by_column ? 1 : static_cast<std::ptrdiff_t>(features),
                       by_column ? static_cast<std::ptrdiff_t>(rows) : 1);
  const std::size_t trees = arrays.offset.size() - 1;
  const std::size_t first = choices.below(trees + 1);
  std::vector<double> scores(rows, 0.0), expected(rows, 0.0);
  std::vector<std::int32_t> leaves(rows * (trees - first), -1);
  ThreadPool pool(1);
  forest.add_scores(X, first, trees, scores.data(), pool);
  forest.leaves(X, first, trees, leaves.data(), pool);
  for (std::size_t row = 0; row < rows; ++row) {
    for (std::size_t tree = first; tree < trees; ++tree) {
      const std::size_t leaf = naive_leaf(arrays, tree, X, row);
      check(leaves[row * (trees - first) + tree - first] == static_cast<std::int32_t>(leaf), "leaves");
      expected[row] += arrays.value[static_cast<std::size_t>(arrays.offset[tree]) + leaf];
    }
  }
  check(scores == expected, "scores");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Choices choices(data, size);
  Arrays arrays;
  const std::size_t features = 1 + choices.below(6);
  for (std::size_t words = 4 * (1 + choices.below(3)); words > 0; --words)
    arrays.codes.push_back(0x9E3779B97F4A7C15ULL * (words + choices.below(256)));
  const bool many = choices.below(8) == 0;  // more splits than labels can tell
  for (std::size_t tree = choices.below(many ? 2 : 5); tree > 0; --tree)
    add_tree(choices, arrays, features, choices.below(many ? 300 : 9));
  for (std::size_t times = choices.below(4); times > 0; --times) damage(choices, arrays);
  try {
    const Forest forest(arrays.view(), choices.below(16) == 0 ? choices.below(8) : features);
    if (forest.features() != features) return 0;
    walk<double>(choices, arrays, forest, features);
    walk<float>(choices, arrays, forest, features);
  } catch (const std::invalid_argument&) {
  }
  return 0;
}
