// PILBoost's rounds: weights, a tree, its edge from its own leaf sums, the margins. All of it here, nothing in Python.
//
// Rows are grouped by class, so that one sum per row, feature and bin is enough: G = W_pos - W_neg, W = W_pos + W_neg.
// Rows without a weight (beyond the clip, not drawn, or held out) take no part in growing the tree; it is applied to
// them all the same, so that the margins of held-out rows are at hand after every round.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "dataset.hpp"
#include "histogram.hpp"
#include "labels.hpp"
#include "splitting.hpp"
#include "threads.hpp"
#include "tree.hpp"
#include "weights.hpp"

namespace untwist {

struct Settings {
  double alpha = 2.0;
  bool exact_link = false;
  double step_size = 4.0;
  bool by_edge = true;  // whether the coefficient of a tree is step_size * edge, as in the paper, or step_size itself
  double least = 1e-6;  // as near as posteriors of watched rows come to 0 and 1
  int max_depth = 3;
  int max_leaves = 0;        // 0: no limit, and trees grow level by level; else best split first
  double least_share = 0.0;  // of the round's total weight in a leaf
  // in units of a row of sample weight 1 (l2, smoothing: at boosting weight 1)
  double l2 = 0.0;
  double least_rows = 0.0;
  double smoothing = 0.0;
  double row_share = 1.0;  // of the rows, and of the columns that vary, drawn anew for every tree
  double column_share = 1.0;
  std::uint64_t seed = 0;
  int first_round = 0;                // of a run that goes on where another ended
  std::vector<std::int8_t> monotone;  // per feature -1, 0 or +1; empty for none
};

// Which rows train, by their place in the data that Python gave; every list may be empty.
struct Task {
  std::size_t positive_class = 1;
  std::vector<double> weight;  // at most 1, or whole numbers up to kMostCopies; 0: held out
  std::vector<double> watch;   // weights of the rows to follow the loss on
  std::vector<double> start;   // scores to start from
};

// What Python sees of a run.
class Booster {
 public:
  virtual ~Booster() = default;

  // Runs up to `rounds` rounds on so many threads; fewer if all weights become zero, or if the loss of the watched rows
  // was at its lowest `patience` rounds ago (0: never mind), or if `interrupted`, which is asked now and then, says so:
  // a tree half grown is dropped.
  virtual void boost(int rounds, int patience, int threads, const std::function<bool()>& interrupted) = 0;

  // Scores of all rows, in the order that Python gave them.
  virtual std::vector<double> scores() const = 0;

  mutable std::atomic_flag busy = ATOMIC_FLAG_INIT;

  const Dataset& dataset() const { return *dataset_; }
  const std::vector<Tree>& trees() const { return trees_; }
  const std::vector<double>& edges() const { return edges_; }
  const std::vector<double>& leverages() const { return leverages_; }
  const std::vector<double>& losses() const { return losses_; }  // log-loss of the watched rows after each round,
  const std::vector<double>& errors() const { return errors_; }  // and their share of wrong signs

 protected:
  explicit Booster(std::shared_ptr<Dataset> dataset) : dataset_(std::move(dataset)) {}

  std::shared_ptr<Dataset> dataset_;
  std::vector<Tree> trees_;
  std::vector<double> edges_, leverages_, losses_, errors_;
};

// Sample weights by row of the dataset, and their sum, which does not depend on the order. Where all are whole numbers
// they count copies: a row then has so many times the fixed-point weight of one copy, exactly.
struct OwnWeights {
  OwnWeights(const std::vector<double>& weight, const Dataset& data)
      : rows(data.rows), total(static_cast<double>(data.rows)) {
    if (weight.empty()) return;
    Sum whole = 0;
    rows = 0;
    own.resize(data.rows);
    counts = true;
    for (std::size_t i = 0; i < data.rows; ++i) {
      const double given = weight[data.order[i]];
      own[i] = static_cast<float>(given);
      whole += static_cast<Sum>(std::llround(std::ldexp(given, 32)));
      rows += given > 0.0;
      counts = counts && given == std::floor(given);
      largest = std::max(largest, given);
    }
    total = std::ldexp(static_cast<double>(whole), -32);
  }

  static constexpr double kMostCopies = 128.0;

  // How many weights are rounded: those of all copies.
  std::size_t roundings() const { return counts ? static_cast<std::size_t>(total) : rows; }

