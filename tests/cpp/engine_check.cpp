// The engine on random data of many shapes, to be compiled with sanitizers (`make sanitize`). It must not touch memory
// that it does not own, race, or depend on the number of threads, and it must predict what it trained.
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <limits>
#include <optional>
#include <random>
#include <stdexcept>
#include <thread>
#include <vector>

#include "../../cpp/boosting.hpp"
#include "../../cpp/flat_forest.hpp"
#include "../../cpp/forest.hpp"
#include "../../cpp/joint_boosting.hpp"
#include "../../cpp/team.hpp"
#include "sparse_table.hpp"

using namespace untwist;

constexpr std::size_t kClasses = 3;
constexpr int kPatience = 4;

void check(bool condition, const char* what) {
  if (condition) return;
  std::printf("FAILED: %s\n", what);
  std::exit(1);
}

bool never_interrupt() { return false; }

struct Data {
  std::vector<double> X;
  std::vector<double> weight;
  std::vector<std::uint32_t> labels;
  std::vector<int> category_counts;
  std::size_t rows, columns, classes;

  Matrix<double> matrix() const { return view_rows(0, rows); }

  Matrix<double> view_rows(std::size_t first, std::size_t count) const {
    return {X.data() + first * columns, count, columns, static_cast<std::ptrdiff_t>(columns), 1};
  }
};

// Numbers with many and with few values, categories in every fifth column, and missing values. Odd seeds have weights,
// some of which are 0.
Data make_data(std::size_t rows, std::size_t columns, unsigned seed, std::size_t classes = kClasses) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  Data data{std::vector<double>(rows * columns), {}, {}, std::vector<int>(columns, 0), rows, columns, classes};
  for (std::size_t column = 4; column < columns; column += 5) {
    data.category_counts[column] = 3 + static_cast<int>(seed * 41 % 252);
  }
  for (std::size_t i = 0; i < data.X.size(); ++i) {
    const std::size_t column = i % columns;
    const int category_count = data.category_counts[column];
    double value = normal(random);
    if (category_count > 0) {
      value = static_cast<double>(random() % static_cast<unsigned>(category_count));
    } else if (column % 2 == 1) {
      value = std::round(value);
    }
    data.X[i] = random() % 13 == 0 ? std::numeric_limits<double>::quiet_NaN() : value;
  }
  for (std::size_t i = 0; i < rows; ++i) {
    const bool one_of_each_class = i < classes;
    data.labels.push_back(static_cast<std::uint32_t>(one_of_each_class ? i : random() % classes));
    if (seed % 2 == 1) data.weight.push_back(one_of_each_class ? 1.0 : static_cast<double>(random() % 4));
  }
  return data;
}

// Directions -1, 0 and +1 in turn for columns of numbers.
std::vector<std::int8_t> make_directions(const Data& data) {
  std::vector<std::int8_t> directions;
  for (std::size_t i = 0; i < data.columns; ++i) {
    const int direction = data.category_counts[i] > 0 ? 0 : static_cast<int>(i % 3) - 1;
    directions.push_back(static_cast<std::int8_t>(direction));
  }
  return directions;
}

BoostingTask make_task(std::optional<std::size_t> positive_class, std::vector<double> sample_weight) {
  BoostingTask task;
  task.positive_class = positive_class;
  task.sample_weight = std::move(sample_weight);
  return task;
}

// Leaves few cells of the table other than 0, and no categories. The first column stays as full as it is, and every
// second column misses no value.
Data thin_out(const Data& data) {
  std::mt19937 random(static_cast<unsigned>(data.rows));
  Data thin = data;
  thin.category_counts.assign(data.columns, 0);
  for (std::size_t i = 0; i < thin.X.size(); ++i) {
    const std::size_t column = i % data.columns;
    if (column > 0 && random() % 16 > 0) thin.X[i] = 0.0;
    if (column % 2 == 1 && std::isnan(thin.X[i])) thin.X[i] = 0.0;
  }
  return thin;
}

