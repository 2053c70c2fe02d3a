// Makes flat arrays of trees. In this form they leave the core and come back to predict.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "boosting.hpp"
#include "dataset.hpp"
#include "forest.hpp"
#include "large_memory.hpp"
#include "tree.hpp"

namespace untwist {

// ForestArrays says what the arrays are: a node has `outputs` values. Edge and leverage have an entry per tree, gain
// one per node.
struct FlatForest {
  std::size_t outputs = 1;
  std::vector<double> edge, leverage;
  std::vector<std::int64_t> offset{0};
  std::vector<std::int32_t> feature, left;
  std::vector<double> threshold;
  std::vector<std::uint8_t> missing_left;
  ManyReals value;
  std::vector<double> gain;
  std::vector<std::int32_t> set;
  std::vector<std::uint64_t> codes;

  ForestArrays view() const { return {offset, feature, left, threshold, missing_left, value, set, codes, outputs}; }
};

// Returns the trees of a booster from `first` on.
inline FlatForest flatten(const Booster& booster, std::size_t first = 0) {
  FlatForest flat;
  flat.outputs = booster.outputs();
  for (std::size_t i = first; i < booster.trees().size(); ++i) {
    const BoostedTree& boosted = booster.trees()[i];
    flat.edge.push_back(boosted.edge);
    flat.leverage.push_back(boosted.leverage);
    flat.value.insert(flat.value.end(), boosted.values.begin(), boosted.values.end());
    for (const Node& node : boosted.tree) {
      flat.feature.push_back(node.feature);
      flat.left.push_back(node.left);
      flat.missing_left.push_back(node.missing_left);
      if (boosted.values.empty()) flat.value.push_back(node.value);
      flat.gain.push_back(node.gain);
      flat.set.push_back(-1);
      flat.threshold.push_back(0.0);
      if (node.is_leaf()) continue;
      const Column& column = booster.dataset().columns[static_cast<std::size_t>(node.feature)];
      if (column.category_count > 0) {
        flat.set.back() = static_cast<std::int32_t>(flat.codes.size() / kWordsOfSet);
        flat.codes.insert(flat.codes.end(), node.goes_left.words().begin(), node.goes_left.words().end());
      } else if (node.code < column.thresholds.size()) {
        flat.threshold.back() = column.thresholds[node.code];
      } else {
        flat.threshold.back() = std::numeric_limits<double>::infinity();  // All known values go left.
      }
    }
    flat.offset.push_back(static_cast<std::int64_t>(flat.feature.size()));
  }
  return flat;
}

}  // namespace untwist