  std::size_t rows;
  double total;
  double largest = 1.0;
  bool counts = false;
  std::vector<float> own;  // empty for all ones
};

// The run, with histograms of 32-bit sums where all weights together fit into one, else of 64-bit sums.
template <typename Bin>
class Rounds final : public Booster {
 public:
  Rounds(std::shared_ptr<Dataset> dataset, const Task& task, OwnWeights own, Settings settings)
      : Booster(std::move(dataset)),
        data_(*dataset_),
        settings_(std::move(settings)),
        positive_first_(data_.class_start[task.positive_class]),
        positive_last_(data_.class_start[task.positive_class + 1]),
        clipped_(settings_.alpha),
        own_(std::move(own)),
        unit_(std::ldexp(1.0, weight_bits(own_.total, own_.roundings()))),
        flush_rows_(kFlushRows / static_cast<std::size_t>(std::ceil(own_.largest))),
        piece_(std::min(kPiece, flush_rows_)),
        rules_{settings_.l2 * unit_, 0.0, settings_.least_rows * kOneRow * kRounding, settings_.smoothing * unit_},
        features_(data_.features),
        varying_(data_.varying()),
        playing_(varying_),
        margins_(data_.rows, 0.0),
        active_(data_.rows),
        scratch_(data_.rows) {
    if (counting()) {
      for (const float own_weight : own_.own)
        rows_of_.push_back(static_cast<std::uint32_t>(own_weight * kOneRow + 0.5f));
    }
    for (std::size_t i = 0; i < data_.rows && !task.start.empty(); ++i)
      margins_[i] = signed_by_label(i, task.start[data_.order[i]]);
    if (!task.watch.empty()) {
      const int scale = scale_of(largest_of(task.watch.data(), task.watch.size()));
      for (std::size_t i = 0; i < data_.rows; ++i) {
        const double share = std::ldexp(task.watch[data_.order[i]], -scale);
        if (share > 0.0)
          watched_.push_back({static_cast<Row>(i), static_cast<std::uint32_t>(std::llround(share * kOneRow))});
      }
    }
  }

  void boost(int rounds, int patience, int threads, const std::function<bool()>& interrupted) override {
    ThreadPool pool(data_.rows * features_ < kThreadsPayOff ? 1 : threads);  // none is left behind between calls
    pool_ = &pool;
    const std::size_t size = features_ * kBins;
    while (workers_.size() < static_cast<std::size_t>(pool.size())) {
      workers_.push_back(
          {std::vector<std::uint32_t>(counting() ? 0 : size), std::vector<std::uint64_t>(counting() ? size : 0)});
    }
    if (root_.rows() == 0) weigh(nullptr);
    for (int round = 0; round < rounds && root_.rows() > 0 && !stale(patience); ++round) {
      draw_columns();
      if (!grow(interrupted)) break;
      weigh(&trees_.back());
      if (!watched_.empty()) watch();
    }
  }

  std::vector<double> scores() const override {
    std::vector<double> scores(data_.rows);
    for (std::size_t i = 0; i < data_.rows; ++i) scores[data_.order[i]] = signed_by_label(i, margins_[i]);
    return scores;
  }

 private:
  using Histogram = std::vector<Bin>;  // [class][feature][bin], of weights and then, if they are counted, of rows

  struct Growing {  // a node with its rows: those of each class in a range of active_
    std::int32_t node = 0;
    int depth = 0;
    std::array<std::size_t, 2> first{}, last{};
    Weights weight{};
    Bounds bounds;
    std::unique_ptr<Histogram> histogram;
    bool has_parents = false;  // the histogram is the parent's: the sibling's must be taken away
    Split split;

    std::size_t rows() const { return last[0] - first[0] + last[1] - first[1]; }
  };

  struct Piece {  // some rows of one class of one node: what a thread takes at a time
    std::size_t owner;
    int side;
    std::size_t first, last;
    std::size_t count =
        0;               // of rows kept (weigh) or sent left (partition), packed at the start of the piece in scratch_
    std::size_t to = 0;  // where in active_ these go, and the others
    std::size_t to_other = 0;
    Sum weight = 0;
    Sum rows = 0;  // sample weight of the rows drawn
  };

  struct Worker {  // a thread's sums, and what they are of
    std::vector<std::uint32_t> sums;
    std::vector<std::uint64_t> wide_sums;  // with rows, if these are counted
    std::size_t owner = 0, side = 0, rows = 0;
  };

