// Boosts all classes of a task together: every round grows one tree, whose leaves have a number for each class.
//
// This is our extension of PILBoost, whose paper has two classes: the scores H go through a softmax, and a round
// follows the gradient of the multi-class alpha-loss (softmax.hpp). The value of a leaf is G_k / (W_k + l2) for class
// k, where G is the sum of the negative gradient over its rows and W that of its sizes, so that it lies in [-1, 1] as
// the leaves of two classes do. The minimiser of the loss is p proportional to q^alpha, hence the twisted posterior is
// softmax(H / alpha), and the rounds begin at H = alpha * ln(share of each class), which is part of the first tree, or
// at 0 where the task says so.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "boosting.hpp"
#include "dataset.hpp"
#include "draws.hpp"
#include "joint_growing.hpp"
#include "joint_histogram.hpp"
#include "joint_lanes.hpp"
#include "leaves.hpp"
#include "rows.hpp"
#include "sample_weights.hpp"
#include "settings.hpp"
#include "softmax.hpp"
#include "threads.hpp"
#include "tree.hpp"
#include "validation.hpp"
#include "weights.hpp"

namespace untwist {

// This is the fixed point of a joint booster's gradients.
struct JointFixedPoint {
  JointFixedPoint(const TrainingWeights& weights, std::size_t classes, std::size_t gradient_lanes, double most_emphasis)
      // Several classes may share a lane, which then has up to twice the mass of a row.
      : per_weight(most_emphasis * (classes > gradient_lanes ? 2.0 : 1.0)),
        per_rounding(0.5 * static_cast<double>(classes)) {
    const double roundings = static_cast<double>(weights.roundings());
    const auto fits = [&](int b) {
      return std::ldexp(weights.total * per_weight, b) + 2.0 * per_rounding * roundings < kSumLimit;
    };
    bits = kMaxWeightBits;
    while (bits > kFewestBits && !fits(bits)) --bits;
    is_narrow = fits(bits);
    if (!is_narrow) bits = kMinWeightBits;
    unit = std::ldexp(1.0, bits);
    const double copies = std::ceil(weights.largest);
    const double of_row = copies * (std::ldexp(per_weight, bits) + 2.0 * per_rounding);
    rows_within_32_bits = static_cast<std::size_t>(std::max(1.0, std::floor((kSumLimit - 1.0) / of_row)));
  }

  // With so few bits the gradient of a class that a row has a posterior of 1/30,000 for is still told from 0.
  static constexpr int kFewestBits = 14;

  double per_weight, per_rounding;
  int bits;
  bool is_narrow;                   // All sums fit into 32 bits.
  double unit;                      // This is the fixed-point weight 1.
  std::size_t rows_within_32_bits;  // The sums of so many rows fit into 32 bits in any case.
};

template <typename Bin, std::size_t lanes>
class JointBooster final : public Booster {
 public:
  JointBooster(std::shared_ptr<Dataset> dataset, const BoostingTask& task, TrainingWeights weights, TreeGrowth growth,
               std::size_t gradient_lanes, const JointFixedPoint& fixed_point)
      : Booster(std::move(dataset)),
        data_(*dataset_),
        growth_(std::move(growth)),
        alpha_(task.alpha),
        step_size_(task.step_size),
        step_by_edge_(task.step_by_edge),
        first_round_(static_cast<std::uint64_t>(task.first_round)),
        classes_(data_.class_start.size() - 1),
        gradient_lanes_(gradient_lanes),
        emphasis_(task.alpha),
        weights_(std::move(weights)),
        unit_(fixed_point.unit),
        varying_columns_(data_.varying_columns()),
        validation_rows_(task.validation_weight, data_.order, task.posterior_floor),
        histograms_(data_, fixed_point.is_narrow ? data_.rows : fixed_point.rows_within_32_bits),
        rows_(data_.rows),
        stride_(is_sketched() ? (classes_ + kStrideStep - 1) / kStrideStep * kStrideStep : lanes),
        gradients_(is_sketched() ? data_.rows * stride_ : 0),
        scores_(count_blocks() * kBlockRows * classes_),
        label_(count_blocks() * kBlockRows, 0),
        leaf_(count_blocks() * kBlockRows, 0) {
    for (std::size_t k = 0; k < classes_; ++k) {
      for (std::size_t row = data_.class_start[k]; row < data_.class_start[k + 1]; ++row) {
        label_[row] = static_cast<std::uint32_t>(k);
      }
    }
    start_ = task.begins_at_shares ? find_start() : std::vector<double>(classes_, 0.0);
    for (std::size_t block = 0; block < count_blocks(); ++block) {
      for (std::size_t k = 0; k < classes_; ++k) {
        std::fill_n(scores_.data() + (block * classes_ + k) * kBlockRows, kBlockRows, start_[k]);
      }
    }
  }