std::shared_ptr<Dataset> bin_in_memory(const Data& data, ThreadPool& pool, Layout layout = Layout::kRowsAndColumns) {
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, data.classes, data.columns, layout);
  const WholeWeights weights(data.weight.data(), data.weight.size());
  dataset->observe(data.matrix(), weights, pool);
  dataset->add_columns(data.matrix(), 0, data.category_counts, weights, kMaxBins, pool);
  return dataset;
}

// The same rows as a sparse table.
std::shared_ptr<Dataset> bin_sparse(const Data& data, ThreadPool& pool) {
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, data.classes, data.columns, Layout::kSparse);
  const SparseTable table(data.matrix());
  const WholeWeights weights(data.weight.data(), data.weight.size());
  dataset->add_sparse_columns(table.view(), weights, kMaxBins, pool);
  return dataset;
}

// The same rows in blocks, half of which another sketch sees.
std::shared_ptr<Dataset> bin_in_blocks(const Data& data, ThreadPool& pool) {
  auto dataset = std::make_shared<Dataset>(data.labels.data(), data.rows, data.classes, data.columns, Layout::kRows);
  const double largest = largest_weight(data.weight.data(), data.weight.size());
  Sketch sketch(data.category_counts, kMaxBins, largest);
  Sketch other(data.category_counts, kMaxBins, largest);
  const std::size_t size = data.rows / 5 + 1;
  const auto for_each_block = [&](const auto& take) {
    for (std::size_t first = 0; first < data.rows; first += size) {
      const double* weight = data.weight.empty() ? nullptr : data.weight.data() + first;
      take(data.view_rows(first, std::min(size, data.rows - first)), first, weight);
    }
  };
  for_each_block([&](const auto& block, std::size_t first, const double* weight) {
    (first < data.rows / 2 ? sketch : other).observe(block, weight, pool);
  });
  sketch.merge(other.state());
  check(!sketch.needs_draw(), "few rows are observed once");
  dataset->set_bins(sketch.find_bins(pool));
  for_each_block([&](const auto& block, std::size_t first, const double* weight) {
    dataset->add_rows(block, first, WholeWeights(weight, weight == nullptr ? 0 : block.rows), pool);
  });
  return dataset;
}

// Without a positive class all classes are boosted together.
std::unique_ptr<Booster> make_booster_of(std::shared_ptr<Dataset> dataset, const BoostingTask& task,
                                         const TreeGrowth& growth) {
  return task.positive_class.has_value() ? make_booster(std::move(dataset), task, growth)
                                         : make_joint_booster(std::move(dataset), task, growth);
}

std::shared_ptr<Dataset> bin(const Data& data, Layout layout, ThreadPool& pool) {
  if (layout == Layout::kSparse) return bin_sparse(data, pool);
  return layout == Layout::kRows ? bin_in_blocks(data, pool) : bin_in_memory(data, pool, layout);
}

std::unique_ptr<Booster> fit(const Data& data, const BoostingTask& task, const TreeGrowth& growth, int rounds,
                             int threads, Layout layout = Layout::kRowsAndColumns) {
  ThreadPool pool(threads);
  auto dataset = bin(data, layout, pool);
  auto booster = make_booster_of(dataset, task, growth);
  booster->boost(rounds / 2, 0, threads, never_interrupt);
  booster->boost(rounds - rounds / 2, kPatience, threads, never_interrupt);
  return booster;
}

// Raw rows must come to the leaves that their codes came to.
void check_prediction(const Data& data, const Booster& booster) {
  const bool has_begun = booster.outputs() == 1 || !booster.trees().empty();
  if (!has_begun) return;  // Classes together begin at their shares, which are a part of the first tree.
  const FlatForest flat = flatten(booster);
  const Forest forest(flat.view(), data.columns);
  std::vector<double> scores(data.rows * booster.outputs(), 0.0);
  ThreadPool pool(2);
  forest.add_scores(data.matrix(), 0, booster.trees().size(), scores.data(), pool);
  check(scores == booster.scores(), "raw rows and codes lead to different leaves");
}

