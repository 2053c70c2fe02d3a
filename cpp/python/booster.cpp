// Binds runs of boosting for Python.
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "../boosting.hpp"
#include "../dataset.hpp"
#include "../flat_forest.hpp"
#include "../interactions.hpp"
#include "../joint_boosting.hpp"
#include "../settings.hpp"
#include "../team.hpp"
#include "arrays.hpp"
#include "flat_forest.hpp"
#include "links.hpp"
#include "module.hpp"

namespace untwist::python {

namespace {

// Returns the groups of columns that may meet, given one after the other; null where there are none.
std::shared_ptr<const Interactions> find_interactions(const std::vector<std::uint32_t>& columns,
                                                      const std::vector<std::int64_t>& starts, std::size_t features) {
  if (starts.empty()) return nullptr;
  const auto is_known = [&](std::uint32_t column) { return column < features; };
  require(std::all_of(columns.begin(), columns.end(), is_known), "groups must hold columns of the table");
  require(starts.front() == 0 && starts.back() == static_cast<std::int64_t>(columns.size()) &&
              std::is_sorted(starts.begin(), starts.end()),
          "groups must follow one another");
  std::vector<std::vector<std::uint32_t>> groups;
  for (std::size_t i = 0; i + 1 < starts.size(); ++i) {
    groups.emplace_back(columns.begin() + starts[i], columns.begin() + starts[i + 1]);
  }
  return std::make_shared<const Interactions>(std::move(groups), features);
}

void init_growth(TreeGrowth* self, int max_depth, int max_leaf_nodes, double min_samples_leaf,
                 double min_weight_fraction_leaf, double l2, double category_smoothing, double subsample,
                 double max_features, bool extra, std::uint64_t seed, const Vector<std::int8_t>& monotone,
                 const Vector<std::uint32_t>& grouped_columns, const Vector<std::int64_t>& group_starts,
                 const Vector<double>& feature_weights, std::size_t features) {
  require(max_depth >= 1 && max_leaf_nodes >= 0 && max_leaf_nodes != 1 && min_samples_leaf >= 0.0 &&
              min_weight_fraction_leaf >= 0.0 && min_weight_fraction_leaf <= 0.5 && l2 >= 0.0 && std::isfinite(l2) &&
              category_smoothing >= 0.0,
          "all settings must be in range");
  require(subsample > 0.0 && subsample <= 1.0 && max_features > 0.0 && max_features <= 1.0,
          "shares must lie in (0, 1]");
  TreeGrowth growth;
  growth.max_depth = max_depth;
  growth.max_leaf_nodes = max_leaf_nodes;
  growth.min_samples_leaf = min_samples_leaf;
  growth.min_weight_fraction_leaf = min_weight_fraction_leaf;
  growth.l2 = l2;
  growth.category_smoothing = category_smoothing;
  growth.subsample = subsample;
  growth.max_features = max_features;
  growth.extra = extra;
  growth.seed = seed;
  growth.monotone = copy(monotone);
  growth.interactions = find_interactions(copy(grouped_columns), copy(group_starts), features);
  growth.feature_weights = copy(feature_weights);
  const auto is_weight = [](double weight) { return weight >= 0.0 && std::isfinite(weight); };
  require(std::all_of(growth.feature_weights.begin(), growth.feature_weights.end(), is_weight),
          "feature weights must be finite and not negative");
  new (self) TreeGrowth(std::move(growth));
}

void init_task(BoostingTask* self, std::optional<std::size_t> positive_class, const Vector<double>& sample_weight,
               const Vector<double>& validation_weight, const Vector<double>& start_scores, double alpha,
               const std::string& link, double step_size, bool step_by_edge, double posterior_floor, int first_round,
               bool begins_at_shares) {
  require(alpha > 0.0 && step_size > 0.0 && std::isfinite(step_size) && posterior_floor > 0.0 &&
              posterior_floor < 0.5 && first_round >= 0,
          "all settings must be in range");
  const double largest = require_weights(sample_weight, sample_weight.shape(0));
  require_weights(validation_weight, validation_weight.shape(0));
  require_aligned(start_scores);
  BoostingTask task;
  task.positive_class = positive_class;
  task.sample_weight = copy(sample_weight);
  task.validation_weight = copy(validation_weight);
  task.start_scores = copy(start_scores);
  task.alpha = alpha;
  task.link = find_link(link);
  require(task.link != LinkKind::kLogit || (alpha >= 1.0 && std::isfinite(alpha)), "log-odds need an alpha from 1 on");
  task.step_size = step_size;
  task.step_by_edge = step_by_edge;
  task.posterior_floor = posterior_floor;
  task.first_round = first_round;
  task.begins_at_shares = begins_at_shares;
  require(largest <= (are_whole(task.sample_weight) ? kMaxCopies : 1.0), "weights must be at most 1, or counts");
  const auto is_finite = [](double score) { return std::isfinite(score); };
  require(std::all_of(task.start_scores.begin(), task.start_scores.end(), is_finite), "scores must be finite");
  new (self) BoostingTask(std::move(task));
}

// Makes a booster of a task and settings that fit the dataset.
std::unique_ptr<Booster> make_fitting_booster(std::shared_ptr<Dataset> dataset, const BoostingTask& task,
                                              const TreeGrowth& growth) {
  const auto fits = [](std::size_t size, std::size_t expected) { return size == 0 || size == expected; };
  const std::size_t classes = dataset->class_start.size() - 1;
  const bool jointly = !task.positive_class.has_value();
  require(jointly || *task.positive_class < classes, "the positive class must be one of the classes");
  require(fits(task.sample_weight.size(), dataset->rows), "there must be one weight per row, or none");
  require(fits(task.validation_weight.size(), dataset->rows), "there must be one weight per row, or none");
  require(fits(task.start_scores.size(), dataset->rows), "there must be one score per row, or none");
  require(fits(growth.monotone.size(), dataset->features), "there must be one direction per feature, or none");
  require(fits(growth.feature_weights.size(), dataset->features), "there must be one weight per feature, or none");
  require(growth.interactions == nullptr || growth.interactions->columns() == dataset->features,
          "groups must be of the columns of the table");
  if (jointly) {
    require(classes >= 2, "there must be two classes or more to boost together");
    require(std::isfinite(task.alpha), "alpha must be finite where classes are boosted together");
    require(task.start_scores.empty(), "classes that are boosted together cannot go on from scores");
    require(growth.monotone.empty(), "classes that are boosted together cannot be monotone");
  }
  nb::gil_scoped_release unlocked;
  return jointly ? make_joint_booster(std::move(dataset), task, growth)
                 : make_booster(std::move(dataset), task, growth);
}

// Holds a booster or a team for one thread. Another one that wants it meanwhile gets an error.
class ExclusiveUse {
 public:
  explicit ExclusiveUse(const Booster& booster) : ExclusiveUse(booster.busy, "this booster") {}
  explicit ExclusiveUse(Team& team) : ExclusiveUse(team.busy, "this team of threads") {}
  ~ExclusiveUse() { busy_.clear(); }
  ExclusiveUse(const ExclusiveUse&) = delete;
  ExclusiveUse& operator=(const ExclusiveUse&) = delete;