  void boost(int rounds, int patience, int threads, const std::function<bool()>& interrupted) override {
    const bool threads_pay_off = data_.rows * (data_.features + classes_) >= kCellsForThreads;
    ThreadPool pool(threads_pay_off ? threads : 1);  // No thread is left behind between calls.
    if (data_.has_rows()) histograms_.prepare(pool.size());
    while (workspaces_.size() < static_cast<std::size_t>(pool.size())) workspaces_.emplace_back(classes_);
    if (rows_.list.all.size() == 0 && !weigh_unless(interrupted, pool)) return;
    for (int round = 0; round < rounds && rows_.list.all.size() > 0 && !is_stale(patience); ++round) {
      if (interrupted()) break;  // A tree of one leaf is grown without asking.
      const auto columns = draw_columns(growth_, varying_columns_, key());
      JointTreeGrower<Bin, lanes> grower(data_, growth_, unit_, gradient_lanes_, key(), columns, rows_, histograms_,
                                         column_space_, pool);
      auto tree = grower.grow(interrupted);
      if (!tree) break;
      add(std::move(*tree), pool);
      if (!validation_rows_.empty()) add_validation_loss(pool);
      if (!weigh_unless(interrupted, pool)) break;
    }
  }

  std::size_t outputs() const override { return classes_; }

  std::vector<double> scores() const override {
    std::vector<double> scores(data_.rows * classes_);
    for (std::size_t i = 0; i < data_.rows; ++i) {
      for (std::size_t k = 0; k < classes_; ++k) scores[data_.order[i] * classes_ + k] = score(i, k);
    }
    return scores;
  }

 private:
  // These rows are weighed together. They are whole blocks, but for the last.
  struct WeighedPiece : Piece {
    std::size_t count;  // So many rows have a mass. The scratch list has them at the start of the piece.
    std::size_t to;     // They go to this place in the list of entries.
    LaneSums<lanes> sums;
    Sum sample_weight;  // The rows that were drawn have this sample weight.
  };

  // A thread computes the gradients of a block here, as [class][row] and [lane][row].
  struct Workspace {
    explicit Workspace(std::size_t classes)
        : shares(classes * kBlockRows), gradients(classes * kBlockRows), scores(classes * kBlockRows) {}

    AlignedVector<float> shares;
    AlignedVector<Lane> gradients;
    AlignedVector<double> scores;
    std::array<Lane, lanes * kBlockRows> lanes_of_rows;
  };

  // The leaves of the newest tree have these sums, as [leaf][class].
  struct LeafTotals {
    LeafTotals(std::size_t leaves, std::size_t stride, std::size_t classes)
        : sizes(leaves * stride, 0), own(leaves * classes, 0) {}

    std::vector<std::int64_t> sizes;  // They are the sizes of the gradients of all rows.
    std::vector<std::int64_t> own;    // They are the gradients of the rows of the class itself, which are positive.
  };

  // The gradient of class k goes to this lane, with this sign.
  struct Share {
    std::size_t lane;
    Lane sign;
  };

  // With fewer cells than this a round is over before another thread has woken up.
  static constexpr std::size_t kCellsForThreads = 30000;