bool have_same_losses(const Booster& one, const Booster& other) {
  const auto is_same = [](const ValidationLoss& a, const ValidationLoss& b) {
    return a.log_loss == b.log_loss && a.error == b.error;
  };
  return std::equal(one.losses().begin(), one.losses().end(), other.losses().begin(), other.losses().end(), is_same);
}

// However the codes lie in memory, the model is the same.
void check_layout(const Data& data, const BoostingTask& task, const TreeGrowth& growth, int rounds,
                  const Booster& expected, Layout layout, const char* what) {
  const auto booster = fit(data, task, growth, rounds, 2, layout);
  check(flatten(expected).edge == flatten(*booster).edge && flatten(expected).value == flatten(*booster).value &&
            flatten(expected).threshold == flatten(*booster).threshold &&
            flatten(expected).missing_left == flatten(*booster).missing_left &&
            expected.scores() == booster->scores() && have_same_losses(expected, *booster),
        what);
}

void check_fit(const Data& data, const BoostingTask& task, const TreeGrowth& growth, int rounds) {
  const auto one = fit(data, task, growth, rounds, 1);
  const auto many = fit(data, task, growth, rounds, 3);
  check(flatten(*one).edge == flatten(*many).edge, "the number of threads changed the edges");
  check(have_same_losses(*one, *many), "the number of threads changed the losses");
  check(one->scores() == many->scores(), "the number of threads changed the scores");
  check(flatten(*one).value == flatten(*many).value, "the number of threads changed the trees");
  check_layout(data, task, growth, rounds, *one, Layout::kRows, "rows in blocks make another model");
  check_layout(data, task, growth, rounds, *one, Layout::kColumns, "columns alone make another model");
  const Data thin = thin_out(data);
  const auto dense = fit(thin, task, growth, rounds, 1);
  check_layout(thin, task, growth, rounds, *dense, Layout::kSparse, "a sparse table makes another model");
  if (task.start_scores.empty()) check_prediction(data, *one);
}

// A run that is interrupted as a tree grows, or as rows are weighed, can be read, and goes on as if nothing had been.
// Every moment at which the booster asks for an interruption has its turn, those after the last tree too.
int check_interruptions(const Data& data, const BoostingTask& task, const TreeGrowth& growth) {
  constexpr int kRounds = 3;
  constexpr int kThreads = 2;
  ThreadPool pool(kThreads);
  const auto dataset = bin_in_memory(data, pool);
  const auto whole = make_booster_of(dataset, task, growth);
  int moments = 0;
  whole->boost(kRounds, 0, kThreads, [&] { return ++moments < 0; });
  check(moments > kRounds, "a booster must ask for an interruption as its trees grow");
  for (int moment = 1; moment <= moments; ++moment) {
    const auto stopped = make_booster_of(dataset, task, growth);
    int asked = 0;
    stopped->boost(kRounds, 0, kThreads, [&] { return ++asked == moment; });
    check(asked == moment, "a booster must stop as soon as it is interrupted");
    const int trees = static_cast<int>(stopped->trees().size());
    check(trees <= kRounds, "a tree that was interrupted must be dropped");
    check(stopped->losses().size() == (task.validation_weight.empty() ? 0 : stopped->trees().size()),
          "a loss per tree");
    check_prediction(data, *stopped);
    stopped->boost(kRounds - trees, 0, kThreads, never_interrupt);
    check(flatten(*stopped).edge == flatten(*whole).edge, "an interruption changed the edges");
    check(flatten(*stopped).value == flatten(*whole).value, "an interruption changed the trees");
    check(have_same_losses(*stopped, *whole), "an interruption changed the losses");
    check(stopped->scores() == whole->scores(), "an interruption changed the scores");
  }
  return moments;
}