  static constexpr std::size_t kThreadsPayOff = 50000;  // rows * features
  static constexpr std::size_t kFlushRows = 16384;      // of weights up to 2^17 fit into a 32-bit sum
  static constexpr std::size_t kPiece = 2048;
  static constexpr std::size_t kFewRows = 512;
  static constexpr std::size_t kLevel =
      64;  // nodes split together, so that a deep tree does not keep too many histograms
  static constexpr float kOneRow = 131072.0f;         // a row of sample weight 1 in fixed point,
  static constexpr double kRounding = 1.0 - 0x1p-12;  // and what the rounding of many rows may cost

  bool counting() const { return settings_.least_rows > 0.0; }

  double signed_by_label(std::size_t row, double value) const {
    return row >= positive_first_ && row < positive_last_ ? value : -value;
  }

  bool stale(int patience) const {
    if (patience <= 0 || losses_.empty()) return false;
    const auto lowest = std::min_element(losses_.begin(), losses_.end());
    return losses_.end() - lowest > patience;
  }

  static void cut(std::vector<Piece>& pieces, std::size_t owner, int side, std::size_t first, std::size_t last,
                  std::size_t size) {
    for (; first < last; first += size) pieces.push_back({owner, side, first, std::min(last, first + size)});
  }

  // Calls job(thread, piece) for all pieces, then last_words(thread); a few rows are not worth waking anyone.
  template <typename Job, typename LastWords>
  void each(std::vector<Piece>& pieces, const Job& job, const LastWords& last_words) {
    std::size_t rows = 0;
    for (const Piece& piece : pieces) rows += piece.last - piece.first;
    const auto work = [&](int thread, std::size_t first, std::size_t last) {
      for (std::size_t i = first; i < last; ++i) job(thread, pieces[i]);
    };
    pool_->chunks(pieces.size(), rows < kFewRows ? pieces.size() : 1, work, last_words);
  }

  template <typename Job>
  void each(std::vector<Piece>& pieces, const Job& job) {
    each(pieces, job, [](int) {});
  }

  // ---- weights: fixed point, and the list of rows that have one ----

  std::uint64_t key_of_round() const {
    const std::uint64_t round = static_cast<std::uint64_t>(settings_.first_round) + trees_.size();
    return mixed(settings_.seed ^ mixed(round));
  }

  // Applies the tree of the round, if there is one, and weighs the rows for the next: root_ has those with a weight.
  void weigh(const Tree* tree) {
    if (tree != nullptr) {
      const LeafFinder leaves(*tree, data_);
      weigh(&leaves, settings_.row_share < 1.0);
    } else {
      weigh(nullptr, settings_.row_share < 1.0);
    }
    if (root_.rows() == 0 && settings_.row_share < 1.0)
      weigh(nullptr, false);  // a draw that leaves nothing is not made
  }