  // The sample weights of drawn rows are summed up as whole multiples of 2^-30, which keeps shares of a row exact.
  static constexpr Sum kWholeRow = Sum{1} << 30;

  // Gradients of so many classes are added by one instruction.
  static constexpr std::size_t kStrideStep = 8;

  // A class without rows counts as half a row, so that its logarithm is finite.
  static constexpr double kLeastRows = 0.5;

  // Smaller posteriors of a row's own label count as this: below it numbers are not normal, and no gradient changes.
  static constexpr float kLeastPosterior = 1e-37f;

  // This number keeps the draw of lanes apart from those of rows and columns, which have the same key.
  static constexpr std::uint64_t kLaneSalt = 0x2545F4914F6CDD1DULL;

  bool is_sketched() const { return classes_ > gradient_lanes_; }
  bool counts_rows() const { return growth_.min_samples_leaf > 0.0; }
  std::size_t count_blocks() const { return (data_.rows + kBlockRows - 1) / kBlockRows; }
  std::uint64_t key() const { return key_of_round(growth_, first_round_ + trees_.size()); }

  double score(std::size_t row, std::size_t k) const {
    return scores_[(row / kBlockRows * classes_ + k) * kBlockRows + row % kBlockRows];
  }

  // Returns the gradient of a row, which has stride_ numbers.
  const Lane* gradient(std::size_t row) const {
    return (is_sketched() ? gradients_.data() : rows_.of_rows.data()) + row * stride_;
  }

  // Returns alpha * ln(share of each class) by the weights that train. Sums are whole numbers, whatever their order.
  std::vector<double> find_start() const {
    std::vector<double> start(classes_);
    for (std::size_t k = 0; k < classes_; ++k) {
      Sum whole = 0;
      for (std::size_t row = data_.class_start[k]; row < data_.class_start[k + 1]; ++row) {
        const double weight = weights_.weight.empty() ? 1.0 : static_cast<double>(weights_.weight[row]);
        whole += static_cast<Sum>(std::llround(weight * static_cast<double>(kWholeRow)));
      }
      const double rows = static_cast<double>(whole) / static_cast<double>(kWholeRow);
      start[k] = alpha_ * std::log(std::max(rows, kLeastRows) / weights_.total);
    }
    return start;
  }

  // ---- trees ----

  // Keeps a tree, gives its leaves their values, and adds these to the scores of all rows.
  void add(Tree tree, ThreadPool& pool) {
    std::vector<std::uint32_t> leaf_of_place(tree.size(), 0);
    std::vector<std::size_t> place_of_leaf;
    for (std::size_t i = 0; i < tree.size(); ++i) {
      if (!tree[i].is_leaf()) continue;
      leaf_of_place[i] = static_cast<std::uint32_t>(place_of_leaf.size());
      place_of_leaf.push_back(i);
    }
    const std::size_t leaves = place_of_leaf.size();
    const LeafTotals totals = sum_up_leaves(tree, leaf_of_place, leaves, pool);
    std::vector<double> value(leaves * classes_);
    const double total_weight = rows_.list.sample_weight * unit_;
    double edge = 0.0;
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      for (std::size_t k = 0; k < classes_; ++k) {
        const std::int64_t size = totals.sizes[leaf * stride_ + k];
        const std::int64_t sum = 2 * totals.own[leaf * classes_ + k] - size;
        const double weight = static_cast<double>(size) + growth_.l2 * unit_;
        const double one = weight > 0.0 ? static_cast<double>(sum) / weight : 0.0;
        value[leaf * classes_ + k] = one;
        edge += static_cast<double>(sum) * one;
      }
    }
    edge /= total_weight;
    const double leverage = step_by_edge_ ? step_size_ * edge : step_size_;
    const bool is_first = trees_.empty();
    for (std::size_t i = 0; i < value.size(); ++i) {
      value[i] = (is_first ? start_[i % classes_] : 0.0) + leverage * value[i];
    }
    add_to_scores(value, leaves, is_first, pool);
    std::vector<double> values(tree.size() * classes_, 0.0);
    for (std::size_t leaf = 0; leaf < leaves; ++leaf) {
      std::copy_n(value.data() + leaf * classes_, classes_, values.data() + place_of_leaf[leaf] * classes_);
    }
    trees_.push_back({std::move(tree), edge, leverage, std::move(values)});
  }

