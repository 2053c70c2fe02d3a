// The settings tell what a booster is asked to do, as Python says it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "interactions.hpp"

namespace untwist {

// This is how the trees grow. Rows and l2 count in units of one row of sample weight 1.
struct TreeGrowth {
  int max_depth = 3;

  // With a limit the best split of the whole tree comes first. With 0 there is none, and trees grow level by level.
  int max_leaf_nodes = 0;

  // A leaf has at least this sample weight. Rows are not counted where it is 0.
  double min_samples_leaf = 0.0;

  // A leaf has at least this share of the boosting weight of all rows that grow the tree.
  double min_weight_fraction_leaf = 0.0;

  // The value of a leaf is G / (W + l2), with l2 in units of a row of boosting weight 1.
  double l2 = 0.0;

  // Categories are ordered by G / (W + l2 + smoothing), so that rare ones do not lead the order.
  double category_smoothing = 0.0;

  // This share of the rows is drawn anew for every tree.
  double subsample = 1.0;

  // This share of the columns that vary is drawn anew for every tree.
  double max_features = 1.0;

  // Of each column one split is drawn at every node, and only these are compared.
  bool extra = false;

  std::uint64_t seed = 0;

  // A feature has -1, 0 or +1: the score may only fall with it, do as it likes, or only rise. Empty means 0 for all.
  std::vector<std::int8_t> monotone;

  // Only columns of one group meet on a way from the root to a leaf. Null means that all may meet.
  std::shared_ptr<const Interactions> interactions;

  // A feature is drawn with a chance in proportion to its weight, and never where that is 0. Empty means 1 for all.
  std::vector<double> feature_weights;
};

// A link of the alpha-loss tells the weight of a row by its margin: the paper's clipped one, the exact one that it
// stands for, or that of scores which are log-odds.
enum class LinkKind { kClipped, kExact, kLogit };

// This is what is boosted: one class against the others or all of them together, on which rows, and with which link and
// steps. The vectors have an entry per row, in the order that Python gave the rows, or none at all.
struct BoostingTask {
  // Nothing means all classes together.
  std::optional<std::size_t> positive_class = 1;

  // Weights are at most 1, or whole numbers up to kMaxCopies. Rows of weight 0 do not train. Empty means 1 for all.
  std::vector<double> sample_weight;

  // The rows with a weight here are the validation rows, whose loss is found after each round. Empty means none.
  std::vector<double> validation_weight;

  // Boosting goes on from these scores. Empty means 0 for all.
  std::vector<double> start_scores;

  double alpha = 2.0;

  LinkKind link = LinkKind::kClipped;

  double step_size = 4.0;

  // The coefficient of a tree is step_size * edge, as in the paper. If this is false it is step_size itself.
  bool step_by_edge = true;

  // Posteriors of validation rows come no nearer to 0 and 1 than this, so that their log-loss stays finite.
  double posterior_floor = 1e-6;

  // All classes together begin at their shares. If this is false they begin at 0.
  bool begins_at_shares = true;

  // So many rounds made the start scores. The draws go on where those rounds ended.
  int first_round = 0;
};

}  // namespace untwist