// All classes together: few of them and so many that their gradients share lanes, with sums of 32 and of 64 bits.
int check_classes_together(bool quick) {
  int cases = 0;
  for (const std::size_t classes : {2, 3, 8, 15, 16, 40, 300}) {
    for (const std::size_t rows : {classes, classes + 150, std::size_t{20000}}) {
      if (rows > 10000 && (quick || classes > 40)) continue;
      const Data data = make_data(rows, 1 + static_cast<std::size_t>(cases) % 9, static_cast<unsigned>(cases), classes);
      const bool best_split_first = cases % 4 == 3;
      TreeGrowth growth;
      growth.max_depth = best_split_first ? 60 : 1 + cases % 7;
      growth.max_leaf_nodes = best_split_first ? 2 + cases : 0;
      growth.l2 = cases % 3 == 0 ? 1.5 : 0.0;
      growth.min_samples_leaf = cases % 3 == 1 ? 2.0 : 0.0;
      growth.min_weight_fraction_leaf = cases % 6 == 2 ? 0.1 : 0.0;
      growth.category_smoothing = 1.0;
      growth.subsample = cases % 4 == 1 ? 0.6 : 1.0;
      growth.max_features = cases % 4 == 2 ? 0.5 : 1.0;
      growth.extra = cases % 5 < 2;
      growth.seed = static_cast<std::uint64_t>(cases);
      BoostingTask task = make_task(std::nullopt, data.weight);
      if (cases % 5 == 4) {  // Shares of rows.
        task.sample_weight.clear();
        for (std::size_t i = 0; i < data.rows; ++i) task.sample_weight.push_back(static_cast<double>(i % 7 + 1) / 8.0);
      }
      task.validation_weight = std::vector<double>(data.rows, 1.0);
      task.alpha = cases % 3 == 0 ? 1.0 : cases % 3 == 1 ? 2.0 : 0.5;
      task.step_by_edge = cases % 2 == 0;
      task.step_size = 0.5;
      check_fit(data, task, growth, rows > 5000 ? 2 : 6);
      ++cases;
    }
  }
  for (const int max_leaf_nodes : {0, 6}) {
    const Data data = make_data(400, 5, 3, 5);
    TreeGrowth growth;
    growth.max_depth = 4;
    growth.max_leaf_nodes = max_leaf_nodes;
    growth.subsample = 0.8;
    BoostingTask task = make_task(std::nullopt, data.weight);
    task.validation_weight = std::vector<double>(data.rows, 1.0);
    cases += check_interruptions(data, task, growth);
  }
  return cases;
}

// Boosters side by side must be those that were boosted one after the other, however few the threads.
int check_boosters_side_by_side() {
  constexpr std::size_t kBoosters = 5;
  constexpr int kRounds = 4;
  int cases = 0;
  const Data data = make_data(12000, 6, 3);
  ThreadPool pool(2);
  const auto dataset = bin_in_memory(data, pool);
  const auto make = [&](std::size_t number) {
    TreeGrowth growth;
    growth.max_depth = 2 + static_cast<int>(number);
    growth.subsample = number % 2 == 0 ? 1.0 : 0.7;
    BoostingTask task = make_task(number, data.weight);
    if (number >= kClasses) task.positive_class = std::nullopt;
    task.validation_weight = std::vector<double>(data.rows, 1.0);
    task.step_size = 0.5;
    return make_booster_of(dataset, task, growth);
  };
  for (const int threads : {1, 2, 3, 5, 12}) {
    Team team(threads);
    std::vector<std::unique_ptr<Booster>> together;
    std::vector<Booster*> listed;
    for (std::size_t i = 0; i < kBoosters; ++i) listed.push_back(together.emplace_back(make(i)).get());
    team.boost(listed, 1, 0, never_interrupt);
    team.boost(listed, kRounds - 1, kPatience, never_interrupt);
    for (std::size_t i = 0; i < kBoosters; ++i) {
      const auto alone = make(i);
      alone->boost(1, 0, 1, never_interrupt);
      alone->boost(kRounds - 1, kPatience, 1, never_interrupt);
      check(alone->trees().size() == kRounds, "a booster must make the rounds that it was asked for");
      check(flatten(*alone).edge == flatten(*together[i]).edge, "boosters side by side have other edges");
      check(flatten(*alone).value == flatten(*together[i]).value, "boosters side by side have other trees");
      check(have_same_losses(*alone, *together[i]), "boosters side by side have other losses");
      check(alone->scores() == together[i]->scores(), "boosters side by side have other scores");
      ++cases;
    }
  }
  return cases;
}