  // Finds the leaf of every row, and the sums of every leaf.
  LeafTotals sum_up_leaves(const Tree& tree, const std::vector<std::uint32_t>& leaf_of_place, std::size_t leaves,
                           ThreadPool& pool) {
    const LeafFinder finder(tree, data_);
    std::vector<LeafTotals> totals(static_cast<std::size_t>(pool.size()), LeafTotals(leaves, stride_, classes_));
    pool.chunks(data_.rows, choose_piece_rows(data_.rows, pool), [&](int thread, std::size_t begin, std::size_t end) {
      LeafTotals& sum = totals[static_cast<std::size_t>(thread)];
      for (std::size_t first = begin; first < end; first += kSlottedRows) {
        const std::size_t count = std::min(kSlottedRows, end - first);
        finder.find_places(first, count, leaf_.data() + first);
        for (std::size_t i = first; i < first + count; ++i) leaf_[i] = leaf_of_place[leaf_[i]];
        add_sizes(gradient(first), stride_, leaf_.data() + first, count, sum.sizes.data());
        for (std::size_t i = first; i < first + count; ++i) {
          sum.own[leaf_[i] * classes_ + label_[i]] += gradient(i)[label_[i]];
        }
      }
    });
    LeafTotals& all = totals[0];
    for (std::size_t thread = 1; thread < totals.size(); ++thread) {
      for (std::size_t i = 0; i < all.sizes.size(); ++i) all.sizes[i] += totals[thread].sizes[i];
      for (std::size_t i = 0; i < all.own.size(); ++i) all.own[i] += totals[thread].own[i];
    }
    return std::move(all);
  }

  // Adds the values of leaves, as [leaf][class], to the scores. Those of the first tree take the place of the start,
  // which is a part of them.
  void add_to_scores(const std::vector<double>& value, std::size_t leaves, bool is_first, ThreadPool& pool) {
    std::vector<double> by_class(value.size());
    for (std::size_t i = 0; i < value.size(); ++i) by_class[i % classes_ * leaves + i / classes_] = value[i];
    pool.chunks(count_blocks(), choose_piece_rows(data_.rows, pool) / kBlockRows,
                [&](int, std::size_t begin, std::size_t end) {
                  for (std::size_t block = begin; block < end; ++block) {
                    const std::uint32_t* leaf = leaf_.data() + block * kBlockRows;
                    for (std::size_t k = 0; k < classes_; ++k) {
                      double* score = scores_.data() + (block * classes_ + k) * kBlockRows;
                      const double* of_leaves = by_class.data() + k * leaves;
                      if (is_first) std::fill_n(score, kBlockRows, 0.0);
                      for (std::size_t i = 0; i < kBlockRows; ++i) score[i] += of_leaves[leaf[i]];
                    }
                  }
                });
  }

  // ---- gradients ----

  // Weighs the rows; returns false, and lists none, if `interrupted` says so. Whoever goes on weighs them again. Of
  // many rows and classes this takes seconds.
  bool weigh_unless(const std::function<bool()>& interrupted, ThreadPool& pool) {
    try {
      const ThreadPool::Listening listening(pool, interrupted);
      weigh(pool);
      return true;
    } catch (const Interrupted&) {
      rows_.list.all = NodeRows{};
      return false;
    }
  }

  // Finds the gradients of all rows at their scores, and lists those that have one.
  void weigh(ThreadPool& pool) {
    if (growth_.subsample >= 1.0) return list_rows(nullptr, pool);
    const RowDraw draw(growth_, dataset_->hashes(), key());
    list_rows(&draw, pool);
    if (rows_.list.all.size() == 0) list_rows(nullptr, pool);  // A draw that leaves nothing is not made.
  }