  void weigh(const LeafFinder* leaves, bool draw) {
    pieces_.clear();
    cut(pieces_, 0, 0, 0, positive_first_, kPiece);
    cut(pieces_, 0, 0, positive_last_, data_.rows, kPiece);
    cut(pieces_, 0, 1, positive_first_, positive_last_, kPiece);
    const std::uint64_t* hash = draw ? dataset_->hashes().data() : nullptr;
    const std::uint64_t key = key_of_round();
    const std::uint64_t limit = draw ? static_cast<std::uint64_t>(std::ldexp(settings_.row_share, 64)) : 0;
    each(pieces_, [&](int, Piece& piece) {
      if (leaves != nullptr) apply(*leaves, piece);
      const float* all_own = own_.own.empty() ? nullptr : own_.own.data() + piece.first;
      const float* own = own_.counts ? nullptr : all_own;
      const std::size_t length = piece.last - piece.first;
      std::array<std::uint32_t, kPiece> weights;
      std::uint32_t* weight = weights.data();
      if (settings_.exact_link) {
        exact_weights(settings_.alpha, static_cast<float>(unit_), margins_.data() + piece.first, own, length, weight);
      } else {
        clipped_weights(clipped_, static_cast<float>(unit_), margins_.data() + piece.first, own, length, weight);
      }
      if (own_.counts) {
        for (std::size_t i = 0; i < length; ++i) weight[i] *= static_cast<std::uint32_t>(all_own[i]);
      }
      for (std::size_t i = 0; i < length && draw; ++i) {
        const bool drawn = mixed(hash[piece.first + i] ^ key) < limit;
        weight[i] = drawn ? weight[i] : 0;
        piece.rows +=
            drawn ? all_own == nullptr ? kWholeRow : static_cast<Sum>(all_own[i] * static_cast<float>(kWholeRow)) : 0;
      }
      Entry* kept = scratch_.data() + piece.first;
      Sum sum = 0;
      for (std::size_t i = 0; i < length; ++i) {
        *kept = {static_cast<Row>(piece.first + i), weight[i]};
        kept += weight[i] > 0;
        sum += weight[i];
      }
      piece.count = static_cast<std::size_t>(kept - scratch_.data()) - piece.first;
      piece.weight = sum;
    });
    std::size_t count = 0;
    Sum rows = 0;
    root_ = Growing{};
    for (Piece& piece : pieces_) {
      const std::size_t side = static_cast<std::size_t>(piece.side);
      piece.to = count;
      count += piece.count;
      rows += piece.rows;
      root_.weight[side] += piece.weight;
      root_.last[side] = count;
    }
    root_.first[1] = root_.last[0];
    root_.last[1] = count;
    total_rows_ = draw ? static_cast<double>(rows) / static_cast<double>(kWholeRow) : own_.total;
    if (count == data_.rows && positive_last_ == data_.rows) return active_.swap(scratch_);  // all in place already
    each(pieces_, [&](int, Piece& piece) {
      std::copy_n(scratch_.begin() + static_cast<std::ptrdiff_t>(piece.first), piece.count,
                  active_.begin() + static_cast<std::ptrdiff_t>(piece.to));
    });
  }

  void apply(const LeafFinder& leaves, const Piece& piece) {
    const double sign = piece.side == 1 ? 1.0 : -1.0;
    std::array<double, kLabelled> value;
    for (std::size_t first = piece.first; first < piece.last; first += kLabelled) {
      const std::size_t count = std::min(kLabelled, piece.last - first);
      leaves.values(first, count, value.data());
      for (std::size_t i = 0; i < count; ++i) margins_[first + i] += sign * value[i];
    }
  }

  static constexpr Sum kWholeRow = Sum{1} << 30;

  // The columns of this round: those that vary, with the smallest hashes of their place among these.
  void draw_columns() {
    if (settings_.column_share >= 1.0 || varying_.size() < 2) return;
    const std::uint64_t key = mixed(key_of_round() ^ 0x5851F42D4C957F2DULL);
    std::vector<std::pair<std::uint64_t, std::uint32_t>> drawn;
    for (std::size_t i = 0; i < varying_.size(); ++i) drawn.emplace_back(mixed(key ^ mixed(i)), varying_[i]);
    std::sort(drawn.begin(), drawn.end());
    const double wanted = std::ceil(settings_.column_share * static_cast<double>(varying_.size()));
    drawn.resize(std::max<std::size_t>(1, static_cast<std::size_t>(wanted)));
    playing_.clear();
    for (const auto& one : drawn) playing_.push_back(one.second);
    std::sort(playing_.begin(), playing_.end());
  }

  // ---- a tree ----

  // False if interrupted: then there is no tree, and root_ is to be made again.
  bool grow(const std::function<bool()>& interrupted) {
    auto asked = std::chrono::steady_clock::now();
    trees_.emplace_back(1);
    Tree& tree = trees_.back();
    rules_.least_weight = settings_.least_share * total(root_.weight);
    settle(tree[0], root_.weight, root_.bounds);
    std::vector<Growing> open;  // nodes that have a split
    std::vector<Growing> fresh_nodes;
    fresh_nodes.push_back(std::move(root_));
    if (can_split(fresh_nodes[0])) build(fresh_nodes, {0});
    int leaves = 1;
    for (;;) {
      search(fresh_nodes, open);
      if (open.empty()) break;
      std::vector<Growing> splitting;
      for (Growing& node : next(open, leaves)) {
        const bool last = node.depth + 1 == settings_.max_depth || leaves == settings_.max_leaves;
        divide(tree, node);
        if (last) {
          recycle(std::move(node.histogram));
        } else {
          splitting.push_back(std::move(node));
        }
      }
      if (leaves == settings_.max_leaves) {
        for (Growing& node : open) recycle(std::move(node.histogram));
        break;
      }
      fresh_nodes = partition(tree, splitting);
      const auto now = std::chrono::steady_clock::now();
      if (now - asked < std::chrono::milliseconds(50)) continue;
      if (interrupted()) {
        trees_.pop_back();
        return false;
      }
      asked = now;
    }
    double edge = 0.0;
    for (const Node& node : tree) {
      if (node.feature < 0) edge += node.gain;  // a leaf keeps G * value there until the edge is known
    }
    edge /= total_weight();
    edges_.push_back(edge);
    leverages_.push_back(settings_.by_edge ? settings_.step_size * edge : settings_.step_size);
    for (Node& node : tree) {
      if (node.feature >= 0) continue;
      node.gain = 0.0;
      node.value *= leverages_.back();
    }
    return true;
  }