// A booster that does as told, and notes what it is asked for.
class ScriptedBooster final : public Booster {
 public:
  explicit ScriptedBooster(std::size_t most = 1000) : Booster(nullptr), most_(most) {}

  void boost(int rounds, int, int threads, const std::function<bool()>& interrupted) override {
    check(!is_at_work_.exchange(true), "two threads are at one booster");
    threads_given = threads;
    for (int i = 0; i < rounds && trees_.size() < most_ && !interrupted(); ++i) {
      if (trees_.size() == breaks_at) {
        is_at_work_ = false;
        throw std::runtime_error("broken");
      }
      trees_.push_back({Tree(), 0.0, 0.0});
    }
    is_at_work_ = false;
  }

  std::vector<double> scores() const override { return {}; }

  std::size_t breaks_at = std::numeric_limits<std::size_t>::max();
  int threads_given = 0;

 private:
  const std::size_t most_;  // It ends by itself after so many rounds.
  std::atomic<bool> is_at_work_{false};
};

// The thread that calls leaves it at once, as soon as another thread has come to its fellow. Any other thread stays
// until it is interrupted.
class WaitingBooster final : public Booster {
 public:
  WaitingBooster(std::thread::id caller, std::atomic<bool>& has_begun)
      : Booster(nullptr), caller_(caller), has_begun_(has_begun) {}

  void boost(int, int, int, const std::function<bool()>& interrupted) override {
    if (std::this_thread::get_id() == caller_) {
      while (!has_begun_.load()) std::this_thread::yield();
      return;
    }
    has_begun_.store(true);
    const auto end = std::chrono::steady_clock::now() + std::chrono::minutes(10);
    while (!interrupted()) {
      check(std::chrono::steady_clock::now() < end, "nobody hears of an interrupt while others are at work");
      std::this_thread::yield();
    }
    was_interrupted = true;
  }

  std::vector<double> scores() const override { return {}; }

  bool was_interrupted = false;

 private:
  const std::thread::id caller_;
  std::atomic<bool>& has_begun_;
};

std::vector<Booster*> list(std::deque<ScriptedBooster>& boosters) {
  std::vector<Booster*> listed;
  for (ScriptedBooster& booster : boosters) listed.push_back(&booster);
  return listed;
}