  void list_rows(const RowDraw* draw, ThreadPool& pool) {
    const std::vector<Share> lane_of_class = draw_lanes();
    std::vector<WeighedPiece> pieces;
    constexpr std::size_t kOwner = 0;  // The root of the next tree owns all rows.
    static_assert(kPieceStep % kBlockRows == 0, "pieces must be whole blocks");
    cut(pieces, kOwner, 0, 0, data_.rows, choose_piece_rows(data_.rows, pool));
    for_each_piece(pool, pieces, [&](int thread, WeighedPiece& piece) {
      Workspace& space = workspaces_[static_cast<std::size_t>(thread)];
      for (std::size_t first = piece.first; first < piece.last; first += kBlockRows) {
        weigh_block(first, std::min(kBlockRows, piece.last - first), draw, lane_of_class, space, piece);
      }
    });
    place_weighed_pieces(pieces, draw != nullptr);
    if (rows_.list.all.size() == data_.rows) return rows_.list.entries.swap(rows_.list.scratch);
    for_each_piece(pool, pieces, [&](int, const WeighedPiece& piece) {
      std::copy_n(rows_.list.scratch.data() + piece.first, piece.count, rows_.list.entries.data() + piece.to);
    });
  }

  // Deals the classes to the lanes of the gradient, in an order and with signs that are drawn for the round.
  std::vector<Share> draw_lanes() const {
    std::vector<Share> lane_of_class(classes_);
    const std::uint64_t lane_key = mix(key() ^ kLaneSalt);
    std::vector<std::pair<std::uint64_t, std::size_t>> hashed;
    for (std::size_t k = 0; k < classes_; ++k) hashed.emplace_back(mix(lane_key ^ mix(k)), k);
    std::sort(hashed.begin(), hashed.end());
    for (std::size_t i = 0; i < classes_; ++i) {
      lane_of_class[hashed[i].second] = {i % gradient_lanes_, hashed[i].first & 1U ? 1 : -1};
    }
    return lane_of_class;
  }

  // Writes the gradients of a block of rows, packs the rows that have a mass into the scratch list, and adds them to
  // the sums of the piece.
  void weigh_block(std::size_t first, std::size_t count, const RowDraw* draw, const std::vector<Share>& lane_of_class,
                   Workspace& space, WeighedPiece& piece) {
    const std::uint32_t* label = label_.data() + first;
    const float* sample_weight = weights_.from(first);
    OfRows<float> sum, posterior, scale;
    exponentiate(scores_.data() + first * classes_, classes_, 1.0, space.shares.data(), sum.data());
    for (std::size_t i = 0; i < kBlockRows; ++i) {
      posterior[i] = std::max(space.shares[label[i] * kBlockRows + i] / sum[i], kLeastPosterior);
    }
    emphasise(emphasis_, posterior.data(), scale.data());
    for (std::size_t i = 0; i < kBlockRows; ++i) {
      const bool takes_part = i < count && (draw == nullptr || draw->has(first + i));
      const float weight = !takes_part ? 0.0f : sample_weight == nullptr ? 1.0f : sample_weight[i];
      piece.sample_weight += static_cast<Sum>(weight * static_cast<float>(kWholeRow));
      const float rounded_weight = weights_.are_copies && weight > 0.0f ? 1.0f : weight;
      scale[i] *= static_cast<float>(unit_) * rounded_weight / sum[i];
    }
    OfRows<Lane> mass;
    Lane* gradients = space.gradients.data();
    round_shares(space.shares.data(), scale.data(), classes_, gradients, mass.data());
    for (std::size_t i = 0; i < kBlockRows; ++i) mass[i] -= gradients[label[i] * kBlockRows + i];
    for (std::size_t i = 0; i < kBlockRows * classes_; ++i) gradients[i] = -gradients[i];
    for (std::size_t i = 0; i < kBlockRows; ++i) gradients[label[i] * kBlockRows + i] = mass[i];
    if (weights_.are_copies) multiply_copies(sample_weight, count, gradients, mass.data());
    write_rows(first, count, lane_of_class, space, mass.data());
    pack_rows(first, count, mass.data(), piece);
  }