 private:
  ExclusiveUse(std::atomic_flag& busy, const char* what) : busy_(busy) {
    if (busy.test_and_set()) throw std::runtime_error(std::string(what) + " is at work in another thread");
  }

  std::atomic_flag& busy_;
};

std::size_t count_trees(const Booster& booster) {
  const ExclusiveUse use(booster);
  return booster.trees().size();
}

// Returns the number of trees so far.
std::size_t boost(Booster& booster, int rounds, int patience, int threads) {
  require_threads(threads);
  const ExclusiveUse use(booster);
  InterruptCheck check;
  {
    nb::gil_scoped_release unlocked;
    booster.boost(rounds, patience, threads, [&check] { return check(); });
  }
  check.raise_if_interrupted();
  return booster.trees().size();
}

void boost_together(Team& team, const nb::list& listed, int rounds, int patience) {
  const ExclusiveUse use(team);
  std::vector<Booster*> boosters;
  std::vector<std::unique_ptr<ExclusiveUse>> uses;
  for (const nb::handle each : listed) {
    boosters.push_back(&nb::cast<Booster&>(each));
    uses.push_back(std::make_unique<ExclusiveUse>(*boosters.back()));
  }
  InterruptCheck check;
  {
    nb::gil_scoped_release unlocked;
    team.boost(boosters, rounds, patience, [&check] { return check(); });
  }
  check.raise_if_interrupted();
}

Team* make_team(int threads) {
  require_threads(threads);
  return new Team(threads);
}

// Returns the trees from `first` on as flat arrays.
nb::tuple trees(const Booster& booster, std::size_t first) {
  const ExclusiveUse use(booster);
  require(first <= booster.trees().size(), "first must be at most the number of trees");
  return to_tuple(flatten(booster, first));
}

nb::object scores(const Booster& booster) {
  const ExclusiveUse use(booster);
  return to_numpy_rows(booster.scores(), booster.outputs());
}

// Returns one of the two losses of the validation rows after each round.
template <double ValidationLoss::* kind>
nb::object losses(const Booster& booster) {
  const ExclusiveUse use(booster);
  std::vector<double> found;
  for (const ValidationLoss& loss : booster.losses()) found.push_back(loss.*kind);
  return to_numpy(std::move(found));
}

}  // namespace

void bind_boosters(nb::module_& module) {
  nb::class_<TreeGrowth>(module, "TreeGrowth")
      .def("__init__", &init_growth, nb::kw_only(), nb::arg("max_depth"), nb::arg("max_leaf_nodes"),
           nb::arg("min_samples_leaf"), nb::arg("min_weight_fraction_leaf"), nb::arg("l2"),
           nb::arg("category_smoothing"), nb::arg("subsample"), nb::arg("max_features"), nb::arg("extra"),
           nb::arg("seed"), nb::arg("monotone"), nb::arg("grouped_columns"), nb::arg("group_starts"),
           nb::arg("feature_weights"), nb::arg("features"),
           "How trees grow. l2, min_samples_leaf and category_smoothing count in rows of sample weight 1; 0 leaf nodes "
           "mean no limit, and no directions mean that no column is monotone. Only the columns of one group meet in a "
           "tree; "
           "no groups mean that all may.");
  nb::class_<BoostingTask>(module, "BoostingTask")
      .def("__init__", &init_task, nb::kw_only(), nb::arg("positive_class").none(), nb::arg("sample_weight"),
           nb::arg("validation_weight"), nb::arg("start_scores"), nb::arg("alpha"), nb::arg("link"),
           nb::arg("step_size"), nb::arg("step_by_edge"), nb::arg("posterior_floor"), nb::arg("first_round"),
           nb::arg("begins_at_shares"),
           "One class against the others, or None for all classes together, with the link and the steps. The arrays "
           "have "
           "an entry per row, or none.");
  nb::class_<Booster>(module, "Booster")
      .def(nb::new_(&make_fitting_booster), nb::arg("dataset"), nb::arg("task"), nb::arg("growth"),
           "PILBoost over histogram trees for binned rows.")
      .def("boost", &boost, nb::arg("rounds"), nb::arg("patience") = 0, nb::arg("threads") = 1,
           "Run rounds; the number of trees so far.")
      .def("__len__", &count_trees, "The number of trees so far.")
      .def("trees", &trees, nb::arg("first"), "Flat arrays of the trees from `first` on.")
      .def("scores", &scores, "Scores of all rows; a row of them each where classes are boosted together.")
      .def("losses", &losses<&ValidationLoss::log_loss>, "Log-loss of the validation rows after each round.")
      .def("errors", &losses<&ValidationLoss::error>, "The share of the validation rows that are guessed wrongly.");
  nb::class_<Team>(module, "Team")
      .def(nb::new_(&make_team), nb::arg("threads"), "Threads that boost boosters side by side.")
      .def("boost", &boost_together, nb::arg("boosters"), nb::arg("rounds"), nb::arg("patience") = 0,
           "Run rounds of every booster.");
}

}  // namespace untwist::python