int check_turns_and_ends() {
  int cases = 0;
  // Every booster makes its rounds, has its share of the threads, and may end by itself.
  for (const int threads : {1, 2, 3, 7, 16}) {
    Team team(threads);
    for (const std::size_t count : {1, 2, 3, 7, 50}) {
      std::deque<ScriptedBooster> boosters(count);
      boosters.emplace_back(4);
      team.boost(list(boosters), 10, 0, never_interrupt);
      team.boost(list(boosters), 3, 0, never_interrupt);
      for (std::size_t i = 0; i <= count; ++i) {
        check(boosters[i].trees().size() == (i < count ? 13 : 4), "a booster has too few rounds or too many");
        const int share = threads / static_cast<int>(count + 1);
        check(boosters[i].threads_given == std::max(1, share), "a booster has too few threads or too many");
      }
      ++cases;
    }
  }
  // An error in any thread is told to who calls. The others stop, and can go on.
  for (std::size_t broken = 0; broken < 3; ++broken) {
    Team team(3);
    std::deque<ScriptedBooster> boosters(3);
    boosters[broken].breaks_at = 6;
    bool is_told = false;
    try {
      team.boost(list(boosters), 10, 0, never_interrupt);
    } catch (const std::runtime_error&) {
      is_told = true;
    }
    check(is_told, "an error in a thread is lost");
    for (std::size_t i = 0; i < 3; ++i) check(boosters[i].trees().size() <= (i == broken ? 6 : 10), "too many rounds");
    boosters[broken].breaks_at = 1000;
    team.boost(list(boosters), 100, 0, never_interrupt);
    for (const ScriptedBooster& booster : boosters) check(booster.trees().size() >= 100, "a team does not go on");
    ++cases;
  }
  // An interrupt ends all, whoever is at work, and the team goes on afterwards.
  for (const int threads : {1, 2, 3}) {
    for (const std::size_t count : {1, 2, 3, 5, 40}) {
      for (const int moment : {1, 2, 30}) {
        Team team(threads);
        std::deque<ScriptedBooster> boosters;
        for (std::size_t i = 0; i < count; ++i) boosters.emplace_back(std::numeric_limits<std::size_t>::max());
        int asked = 0;
        team.boost(list(boosters), 2000, 0, [&] { return ++asked >= moment; });
        std::size_t total = 0;
        for (const ScriptedBooster& booster : boosters) total += booster.trees().size();
        check(threads > 1 || total == static_cast<std::size_t>(moment) - 1, "a team stops late");
        std::vector<std::size_t> before;
        for (const ScriptedBooster& booster : boosters) before.push_back(booster.trees().size());
        team.boost(list(boosters), 3, 0, never_interrupt);
        for (std::size_t i = 0; i < count; ++i) {
          check(boosters[i].trees().size() == before[i] + 3, "an interrupt of a team lasts");
        }
        ++cases;
      }
    }
  }
  // A booster that fails stops the others, which would have long to go.
  for (const int threads : {2, 3}) {
    Team team(threads);
    std::atomic<bool> has_begun{true};
    WaitingBooster waits(std::thread::id(), has_begun);
    ScriptedBooster fails;
    fails.breaks_at = 0;
    bool is_told = false;
    try {
      team.boost({&fails, &waits}, 5, 0, never_interrupt);
    } catch (const std::runtime_error&) {
      is_told = true;
    }
    check(is_told, "an error is lost while others wait");
    ++cases;
  }
  // Who calls has nothing left to do and hears of an interrupt all the same.
  Team team(2);
  std::atomic<bool> has_begun{false};
  WaitingBooster one(std::this_thread::get_id(), has_begun), other(std::this_thread::get_id(), has_begun);
  int asked = 0;
  team.boost({&one, &other}, 5, 0, [&] { return ++asked > 3; });
  check(one.was_interrupted != other.was_interrupted, "one of two boosters waits for an interrupt");
  return cases + 1;
}