  // A row that counts as copies has so many times the gradient of one.
  void multiply_copies(const float* copies, std::size_t count, Lane* gradients, Lane* mass) const {
    for (std::size_t i = 0; i < count; ++i) {
      const Lane factor = static_cast<Lane>(copies[i]);
      mass[i] *= factor;
      for (std::size_t k = 0; k < classes_; ++k) gradients[k * kBlockRows + i] *= factor;
    }
  }

  // Writes the gradients and the lanes of a block, row by row.
  void write_rows(std::size_t first, std::size_t count, const std::vector<Share>& lane_of_class, Workspace& space,
                  const Lane* mass) {
    const Lane* gradients = space.gradients.data();
    Lane* out = (is_sketched() ? gradients_.data() : rows_.of_rows.data()) + first * stride_;
    for (std::size_t i = 0; i < count; ++i) {
      for (std::size_t k = 0; k < classes_; ++k) out[i * stride_ + k] = gradients[k * kBlockRows + i];
    }
    Lane* of_rows = rows_.of_rows.data() + first * lanes;
    if (is_sketched()) {
      Lane* sketch = space.lanes_of_rows.data();
      std::fill_n(sketch, gradient_lanes_ * kBlockRows, 0);
      for (std::size_t k = 0; k < classes_; ++k) {
        Lane* lane = sketch + lane_of_class[k].lane * kBlockRows;
        const Lane* of_class = gradients + k * kBlockRows;
        for (std::size_t i = 0; i < kBlockRows; ++i) lane[i] += lane_of_class[k].sign * of_class[i];
      }
      for (std::size_t i = 0; i < count; ++i) {
        for (std::size_t k = 0; k < gradient_lanes_; ++k) of_rows[i * lanes + k] = sketch[k * kBlockRows + i];
      }
    }
    for (std::size_t i = 0; i < count; ++i) of_rows[i * lanes + lanes - 1] = mass[i];
    if (!counts_rows()) return;
    const float* sample_weight = weights_.from(first);
    for (std::size_t i = 0; i < count; ++i) {
      const double weight = sample_weight == nullptr ? 1.0 : static_cast<double>(sample_weight[i]);
      of_rows[i * lanes + lanes - 2] = mass[i] > 0 ? static_cast<Lane>(weight * unit_ + 0.5) : 0;
    }
  }

  void pack_rows(std::size_t first, std::size_t count, const Lane* mass, WeighedPiece& piece) {
    Entry* kept = rows_.list.scratch.data() + piece.first + piece.count;
    for (std::size_t i = 0; i < count; ++i) {
      *kept = {static_cast<Row>(first + i), static_cast<std::uint32_t>(mass[i])};
      kept += mass[i] > 0;
      piece.sums.add(rows_.of_rows.data() + (first + i) * lanes);
    }
    piece.count = static_cast<std::size_t>(kept - rows_.list.scratch.data()) - piece.first;
  }

  // Finds the places of all pieces in the list of entries, and the sums of all rows.
  void place_weighed_pieces(std::vector<WeighedPiece>& pieces, bool drawn) {
    std::size_t count = 0;
    Sum sample_weight = 0;
    rows_.sums = LaneSums<lanes>{};
    for (WeighedPiece& piece : pieces) {
      piece.to = count;
      count += piece.count;
      sample_weight += piece.sample_weight;
      rows_.sums.add(piece.sums.sum.data());
    }
    rows_.list.all = NodeRows{};
    rows_.list.all.last[0] = count;
    rows_.list.sample_weight =
        drawn ? static_cast<double>(sample_weight) / static_cast<double>(kWholeRow) : weights_.total;
  }

  // ---- validation rows ----

  void add_validation_loss(ThreadPool& pool) {
    losses_.push_back(validation_rows_.find_loss(
        [this](const Entry* entries, std::size_t count, Verdict* verdicts) {
          Workspace space(classes_);
          for (std::size_t first = 0; first < count; first += kBlockRows) {
            judge(entries + first, std::min(kBlockRows, count - first), space, verdicts + first);
          }
        },
        pool));
  }

