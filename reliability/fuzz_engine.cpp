// The engine on data and settings that the border lets through, extremes included. Any number of threads must grow the
// same trees, and raw rows must come to the leaves that their codes came to.
#include <cmath>
#include <memory>
#include <vector>

#include "../cpp/boosting.hpp"
#include "../cpp/flat_forest.hpp"
#include "../cpp/forest.hpp"
#include "../cpp/joint_boosting.hpp"
#include "choices.hpp"

using namespace untwist;

namespace {

// An input has too few bytes for large data: later values repeat the first kChosenValues.
constexpr std::size_t kChosenValues = 400;

// Values repeat with a period just below that, a prime, so that rows do not repeat as a whole.
constexpr std::size_t kValuePeriod = 397;

// Labels of later rows follow a pattern.
constexpr std::size_t kChosenLabels = 100;

// Data of more rows than this are worth the price of a second fit.
constexpr std::size_t kManyRows = 1000;

struct Data {
  std::vector<float> X;
  std::vector<std::uint32_t> labels;
  std::vector<int> category_counts;
  std::vector<double> weight;
  std::size_t rows, columns, classes;

  Matrix<float> matrix() const { return {X.data(), rows, columns, static_cast<std::ptrdiff_t>(columns), 1}; }
};

double choose_value(Choices& choices, const Data& data, std::size_t i) {
  const std::size_t column = i % data.columns;
  if (i >= kChosenValues) {
    const std::size_t row = i * 7 % kValuePeriod / data.columns;
    return static_cast<double>(data.X[row * data.columns + column]);
  }
  const int category_count = data.category_counts[column];
  if (category_count > 0) return static_cast<double>(choices.below(static_cast<std::size_t>(category_count)));
  return choices.number();
}

Data make_data(Choices& choices) {
  Data data;
  data.rows = choices.below(16) == 15 ? 2000 + choices.below(3000) : 2 + choices.below(90);
  data.columns = 1 + choices.below(5);
  data.classes = 1 + choices.below(3);
  for (std::size_t i = 0; i < data.columns; ++i) data.category_counts.push_back(choices.one_of({0, 0, 0, 1, 3, 254}));
  for (std::size_t i = 0; i < data.rows * data.columns; ++i) {
    const double value = choose_value(choices, data, i);
    data.X.push_back(static_cast<float>(std::max(-3e38, std::min(3e38, value))));
  }
  for (std::size_t i = 0; i < data.rows; ++i) {
    const std::size_t label = i < kChosenLabels ? choices.below(data.classes) : i * 31 % data.classes;
    data.labels.push_back(static_cast<std::uint32_t>(label));
  }
  const std::size_t kind_of_weight = choices.below(4);
  if (kind_of_weight < 2) return data;
  const bool copies = kind_of_weight == 2;
  for (std::size_t i = 0; i < data.rows; ++i) {
    const double drawn = static_cast<double>(choices.below(256));
    const double weight = copies ? std::min(drawn, kMaxCopies) : drawn / 255.0;
    data.weight.push_back(i == 0 ? 1.0 : weight);
  }
  return data;
}

// Settings in the order in which the kept inputs choose them.
void choose_settings(Choices& choices, const Data& data, BoostingTask& task, TreeGrowth& growth) {
  task.alpha = choices.one_of({2.0, 1.0, 1.1, 0.5, 4.0, 1e-3, 1e9, kInfinity});
  const auto link = choices.below(3);
  if (link == 0) task.link = LinkKind::kExact;
  if (link == 1 && task.alpha >= 1.0 && std::isfinite(task.alpha)) task.link = LinkKind::kLogit;
  task.step_size = choices.one_of({1.0, 4.0, 1e-9, 1e6, 1e300});
  task.step_by_edge = choices.below(2) == 0;
  task.posterior_floor = choices.one_of({1e-6, 0.49, 1e-300});
  growth.max_depth = choices.one_of({1, 2, 3, 7, 60, std::numeric_limits<int>::max()});
  growth.max_leaf_nodes = choices.one_of({0, 0, 2, 3, 31, std::numeric_limits<int>::max()});
  growth.min_weight_fraction_leaf = choices.one_of({0.0, 0.0, 1e-9, 0.1, 0.5});
  growth.l2 = choices.one_of({0.0, 0.0, 1.0, 1e-300, 1e300});
  growth.min_samples_leaf = choices.one_of({0.0, 0.0, 1.0, 20.0, 1e300});
  growth.category_smoothing = choices.one_of({0.0, 1.0, 1e300});
  growth.subsample = choices.one_of({1.0, 1.0, 0.5, 1e-9, 5e-324, 1.0 - 0x1p-53});
  growth.max_features = choices.one_of({1.0, 1.0, 0.5, 5e-324});
  growth.seed = choices.below(1000);
  task.first_round = choices.one_of({0, 1, std::numeric_limits<int>::max()});
  const bool monotone = choices.below(4) == 0;
  for (std::size_t i = 0; i < data.columns && monotone; ++i) {
    const int direction = choices.one_of({0, 1, -1, 127, -128});
    growth.monotone.push_back(static_cast<std::int8_t>(direction));
  }
}

void choose_rows(Choices& choices, const Data& data, BoostingTask& task) {
  task.positive_class = choices.below(data.classes);
  task.sample_weight = data.weight;
  const bool validates = choices.below(2) == 0;
  const bool starts = choices.below(4) == 0;
  for (std::size_t i = 0; i < data.rows && validates; ++i) {
    task.validation_weight.push_back(i == 0 ? 1.0 : choices.one_of({0.0, 1.0, 1e-300, 1e300}));
  }
  for (std::size_t i = 0; i < data.rows && starts; ++i) {
    task.start_scores.push_back(choices.one_of({0.0, 1.0, -1e300, 1e300, 5e-324}));
  }
}

// Boosts all classes together if the border lets such a task through.
void choose_classes_together(Choices& choices, const Data& data, BoostingTask& task, TreeGrowth& growth) {
  const bool together = choices.below(3) == 1;  // An input that is used up chooses 0.
  if (!together || data.classes < 2 || !std::isfinite(task.alpha)) return;
  task.positive_class.reset();
  task.start_scores.clear();
  growth.monotone.clear();
}

std::unique_ptr<Booster> fit(const Data& data, const BoostingTask& task, const TreeGrowth& growth, int max_bins,
                             int rounds, int threads) {
  ThreadPool pool(threads);
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, data.classes, data.columns);
  const WholeWeights weights(data.weight.data(), data.weight.size());
  dataset->observe(data.matrix(), weights, pool);
  dataset->add_columns(data.matrix(), 0, data.category_counts, weights, max_bins, pool);
  auto booster =
      task.positive_class.has_value() ? make_booster(dataset, task, growth) : make_joint_booster(dataset, task, growth);
  const auto never_interrupt = [] { return false; };
  booster->boost(rounds, 0, threads, never_interrupt);
  booster->boost(rounds, 1, threads, never_interrupt);
  return booster;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  Choices choices(bytes, size);
  const Data data = make_data(choices);
  BoostingTask task;
  TreeGrowth growth;
  choose_settings(choices, data, task, growth);
  choose_rows(choices, data, task);
  const int max_bins = choices.one_of({255, 2, 3, 16});
  const int rounds = choices.one_of({1, 2, 0, -1, 4});
  choose_classes_together(choices, data, task, growth);
  growth.extra = choices.below(2) == 1;
  const auto one = fit(data, task, growth, max_bins, rounds, 1);
  const FlatForest flat = flatten(*one);
  if (data.rows > kManyRows) {
    const auto many = fit(data, task, growth, max_bins, rounds, 2);
    check(flat.edge == flatten(*many).edge, "the number of threads changed the trees");
  }
  const Forest forest(flat.view(), data.columns);
  std::vector<double> scores(data.rows * one->outputs(), 0.0);
  ThreadPool pool(1);
  forest.add_scores(data.matrix(), 0, flat.edge.size(), scores.data(), pool);
  const bool all_finite = std::all_of(flat.value.begin(), flat.value.end(), [](double x) { return std::isfinite(x); });
  const bool has_begun = one->outputs() == 1 || !one->trees().empty();  // Classes together begin at their shares.
  if (all_finite && has_begun && task.start_scores.empty()) {
    check(scores == one->scores(), "raw rows and codes lead to different leaves");
  }
  return 0;
}