// The cases that the grid of shapes does not reach. Each is there for a part of the core of its own.
int check_rare_cases(bool quick) {
  int cases = 0;
  // All remainders of eight columns, with rows counted or not.
  for (std::size_t columns = 1; columns <= 17; ++columns) {
    const Data data = make_data(700, columns, static_cast<unsigned>(columns));
    TreeGrowth growth;
    growth.min_samples_leaf = columns % 2 == 0 ? 3.0 : 0.0;
    BoostingTask task = make_task(1, data.weight);
    task.step_by_edge = columns % 3 == 0;
    task.step_size = task.step_by_edge ? 4.0 : 0.5;
    check_fit(data, task, growth, 4);
    ++cases;
  }
  // Trees with more leaves than slots, and sums of 32 and of 64 bits.
  for (const bool wide : {false, true}) {
    if (wide && quick) continue;
    Data data = make_data(wide ? 18000 : 3000, 6, 2);
    TreeGrowth growth;
    growth.max_depth = 10;
    growth.monotone = make_directions(data);
    check_fit(data, make_task(2, {}), growth, 2);
    growth.monotone.clear();
    growth.min_samples_leaf = 1.0;
    check_fit(data, make_task(2, {}), growth, 2);
    // Copies of rows.
    for (std::size_t i = 0; i < data.rows; ++i) data.weight.push_back(static_cast<double>(i % 129));
    BoostingTask copies = make_task(0, data.weight);
    copies.validation_weight = data.weight;
    check_fit(data, copies, growth, 2);
    // Shares of rows, and scores to start from.
    for (double& weight : data.weight) weight /= kMaxCopies;
    BoostingTask started = make_task(1, data.weight);
    started.validation_weight = data.weight;
    for (std::size_t i = 0; i < data.rows; ++i) started.start_scores.push_back(static_cast<double>(i % 7) - 3.0);
    for (const double alpha : {2.0, 1.5}) {
      started.alpha = alpha;
      check_fit(data, started, growth, 2);
      started.link = LinkKind::kExact;
      growth.subsample = 0.7;
      check_fit(data, started, growth, 2);
      started.link = LinkKind::kLogit;
      check_fit(data, started, growth, 2);
      started.link = LinkKind::kClipped;
    }
    cases += 7;
  }
  // Interruptions of trees that grow level by level, and of trees that grow by the best split.
  for (const int max_leaf_nodes : {0, 6}) {
    const Data data = make_data(400, 5, 3);
    TreeGrowth growth;
    growth.max_depth = 4;
    growth.max_leaf_nodes = max_leaf_nodes;
    growth.subsample = 0.8;
    growth.max_features = 0.7;
    BoostingTask task = make_task(1, data.weight);
    task.validation_weight = std::vector<double>(data.rows, 1.0);
    cases += check_interruptions(data, task, growth);
  }
  if (quick) return cases;
  // Thresholds from a sample of the rows.
  const Data large = make_data(120000, 3, 4);
  TreeGrowth growth;
  growth.max_depth = 9;
  check_fit(large, make_task(1, {}), growth, 1);
  return cases + 1;
}

int main(int count, char**) {
  const bool quick = count > 1;  // Any argument leaves out what takes valgrind too long.
  const std::size_t shapes[][2] = {{3, 1}, {7, 2}, {100, 9}, {2000, 16}, {9000, 7}, {20000, 28}};
  const double alphas[] = {0.5, 1.0, 1.1, 4.0, kInfinity};
  int cases = 0;
  for (const auto& [rows, columns] : shapes) {
    if (quick && rows > 1000) continue;
    for (const double alpha : alphas) {
      const Data data = make_data(rows, columns, static_cast<unsigned>(cases));
      const bool best_split_first = cases % 4 == 3;
      TreeGrowth growth;
      growth.max_depth = best_split_first ? 60 : 1 + cases % 7;
      growth.max_leaf_nodes = best_split_first ? 2 + cases : 0;
      growth.l2 = cases % 3 == 0 ? 1.5 : 0.0;
      growth.min_samples_leaf = cases % 3 == 1 ? 2.0 : 0.0;
      growth.min_weight_fraction_leaf = cases % 6 == 2 ? 0.1 : 0.0;
      growth.category_smoothing = 1.0;
      growth.subsample = cases % 4 == 1 ? 0.6 : 1.0;
      growth.max_features = cases % 4 == 2 ? 0.5 : 1.0;
      growth.extra = cases % 5 < 2;
      growth.seed = static_cast<std::uint64_t>(cases);
      if (cases % 7 == 0) growth.monotone = make_directions(data);
      BoostingTask task = make_task(static_cast<std::size_t>(cases % 3), data.weight);
      task.validation_weight = std::vector<double>(data.rows, 1.0);
      task.alpha = alpha;
      if (cases % 5 == 4) task.link = LinkKind::kExact;
      if (cases % 5 == 3 && alpha >= 1.0 && std::isfinite(alpha)) task.link = LinkKind::kLogit;
      task.step_size = 2.0;
      check_fit(data, task, growth, rows > 5000 ? 4 : 10);
      ++cases;
    }
  }
  cases += check_rare_cases(quick);
  cases += check_classes_together(quick);
  cases += check_boosters_side_by_side();
  cases += check_turns_and_ends();
  std::printf("%d passed, 0 failed\n", cases);
}
