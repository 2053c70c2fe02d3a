// Runs PILBoost's rounds: weights, a tree, its edge, the margins. All of it happens here, nothing in Python.
//
// Rows without a weight (beyond the clip, not drawn, or held out) take no part in growing a tree. It is applied to them
// all the same, so that the margins of held-out rows are at hand after every round.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "draws.hpp"
#include "growing.hpp"
#include "histogram_builder.hpp"
#include "leaves.hpp"
#include "rows.hpp"
#include "sample_weights.hpp"
#include "settings.hpp"
#include "threads.hpp"
#include "tree.hpp"
#include "validation.hpp"
#include "weights.hpp"

namespace untwist {

// A tree whose leaves have what it adds to the score: the value that it was grown with, times the leverage.
struct BoostedTree {
  Tree tree;
  double edge;
  double leverage;

  // A tree with a number for each class has them here instead, as [node][class]. Empty means that it has one number.
  std::vector<double> values = {};
};

// This is what Python sees of a run.
class Booster {
 public:
  virtual ~Booster() = default;

  // Runs up to `rounds` rounds on so many threads. There are fewer if all weights become zero, if the loss of the
  // validation rows was at its lowest `patience` rounds ago (0 means never), or if `interrupted`, which is asked as a
  // tree grows, says so. A tree that is half grown is dropped then. The booster is as it was after the last whole
  // round, and can go on from there.
  virtual void boost(int rounds, int patience, int threads, const std::function<bool()>& interrupted) = 0;

  // Counts the numbers that a tree adds to the scores of a row: one, or one for each class.
  virtual std::size_t outputs() const { return 1; }

  // Returns the scores of all rows, in the order that Python gave them, as [row][output].
  virtual std::vector<double> scores() const = 0;

  const Dataset& dataset() const { return *dataset_; }
  const std::vector<BoostedTree>& trees() const { return trees_; }

  // Returns the loss of the validation rows after each round.
  const std::vector<ValidationLoss>& losses() const { return losses_; }

  // Whoever uses the booster sets this flag, as only one thread may at a time.
  mutable std::atomic_flag busy = ATOMIC_FLAG_INIT;

 protected:
  explicit Booster(std::shared_ptr<Dataset> dataset) : dataset_(std::move(dataset)) {}

  // Tells whether the loss of the validation rows was at its lowest more than `patience` rounds ago.
  bool is_stale(int patience) const {
    if (patience <= 0 || losses_.empty()) return false;
    const auto is_lower = [](const ValidationLoss& a, const ValidationLoss& b) { return a.log_loss < b.log_loss; };
    const auto lowest = std::min_element(losses_.begin(), losses_.end(), is_lower);
    return losses_.end() - lowest > patience;
  }

  std::shared_ptr<Dataset> dataset_;
  std::vector<BoostedTree> trees_;
  std::vector<ValidationLoss> losses_;
};

// A run has histograms of 32-bit sums where all weights together fit into one, else of 64-bit sums.
template <typename Bin>
class HistogramBooster final : public Booster {
 public:
  HistogramBooster(std::shared_ptr<Dataset> dataset, const BoostingTask& task, TrainingWeights weights,
                   TreeGrowth growth)
      : Booster(std::move(dataset)),
        data_(*dataset_),
        growth_(std::move(growth)),
        step_size_(task.step_size),
        step_by_edge_(task.step_by_edge),
        first_round_(static_cast<std::uint64_t>(task.first_round)),
        positive_begin_(data_.class_start[*task.positive_class]),
        positive_end_(data_.class_start[*task.positive_class + 1]),
        weigher_(task.alpha, task.link),
        weights_(std::move(weights)),
        unit_(std::ldexp(1.0, weight_bits(weights_.total, weights_.roundings()))),
        varying_columns_(data_.varying_columns()),
        validation_rows_(task.validation_weight, data_.order, task.posterior_floor),
        histograms_(data_, weights_, growth_.min_samples_leaf > 0.0),
        margins_(data_.rows, 0.0),
        rows_(data_.rows) {
    if (task.start_scores.empty()) return;
    for (std::size_t i = 0; i < data_.rows; ++i) margins_[i] = sign_by_class(i, task.start_scores[data_.order[i]]);
  }

  void boost(int rounds, int patience, int threads, const std::function<bool()>& interrupted) override {
    const bool threads_pay_off = data_.rows * data_.features >= kCellsForThreads;
    ThreadPool pool(threads_pay_off ? threads : 1);  // No thread is left behind between calls.
    if (data_.has_rows()) histograms_.prepare(pool.size());
    if (rows_.all.size() == 0) weigh(nullptr, pool);
    for (int round = 0; round < rounds && rows_.all.size() > 0 && !is_stale(patience); ++round) {
      if (interrupted()) break;  // A tree of one leaf is grown without asking.
      const auto columns = draw_columns(growth_, varying_columns_, key());
      TreeGrower<Bin> grower(data_, growth_, unit_, key(), columns, rows_, histograms_, column_space_, pool);
      auto grown = grower.grow(interrupted);
      if (!grown) break;
      add(std::move(*grown));
      weigh(&trees_.back().tree, pool);
      if (!validation_rows_.empty()) add_validation_loss(pool);
    }
  }