  double total_weight() const { return total_rows_ * unit_; }

  void settle(Node& leaf, const Weights& weight, const Bounds& bounds) const {
    leaf.value = leaf_value(weight, rules_.l2, bounds);
    leaf.gain = difference(weight) * leaf.value;
  }

  // A node of one class, or too light for two leaves, need not be looked at.
  bool can_split(const Growing& node) const {
    return node.weight[0] > 0 && node.weight[1] > 0 && total(node.weight) >= 2.0 * rules_.least_weight;
  }

  // The open nodes to split now, taken from the list; counts the leaves.
  std::vector<Growing> next(std::vector<Growing>& open, int& leaves) const {
    std::vector<Growing> chosen;
    if (settings_.max_leaves > 0) {
      std::size_t best = 0;
      for (std::size_t i = 1; i < open.size(); ++i) {
        const double gain = open[i].split.gain;
        const double lead = open[best].split.gain;
        if (gain > lead || (gain == lead && open[i].node < open[best].node)) best = i;
      }
      std::swap(open[best], open.back());
      chosen.push_back(std::move(open.back()));
      open.pop_back();
    } else {
      const std::size_t from = open.size() - std::min(open.size(), kLevel);
      std::move(open.begin() + static_cast<std::ptrdiff_t>(from), open.end(), std::back_inserter(chosen));
      open.resize(from);
    }
    leaves += static_cast<int>(chosen.size());
    return chosen;
  }

  // Makes two leaves of a leaf.
  void divide(Tree& tree, const Growing& node) const {
    const Split& split = node.split;
    const std::size_t left = tree.size();
    tree.resize(left + 2);
    Node& parent = tree[static_cast<std::size_t>(node.node)];
    parent.feature = split.feature;
    parent.code = split.code;
    parent.missing_left = split.missing_left;
    parent.goes_left = split.goes_left;
    parent.gain = split.gain / total_weight();
    parent.left = static_cast<std::int32_t>(left);
    const auto bounds = child_bounds(node);
    settle(tree[left], split.left, bounds[0]);
    settle(tree[left + 1], node.weight - split.left, bounds[1]);
  }

  int monotone(std::int32_t feature) const {
    return settings_.monotone.empty() ? 0 : settings_.monotone[static_cast<std::size_t>(feature)];
  }

  // Below a monotone split all values of one side stay on its side of the middle.
  std::array<Bounds, 2> child_bounds(const Growing& node) const {
    std::array<Bounds, 2> bounds{node.bounds, node.bounds};
    const int sign = monotone(node.split.feature);
    if (sign == 0) return bounds;
    const double middle = 0.5 * (leaf_value(node.split.left, rules_.l2, node.bounds) +
                                 leaf_value(node.weight - node.split.left, rules_.l2, node.bounds));
    (sign > 0 ? bounds[0].high : bounds[0].low) = middle;
    (sign > 0 ? bounds[1].low : bounds[1].high) = middle;
    return bounds;
  }

  std::unique_ptr<Histogram> fresh() {
    if (spare_.empty()) return std::make_unique<Histogram>((counting() ? 4 : 2) * features_ * kBins);
    auto histogram = std::move(spare_.back());
    spare_.pop_back();
    return histogram;
  }

  void recycle(std::unique_ptr<Histogram> histogram) {
    if (histogram != nullptr) spare_.push_back(std::move(histogram));
  }

