// Boosts several boosters side by side, which need nothing of each other.
//
// Boosters come first: a thread makes rounds of whichever has made the fewest and is at rest. Only where there are more
// threads than boosters does each booster have several. What comes out is the same as one after the other.
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

  ~Team() { leave_threads_of_parent(); }

  // Runs up to `rounds` more rounds of every booster. There are fewer of those whose weights all become zero or whose
  // loss was at its lowest `patience` rounds ago, and of all if `interrupted`, which only the thread that calls asks,
  // says so, or if a booster fails, whose error is thrown then.
  void boost(const std::vector<Booster*>& boosters, int rounds, int patience,
             const std::function<bool()>& interrupted) {
    if (boosters.empty()) return;
    ThreadPool& pool = find_pool();
    const std::size_t threads = std::min(boosters.size(), static_cast<std::size_t>(pool.size()));
    const int threads_each = std::max(1, pool.size() / static_cast<int>(boosters.size()));
    // With as many threads as boosters, or far more boosters, all threads are done at about the same time if they leave
    // no booster before its end. Otherwise they take turns.
    const bool takes_turns = threads < boosters.size() && boosters.size() < kManyForEach * threads;
    std::vector<Task> tasks;
    for (Booster* booster : boosters) tasks.push_back({booster, rounds});
    std::mutex mutex;
    std::condition_variable changed;
    std::exception_ptr failure;
    std::atomic<bool> stop{false};
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
  // So many boosters for each thread are many.
  static constexpr std::size_t kManyForEach = 8;

  // The thread that calls asks so often whether it must stop while it waits for others.
  static constexpr auto kPulse = std::chrono::milliseconds(10);

  struct Task {
    Booster* booster;
    int left;  // So many rounds are still to be made.
    bool is_busy = false;
  };

  static int find_process() {
#if defined(__unix__) || defined(__APPLE__)
    return static_cast<int>(getpid());
#else
    return 0;
#endif
  }

  // Returns the threads, which wait for more to do between two calls.
  ThreadPool& find_pool() {
    leave_threads_of_parent();
    if (!pool_) {
      pool_ = std::make_unique<ThreadPool>(threads_);
      process_ = find_process();
    }
    return *pool_;
  }

  // A process that was forked has none of the threads of its parent. To end them it would wait for ever, so it forgets
  // them.
  void leave_threads_of_parent() {
    if (pool_ && process_ != find_process()) static_cast<void>(pool_.release());
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
  int process_ = 0;  // The threads belong to this process.
};

}  // namespace untwist
