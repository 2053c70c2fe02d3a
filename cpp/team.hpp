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
#include <mutex>
#include <vector>

#include "boosting.hpp"
#include "threads.hpp"

namespace untwist {

class Team {
 public:
  explicit Team(int threads) : pool_(threads) {}

  // Runs up to `rounds` more rounds of every booster. There are fewer of those whose weights all become zero or whose
  // loss was at its lowest `patience` rounds ago, and of all if `interrupted`, which only the thread that calls asks,
  // says so.
  void boost(const std::vector<Booster*>& boosters, int rounds, int patience,
             const std::function<bool()>& interrupted) {
    const std::size_t threads = std::min(boosters.size(), static_cast<std::size_t>(pool_.size()));
    if (threads == 0) return;
    const int threads_each = std::max(1, pool_.size() / static_cast<int>(boosters.size()));
    // With as many threads as boosters, or far more boosters, all threads are done at about the same time if they leave
    // no booster before its end. Otherwise they take turns.
    const bool takes_turns = threads < boosters.size() && boosters.size() < kManyForEach * threads;
    std::vector<Task> tasks;
    for (Booster* booster : boosters) tasks.push_back({booster, rounds});
    std::mutex mutex;
    std::condition_variable changed;
    std::atomic<bool> stop{false};
    pool_.chunks(threads, 1, [&](int thread, std::size_t, std::size_t) {
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
        std::exception_ptr failure;
        try {
          task->booster->boost(count, patience, threads_each, must_stop);
        } catch (...) {
          failure = std::current_exception();
        }
        const auto made = static_cast<int>(task->booster->trees().size() - before);
        lock.lock();
        task->left = made == count ? task->left - made : 0;
        task->is_busy = false;
        changed.notify_all();
        if (failure) std::rethrow_exception(failure);
      }
      // The others may have long to go, and only this thread hears of an interrupt.
      while (is_caller && is_anyone_busy(tasks) && !must_stop()) changed.wait_for(lock, kPulse);
    });
  }

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

  ThreadPool pool_;
};

}  // namespace untwist