  std::vector<double> scores() const override {
    std::vector<double> scores(data_.rows);
    for (std::size_t i = 0; i < data_.rows; ++i) scores[data_.order[i]] = sign_by_class(i, margins_[i]);
    return scores;
  }

 private:
  // These rows of one side of the data are weighed together.
  struct WeighedPiece : Piece {
    std::size_t count;  // So many rows have a weight. The scratch list has them at the start of the piece.
    std::size_t to;     // They go to this place in the list of entries.
    Sum weight;         // Their weights have this sum.
    Sum sample_weight;  // The rows that were drawn have this sample weight.
  };

  // With fewer cells than this a round is over before another thread has woken up.
  static constexpr std::size_t kCellsForThreads = 50000;

  // The sample weights of drawn rows are summed up as whole multiples of 2^-30, which keeps shares of a row exact.
  static constexpr Sum kWholeRow = Sum{1} << 30;

  bool is_positive(std::size_t row) const { return row >= positive_begin_ && row < positive_end_; }

  // Makes a margin of a score, or a score of a margin.
  double sign_by_class(std::size_t row, double value) const { return is_positive(row) ? value : -value; }

  // Keeps a tree, with the leaf values that its leverage makes.
  void add(GrownTree grown) {
    const double leverage = step_by_edge_ ? step_size_ * grown.edge : step_size_;
    for (Node& node : grown.tree) {
      if (node.is_leaf()) node.value *= leverage;
    }
    trees_.push_back({std::move(grown.tree), grown.edge, leverage, {}});
  }

  std::uint64_t key() const { return key_of_round(growth_, first_round_ + trees_.size()); }

  // ---- weights ----

  // Applies the newest tree, if there is one, and lists the rows that have a weight in the next round.
  void weigh(const Tree* newest, ThreadPool& pool) {
    std::optional<LeafFinder> leaves;
    if (newest != nullptr) leaves.emplace(*newest, data_);
    const LeafFinder* finder = leaves ? &*leaves : nullptr;
    if (growth_.subsample >= 1.0) return list_rows(finder, nullptr, pool);
    const RowDraw draw(growth_, dataset_->hashes(), key());
    list_rows(finder, &draw, pool);
    if (rows_.all.size() == 0) list_rows(nullptr, nullptr, pool);  // A draw that leaves nothing is not made.
  }

  void list_rows(const LeafFinder* leaves, const RowDraw* draw, ThreadPool& pool) {
    std::vector<WeighedPiece> pieces;
    constexpr std::size_t kOwner = 0;  // The root of the next tree owns all rows.
    const std::size_t piece_rows = choose_piece_rows(data_.rows, pool);
    cut(pieces, kOwner, kNegative, 0, positive_begin_, piece_rows);
    cut(pieces, kOwner, kNegative, positive_end_, data_.rows, piece_rows);
    cut(pieces, kOwner, kPositive, positive_begin_, positive_end_, piece_rows);
    for_each_piece(pool, pieces, [&](int, WeighedPiece& piece) {
      if (leaves != nullptr) apply(*leaves, piece);
      weigh_piece(piece, draw);
    });
    place_weighed_pieces(pieces, draw != nullptr);
    const bool all_in_place = rows_.all.size() == data_.rows && positive_end_ == data_.rows;
    if (all_in_place) return rows_.entries.swap(rows_.scratch);
    for_each_piece(pool, pieces, [&](int, const WeighedPiece& piece) {
      std::copy_n(rows_.scratch.data() + piece.first, piece.count, rows_.entries.data() + piece.to);
    });
  }

  // Adds the tree to the margins of a piece.
  void apply(const LeafFinder& leaves, const Piece& piece) {
    const double sign = piece.side == kPositive ? 1.0 : -1.0;
    std::array<double, kSlottedRows> value;
    for (std::size_t first = piece.first; first < piece.last; first += kSlottedRows) {
      const std::size_t count = std::min(kSlottedRows, piece.last - first);
      leaves.find_values(first, count, value.data());
      for (std::size_t i = 0; i < count; ++i) margins_[first + i] += sign * value[i];
    }
  }