  // Histograms of some of the nodes from their rows.
  void build(std::vector<Growing>& nodes, const std::vector<std::size_t>& chosen) {
    pieces_.clear();
    for (const std::size_t i : chosen) {
      nodes[i].histogram = fresh();
      std::fill(nodes[i].histogram->begin(), nodes[i].histogram->end(), Bin{0});
      for (std::size_t side = 0; side < 2; ++side) {
        cut(pieces_, i, static_cast<int>(side), nodes[i].first[side], nodes[i].last[side], piece_);
      }
    }
    if (counting()) {
      const std::uint32_t* own = rows_of_.empty() ? nullptr : rows_of_.data();
      sum_up(nodes, WeightAndRows{own, static_cast<std::uint32_t>(kOneRow)});
    } else {
      sum_up(nodes, WeightOnly{});
    }
  }

  // Every thread keeps sums of one class of one node as long as it gets pieces of it and they cannot overflow.
  template <typename Summand>
  void sum_up(std::vector<Growing>& nodes, const Summand& summand) {
    const auto deliver = [&](int thread) {
      Worker& worker = workers_[static_cast<std::size_t>(thread)];
      if (worker.rows > 0) flush(*nodes[worker.owner].histogram, worker.side, sums<Summand>(thread));
      worker.rows = 0;
    };
    each(
        pieces_,
        [&](int thread, Piece& piece) {
          Worker& worker = workers_[static_cast<std::size_t>(thread)];
          const std::size_t rows = piece.last - piece.first;
          const bool other = worker.owner != piece.owner || worker.side != static_cast<std::size_t>(piece.side);
          if (other || worker.rows + rows > flush_rows_) deliver(thread);
          worker.owner = piece.owner;
          worker.side = static_cast<std::size_t>(piece.side);
          worker.rows += rows;
          add_rows(data_.by_row.data(), features_, active_.data() + piece.first, rows, summand, sums<Summand>(thread));
        },
        deliver);
  }

  template <typename Summand>
  typename Summand::Cell* sums(int thread) {
    Worker& worker = workers_[static_cast<std::size_t>(thread)];
    if constexpr (sizeof(typename Summand::Cell) == 8) {
      return worker.wide_sums.data();
    } else {
      return worker.sums.data();
    }
  }

  // Adds a thread's sums to a histogram and clears them.
  template <typename Cell>
  void flush(Histogram& histogram, std::size_t side, Cell* sums) {
    const std::lock_guard<std::mutex> guard(flush_);
    Bin* weights = histogram.data() + side * features_ * kBins;
    for (std::size_t feature = 0; feature < features_; ++feature) {
      const std::size_t start = feature * kBins;
      const std::size_t end = start + static_cast<std::size_t>(data_.columns[feature].bins());
      for (std::size_t i = start; i < end; ++i) weights[i] += static_cast<std::uint32_t>(sums[i]);
      if constexpr (sizeof(Cell) == 8) {
        for (std::size_t i = start; i < end; ++i)
          weights[2 * features_ * kBins + i] += static_cast<std::uint32_t>(sums[i] >> 32);
      }
      std::fill(sums + start, sums + end, Cell{0});
    }
  }

  // The best split of every node, ties going to the smaller feature; nodes without one stay leaves. Of two siblings
  // one has the histogram of their parent until it is looked at: then what its sibling has is taken away.
  void search(std::vector<Growing>& nodes, std::vector<Growing>& open) {
    const std::size_t width = playing_.size();
    const std::size_t pairs = (nodes.size() + 1) / 2;
    candidates_.assign(2 * pairs * width, {});
    const std::size_t tasks = pairs * width;
    pool_->chunks(tasks, tasks < 8 ? tasks : 2, [&](int, std::size_t first, std::size_t last) {
      Candidates work;
      for (std::size_t i = first; i < last; ++i) {
        const std::size_t pair = i / width;
        const std::size_t feature = playing_[i % width];
        for (std::size_t k = 2 * pair; k < std::min(nodes.size(), 2 * pair + 2); ++k) {
          if (nodes[k].has_parents) subtract(*nodes[k].histogram, *nodes[k ^ 1].histogram, feature);
        }
        for (std::size_t k = 2 * pair; k < std::min(nodes.size(), 2 * pair + 2); ++k) {
          if (nodes[k].histogram != nullptr && can_split(nodes[k]))
            candidates_[k * width + i % width] = column_search(nodes[k], feature).best(work);
        }
      }
    });
    Candidates work;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      Growing& node = nodes[i];
      node.has_parents = false;
      const double none = leaf_worth(node.weight, rules_.l2, node.bounds);
      double best = none + 1e-12 * total(node.weight);  // a split must beat none by more than rounding
      std::size_t at = width;
      for (std::size_t k = 0; k < width; ++k) {
        if (candidates_[i * width + k].worth > best) {
          best = candidates_[i * width + k].worth;
          at = k;
        }
      }
      if (at == width) {
        recycle(std::move(node.histogram));
        continue;
      }
      node.split = column_search(node, playing_[at])
                       .split(work, candidates_[i * width + at], static_cast<std::int32_t>(playing_[at]));
      node.split.gain = best - none;
      open.push_back(std::move(node));
    }
  }

