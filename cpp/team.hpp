// Boosts several boosters side by side, which need nothing of each other.
//
// Boosters come first: a thread makes rounds of whichever has made the fewest and is at rest. Only with at least twice
// as many threads as boosters does a booster have several. What comes out is the same as one after the other.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#if defined(__unix__) || defined(__APPLE__)
#include <unistd.h>
#endif

#include "boosting.hpp"
#include "threads.hpp"

namespace untwist {

class Team {
 public:
  explicit Team(int threads) : threads_(threads) {}

  Team(const Team&) = delete;
  Team& operator=(const Team&) = delete;

  ~Team() { forget_threads_of_parent(); }

  // Makes up to `rounds` more rounds of every booster. A booster ends early if its weights all become zero or if its
  // loss was at its lowest `patience` rounds ago. All end early if `interrupted` says so, which only the thread that
  // calls asks, or if a booster fails. Then its error is thrown.
  void boost(const std::vector<Booster*>& boosters, int rounds, int patience,
             const std::function<bool()>& interrupted) {
    if (boosters.empty()) return;
    const std::size_t threads = std::min(boosters.size(), static_cast<std::size_t>(threads_));
    ThreadPool& pool = find_pool(static_cast<int>(threads));
    const int threads_each = std::max(1, threads_ / static_cast<int>(boosters.size()));
    // With as many threads as boosters, or far more boosters, all threads are done at about the same time if they leave
    // no booster before its end. Otherwise a thread leaves it after each round, for the one with the most rounds left.
    const bool takes_turns = threads < boosters.size() && boosters.size() < kManyBoostersPerThread * threads;
    std::vector<Task> tasks;
    for (Booster* booster : boosters) tasks.push_back({booster, rounds});
    std::mutex mutex;
    std::condition_variable changed;
    std::exception_ptr failure;
    std::atomic<bool> stop{false};
    // Every chunk stands for a thread, which looks for work until there is none.
    pool.chunks(threads, 1, [&](int thread, std::size_t, std::size_t) {
      const bool is_caller = thread == 0;
      const auto must_stop = [&] {
        if (is_caller && interrupted()) stop.store(true);
        return stop.load();
      };
      std::unique_lock<std::mutex> lock(mutex);
      while (Task* task = find_open(tasks)) {
        task->is_busy = true;
        lock.unlock();
        const int count = takes_turns ? 1 : task->left;
        const std::size_t before = task->booster->trees().size();
        std::exception_ptr error;
        try {
          task->booster->boost(count, patience, threads_each, must_stop);
        } catch (...) {
          error = std::current_exception();
          stop.store(true);
        }
        const auto made = static_cast<int>(task->booster->trees().size() - before);
        lock.lock();
        if (error && !failure) failure = error;
        task->left = made == count ? task->left - made : 0;
        task->is_busy = false;
        changed.notify_all();
      }
      // The others may have long to go, and only this thread hears of an interrupt.
      while (is_caller && is_anyone_busy(tasks) && !must_stop()) changed.wait_for(lock, kPulse);
    });
    if (failure) std::rethrow_exception(failure);
  }

  // Whoever uses the team sets this flag, as only one thread may at a time.
  std::atomic_flag busy = ATOMIC_FLAG_INIT;

 private:
  // From so many boosters per thread on it does not matter that the last of them end at different times.
  static constexpr std::size_t kManyBoostersPerThread = 8;

  // The thread that calls asks so often whether it must stop while it waits for others.
  static constexpr auto kPulse = std::chrono::milliseconds(10);

  struct Task {
    Booster* booster;
    int left;  // So many rounds are still to be made.
    bool is_busy = false;
  };

  static int find_process_id() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<int>(getpid());
#else
    return 0;
#endif
  }

  // Returns so many threads, which wait for more to do between two calls. No more are kept than there are boosters, as
  // each booster may have further ones of its own.
  ThreadPool& find_pool(int threads) {
    forget_threads_of_parent();
    if (!pool_ || pool_threads_ != threads) {
      pool_.reset();
      pool_ = std::make_unique<ThreadPool>(threads);
      pool_threads_ = threads;
      process_id_ = find_process_id();
    }
    return *pool_;
  }

  // A process that was forked has none of the threads of its parent. To end them it would wait for ever, so it forgets
  // them.
  void forget_threads_of_parent() {
    if (pool_ && process_id_ != find_process_id()) static_cast<void>(pool_.release());
  }

  // Returns the task with the most rounds left that nobody is at. It is null where others are at all that are left.
  static Task* find_open(std::vector<Task>& tasks) {
    Task* most = nullptr;
    for (Task& task : tasks) {
      const bool is_open = !task.is_busy && task.left > 0;
      if (is_open && (most == nullptr || task.left > most->left)) most = &task;
    }
    return most;
  }

  static bool is_anyone_busy(const std::vector<Task>& tasks) {
    return std::any_of(tasks.begin(), tasks.end(), [](const Task& task) { return task.is_busy; });
  }

  const int threads_;
  std::unique_ptr<ThreadPool> pool_;
  int pool_threads_ = 0;
  int process_id_ = 0;  // The threads of the pool belong to this process.
};

}  // namespace untwist