  // Weighs the rows of a piece and packs those that have a weight into the scratch list.
  void weigh_piece(WeighedPiece& piece, const RowDraw* draw) {
    const std::size_t length = piece.last - piece.first;
    const float* sample_weight = weights_.from(piece.first);
    const float* factor = weights_.are_copies ? nullptr : sample_weight;
    std::array<std::uint32_t, kPieceRows> weights;
    std::uint32_t* weight = weights.data();
    weigher_.weigh(static_cast<float>(unit_), margins_.data() + piece.first, factor, length, weight);
    if (weights_.are_copies) {
      for (std::size_t i = 0; i < length; ++i) weight[i] *= static_cast<std::uint32_t>(sample_weight[i]);
    }
    if (draw != nullptr) piece.sample_weight = drop_undrawn(piece, *draw, sample_weight, weight);
    Entry* kept = rows_.scratch.data() + piece.first;
    Sum sum = 0;
    for (std::size_t i = 0; i < length; ++i) {
      *kept = {static_cast<Row>(piece.first + i), weight[i]};
      kept += weight[i] > 0;
      sum += weight[i];
    }
    piece.count = static_cast<std::size_t>(kept - rows_.scratch.data()) - piece.first;
    piece.weight = sum;
  }

  // Takes their weights from the rows that are not drawn, and returns the sample weight of those that are.
  static Sum drop_undrawn(const Piece& piece, const RowDraw& draw, const float* sample_weight, std::uint32_t* weight) {
    Sum sum = 0;
    for (std::size_t i = 0; i < piece.last - piece.first; ++i) {
      const bool drawn = draw.has(piece.first + i);
      weight[i] = drawn ? weight[i] : 0;
      if (!drawn) continue;
      sum += sample_weight == nullptr ? kWholeRow : static_cast<Sum>(sample_weight[i] * static_cast<float>(kWholeRow));
    }
    return sum;
  }

  // Finds the places of all pieces in the list of entries, and what the rows weigh together.
  void place_weighed_pieces(std::vector<WeighedPiece>& pieces, bool drawn) {
    std::size_t count = 0;
    Sum sample_weight = 0;
    rows_.all = NodeRows{};
    rows_.weight = ClassWeights{};
    for (WeighedPiece& piece : pieces) {
      piece.to = count;
      count += piece.count;
      sample_weight += piece.sample_weight;
      rows_.weight[piece.side] += piece.weight;
      rows_.all.last[piece.side] = count;
    }
    rows_.all.first[kPositive] = rows_.all.last[kNegative];
    rows_.all.last[kPositive] = count;
    rows_.sample_weight = drawn ? static_cast<double>(sample_weight) / static_cast<double>(kWholeRow) : weights_.total;
  }

  // ---- validation rows ----

  void add_validation_loss(ThreadPool& pool) {
    losses_.push_back(validation_rows_.find_loss(
        [this](const Entry* entries, std::size_t count, Verdict* verdicts) { judge(entries, count, verdicts); }, pool));
  }

  void judge(const Entry* entries, std::size_t count, Verdict* verdicts) const {
    std::vector<double> margin(count), posterior(count);
    for (std::size_t i = 0; i < count; ++i) margin[i] = margins_[entries[i].row];
    weigher_.find_posteriors(margin.data(), count, posterior.data());
    for (std::size_t i = 0; i < count; ++i) {
      const bool guessed_negative_rightly = margin[i] == 0.0 && !is_positive(entries[i].row);
      const bool right = margin[i] > 0.0 || guessed_negative_rightly;  // A score of 0 guesses the negative class.
      verdicts[i] = {posterior[i], right};
    }
  }

  Dataset& data_;
  const TreeGrowth growth_;
  const double step_size_;
  const bool step_by_edge_;
  const std::uint64_t first_round_;
  const std::size_t positive_begin_, positive_end_;  // The rows between these are of the positive class.
  const Weigher weigher_;
  const TrainingWeights weights_;
  const double unit_;  // This is the fixed-point weight 1.
  const std::vector<std::uint32_t> varying_columns_;
  const ValidationRows validation_rows_;
  HistogramBuilder<Bin> histograms_;
  ColumnSpace<ClassNodes<Bin>> column_space_;
  std::vector<double> margins_;  // A margin is the score, with the sign of the row's class.
  RoundRows rows_;
};

inline std::unique_ptr<Booster> make_booster(std::shared_ptr<Dataset> dataset, const BoostingTask& task,
                                             TreeGrowth growth) {
  TrainingWeights weights(task.sample_weight, dataset->order);
  if (fits_32_bits(weights.total, weights.roundings())) {
    return std::make_unique<HistogramBooster<std::uint32_t>>(std::move(dataset), task, std::move(weights),
                                                             std::move(growth));
  }
  return std::make_unique<HistogramBooster<std::uint64_t>>(std::move(dataset), task, std::move(weights),
                                                           std::move(growth));
}

}  // namespace untwist