  void subtract(Histogram& from, const Histogram& part, std::size_t feature) const {
    const std::size_t bins = static_cast<std::size_t>(data_.columns[feature].bins());
    for (std::size_t plane = 0; plane < (counting() ? 4 : 2); ++plane) {
      const std::size_t start = (plane * features_ + feature) * kBins;
      for (std::size_t bin = start; bin < start + bins; ++bin) from[bin] -= part[bin];
    }
  }

  ColumnSearch<Bin> column_search(const Growing& node, std::size_t feature) const {
    const std::size_t plane = features_ * kBins;
    const Bin* negative = node.histogram->data() + feature * kBins;
    const Bin* rows = counting() ? negative + 2 * plane : nullptr;
    return {data_.columns[feature],
            negative,
            negative + plane,
            rows,
            rows == nullptr ? nullptr : rows + plane,
            node.weight,
            rules_,
            node.bounds,
            monotone(static_cast<std::int32_t>(feature))};
  }

  // Sends the rows of every node to its children and gives these their histograms.
  std::vector<Growing> partition(const Tree& tree, std::vector<Growing>& nodes) {
    pieces_.clear();
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      for (std::size_t side = 0; side < 2; ++side)
        cut(pieces_, i, static_cast<int>(side), nodes[i].first[side], nodes[i].last[side], kPiece);
    }
    each(pieces_, [&](int, Piece& piece) {
      const CodeSet goes_left = nodes[piece.owner].split.goes_left;
      const CodeColumn column = data_.column(static_cast<std::size_t>(nodes[piece.owner].split.feature));
      Entry* left = scratch_.data() + piece.first;
      Entry* right = scratch_.data() + piece.last;  // filled backwards; the order of rows does not matter
      for (std::size_t i = piece.first; i < piece.last; ++i) {
        const Entry entry = active_[i];
        const bool is_left = goes_left.has(column[entry.row]);
        *left = entry;
        right[-1] = entry;
        left += is_left;
        right -= !is_left;
      }
      piece.count = static_cast<std::size_t>(left - scratch_.data()) - piece.first;
    });
    std::vector<Growing> children(2 * nodes.size());
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      const auto bounds = child_bounds(nodes[i]);
      for (std::size_t k = 0; k < 2; ++k) {
        Growing& child = children[2 * i + k];
        child.node = tree[static_cast<std::size_t>(nodes[i].node)].left + static_cast<std::int32_t>(k);
        child.depth = nodes[i].depth + 1;
        child.weight = k == 0 ? nodes[i].split.left : nodes[i].weight - nodes[i].split.left;
        child.bounds = bounds[k];
      }
    }
    for (std::size_t p = 0; p < pieces_.size();) {  // the pieces of one class of one node are neighbours
      const std::size_t owner = pieces_[p].owner;
      const std::size_t side = static_cast<std::size_t>(pieces_[p].side);
      std::size_t end = p;
      std::size_t count = 0;
      for (; end < pieces_.size() && pieces_[end].owner == owner && pieces_[end].side == pieces_[p].side; ++end) {
        count += pieces_[end].count;
      }
      std::size_t to = nodes[owner].first[side];
      std::size_t to_other = to + count;
      children[2 * owner].first[side] = to;
      children[2 * owner].last[side] = children[2 * owner + 1].first[side] = to_other;
      children[2 * owner + 1].last[side] = nodes[owner].last[side];
      for (; p < end; ++p) {
        pieces_[p].to = to;
        pieces_[p].to_other = to_other;
        to += pieces_[p].count;
        to_other += pieces_[p].last - pieces_[p].first - pieces_[p].count;
      }
    }
    each(pieces_, [&](int, Piece& piece) {
      const Entry* from = scratch_.data() + piece.first;
      std::copy(from, from + piece.count, active_.data() + piece.to);
      std::copy(from + piece.count, from + (piece.last - piece.first), active_.data() + piece.to_other);
    });
    // The child with fewer rows is summed up, its sibling is what remains of the parent.
    std::vector<std::size_t> smaller;
    for (std::size_t i = 0; i < nodes.size(); ++i) {
      if (!can_split(children[2 * i]) && !can_split(children[2 * i + 1])) {
        recycle(std::move(nodes[i].histogram));
        continue;
      }
      smaller.push_back(2 * i + (children[2 * i].rows() <= children[2 * i + 1].rows() ? 0 : 1));
      Growing& larger = children[smaller.back() ^ 1];
      larger.histogram = std::move(nodes[i].histogram);
      larger.has_parents = true;
    }
    build(children, smaller);
    return children;
  }

  // ---- rows to watch ----

  // Log-loss of the watched rows' own labels under the twisted posterior, and the share of wrong signs. Whole numbers
  // again: the order of the rows does not matter.
  void watch() {
    constexpr double kUnit = 1048576.0;
    const double least = settings_.least;
    using Wide = unsigned __int128;
    std::vector<std::array<Wide, 3>> sums(static_cast<std::size_t>(pool_->size()));
    pool_->chunks(watched_.size(), kPiece, [&](int thread, std::size_t begin, std::size_t end) {
      std::vector<double> margin(kPiece);
      std::vector<float> posterior(kPiece);
      for (std::size_t first = begin; first < end; first += kPiece) {  // one thread may get them all at once
        const std::size_t count = std::min(kPiece, end - first);
        for (std::size_t i = 0; i < count; ++i) margin[i] = margins_[watched_[first + i].row];
        if (!settings_.exact_link) clipped_posteriors(clipped_, margin.data(), count, posterior.data());
        auto& sum = sums[static_cast<std::size_t>(thread)];
        for (std::size_t i = 0; i < count; ++i) {
          const double p =
              settings_.exact_link ? exact_weight(settings_.alpha, -margin[i]) : static_cast<double>(posterior[i]);
          const double loss = -std::log(std::min(std::max(p, least), 1.0 - least));
          const std::uint32_t weight = watched_[first + i].weight;
          const bool positive = signed_by_label(watched_[first + i].row, 1.0) > 0.0;
          sum[0] += static_cast<Wide>(std::llround(loss * kUnit)) * weight;
          sum[1] += margin[i] > 0.0 || (margin[i] == 0.0 && !positive)
                        ? 0
                        : weight;  // a score of 0 is a guess at the negative
          sum[2] += weight;
        }
      }
    });
    std::array<Wide, 3> all{};
    for (const auto& sum : sums) all = {all[0] + sum[0], all[1] + sum[1], all[2] + sum[2]};
    losses_.push_back(static_cast<double>(all[0]) / kUnit / static_cast<double>(all[2]));
    errors_.push_back(static_cast<double>(all[1]) / static_cast<double>(all[2]));
  }

  Dataset& data_;
  const Settings settings_;
  const std::size_t positive_first_, positive_last_;
  const ClippedWeight clipped_;
  const OwnWeights own_;
  const double unit_;  // the fixed-point weight 1
  const std::size_t flush_rows_, piece_;
  LeafRules rules_;
  const std::size_t features_;
  const std::vector<std::uint32_t> varying_;
  std::vector<std::uint32_t> playing_;  // the columns of this round
  ThreadPool* pool_ = nullptr;          // of the call in progress
  std::vector<double> margins_;
  std::vector<std::uint32_t> rows_of_;  // sample weights in fixed point, if rows are counted
  std::vector<Entry> active_, scratch_, watched_;
  std::vector<Worker> workers_;
  std::vector<Piece> pieces_;
  std::vector<typename ColumnSearch<Bin>::Found> candidates_;
  std::vector<std::unique_ptr<Histogram>> spare_;
  std::mutex flush_;
  double total_rows_ = 0.0;  // sample weight of the rows that were drawn
  Growing root_;
};

inline std::unique_ptr<Booster> make_rounds(std::shared_ptr<Dataset> dataset, const Task& task, Settings settings) {
  OwnWeights own(task.weight, *dataset);
  if (fits_32_bits(own.total, own.roundings())) {
    return std::make_unique<Rounds<std::uint32_t>>(std::move(dataset), task, std::move(own), std::move(settings));
  }
  return std::make_unique<Rounds<std::uint64_t>>(std::move(dataset), task, std::move(own), std::move(settings));
}

}  // namespace untwist