  // Judges a block of rows. Of classes with the same score the first is guessed.
  void judge(const Entry* entries, std::size_t count, Workspace& space, Verdict* verdicts) const {
    OfRows<float> sum;
    for (std::size_t k = 0; k < classes_; ++k) {
      for (std::size_t i = 0; i < count; ++i) space.scores[k * kBlockRows + i] = score(entries[i].row, k);
    }
    exponentiate(space.scores.data(), classes_, 1.0 / alpha_, space.shares.data(), sum.data());
    for (std::size_t i = 0; i < count; ++i) {
      const std::size_t label = label_[entries[i].row];
      std::size_t guess = 0;
      for (std::size_t k = 1; k < classes_; ++k) {
        if (space.scores[k * kBlockRows + i] > space.scores[guess * kBlockRows + i]) guess = k;
      }
      const double share = static_cast<double>(space.shares[label * kBlockRows + i]);
      verdicts[i] = {share / static_cast<double>(sum[i]), guess == label};
    }
  }

  Dataset& data_;
  const TreeGrowth growth_;
  const double alpha_, step_size_;
  const bool step_by_edge_;
  const std::uint64_t first_round_;
  const std::size_t classes_;
  const std::size_t gradient_lanes_;  // So many of the lanes have the gradient.
  const Emphasis emphasis_;
  const TrainingWeights weights_;
  const double unit_;  // This is the fixed-point weight 1.
  const std::vector<std::uint32_t> varying_columns_;
  const ValidationRows validation_rows_;
  JointHistogramBuilder<Bin, lanes> histograms_;
  ColumnSpace<JointNodes<Bin, lanes>> column_space_;
  JointRows<lanes> rows_;
  const std::size_t stride_;           // The gradients of two rows are so far apart.
  AlignedVector<Lane> gradients_;      // They are here where classes share lanes, else in the lanes.
  AlignedVector<double> scores_;       // They are [block][class][row].
  std::vector<std::uint32_t> label_;   // A row has this class.
  std::vector<std::uint32_t> leaf_;    // A row is in this leaf of the newest tree.
  std::vector<double> start_;          // The rounds begin at these scores.
  std::vector<Workspace> workspaces_;  // Every thread has one.
};

template <std::size_t lanes>
std::unique_ptr<Booster> make_joint_booster(std::shared_ptr<Dataset> dataset, const BoostingTask& task,
                                            TreeGrowth growth) {
  TrainingWeights weights(task.sample_weight, dataset->order);
  const std::size_t classes = dataset->class_start.size() - 1;
  const std::size_t other_lanes = growth.min_samples_leaf > 0.0 ? 2 : 1;
  const std::size_t gradient_lanes = std::min(classes, lanes - other_lanes);
  const JointFixedPoint fixed_point(weights, classes, gradient_lanes, Emphasis(task.alpha).most());
  if (fixed_point.is_narrow) {
    return std::make_unique<JointBooster<std::int32_t, lanes>>(std::move(dataset), task, std::move(weights),
                                                               std::move(growth), gradient_lanes, fixed_point);
  }
  return std::make_unique<JointBooster<std::int64_t, lanes>>(std::move(dataset), task, std::move(weights),
                                                             std::move(growth), gradient_lanes, fixed_point);
}

// Makes a booster of all classes together, with as few lanes as have room for them.
inline std::unique_ptr<Booster> make_joint_booster(std::shared_ptr<Dataset> dataset, const BoostingTask& task,
                                                   TreeGrowth growth) {
  constexpr std::size_t kFew = 4;
  constexpr std::size_t kMany = 8;
  const std::size_t classes = dataset->class_start.size() - 1;
  const std::size_t wanted = classes + (growth.min_samples_leaf > 0.0 ? 2 : 1);
  if (wanted <= kFew) return make_joint_booster<kFew>(std::move(dataset), task, std::move(growth));
  return make_joint_booster<kMany>(std::move(dataset), task, std::move(growth));
}

}  // namespace untwist
