// A pool of threads waits politely: it spins for a moment, then sleeps. Nobody waits for a thread that has not come, so
// on a busy machine the caller does the work alone.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace untwist {

// This is thrown where work was given up.
struct Interrupted {};

class ThreadPool {
 public:
  // `interrupted`, if there is one, is asked between chunks by the thread that calls. Once it says so, no chunk is
  // begun any more and Interrupted is thrown.
  explicit ThreadPool(int threads, std::function<bool()> interrupted = {})
      : interrupted_(std::move(interrupted)), shares_(static_cast<std::size_t>(threads)) {
    workers_.reserve(shares_.size());
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error&) {
      // There are no more threads to be had. Those that are there will do, as no result depends on their number.
    }
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  ~ThreadPool() {
    stop_.store(true);
    announce();
    for (auto& worker : workers_) worker.join();
  }

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Splits [0, count) into chunks of `chunk` and calls task(thread, first, last) for each. A thread has the same share
  // of them call after call, so that it finds in its cache what it left there. One that is through with its share helps
  // the others. At its end each thread calls last_words(thread). Returns when all are done, and throws what one of them
  // threw.
  template <typename Task, typename LastWords>
  void chunks(std::size_t count, std::size_t chunk, const Task& task, const LastWords& last_words) {
    if (workers_.empty() || count <= chunk) {
      const std::size_t step = interrupted_ ? chunk : count;
      for (std::size_t first = 0; first < count; first += step) {
        ask(0);
        task(0, first, count - first > step ? first + step : count);
      }
      return last_words(0);
    }
    const std::size_t threads = shares_.size();
    const std::size_t all = (count + chunk - 1) / chunk;
    for (std::size_t i = 0; i < threads; ++i) {
      shares_[i].next.store(all * i / threads, std::memory_order_relaxed);
      shares_[i].end = all * (i + 1) / threads;
    }
    run([&](int thread) {
      for (std::size_t i = 0; i < threads; ++i) {
        Share& share = shares_[(static_cast<std::size_t>(thread) + i) % threads];
        for (;;) {
          const std::size_t taken = share.next.fetch_add(1, std::memory_order_relaxed);
          if (taken >= share.end) break;
          ask(thread);
          task(thread, taken * chunk, taken + 1 < all ? (taken + 1) * chunk : count);
        }
      }
      last_words(thread);
    });
  }

  template <typename Task>
  void chunks(std::size_t count, std::size_t chunk, const Task& task) {
    chunks(count, chunk, task, [](int) {});
  }

 private:
  // A thread spins so often before it sleeps: for tens of microseconds, about as long as a phase of a round takes.
  static constexpr int kSpins = 2000;

  // The lowest bits of state_ count the workers that are inside the job.
  static constexpr std::uint64_t kInside = (std::uint64_t{1} << 31) - 1;

  // This bit of state_ tells whether the job is open to those who come.
  static constexpr std::uint64_t kOpen = std::uint64_t{1} << 31;

  // The bits of state_ from here on are the number of the job.
  static constexpr std::uint64_t kJob = std::uint64_t{1} << 32;

  // Two threads that write to one cache line hold each other up.
  static constexpr std::size_t kCacheLine = 64;

  // A thread takes the chunks of its share first.
  struct alignas(kCacheLine) Share {
    std::atomic<std::size_t> next{0};
    std::size_t end = 0;
  };

  // Throws if the work was given up. Only the thread that calls, number 0, asks whether it was.
  void ask(int thread) {
    if (!interrupted_) return;
    if (thread == 0 && !given_up_.load(std::memory_order_relaxed) && interrupted_()) given_up_.store(true);
    if (given_up_.load(std::memory_order_relaxed)) throw Interrupted{};
  }

  // Calls job(thread) on this thread and on those that come before it is done.
  void run(const std::function<void(int)>& job) {
    job_ = &job;
    announce();
    attempt(job, 0);
    state_.fetch_and(~kOpen, std::memory_order_acq_rel);
    const auto somebody_is_inside = [this] { return (state_.load(std::memory_order_acquire) & kInside) > 0; };
    for (int spins = 0; somebody_is_inside(); spins += spins <= kSpins) wait_a_little(spins);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void announce() {
    state_.store((state_.load() / kJob + 1) * kJob | kOpen);  // Nobody is inside.
    if (sleepers_.load() == 0) return;
    std::unique_lock<std::mutex>(mutex_).unlock();  // Whoever saw the old state is asleep by now.
    wake_.notify_all();
  }

  static void wait_a_little(int spins) {
    if (spins > kSpins) return std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void attempt(const std::function<void(int)>& job, int thread) noexcept {
    try {
      job(thread);
    } catch (...) {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void serve(int thread) {
    std::uint64_t seen = 0;
    const auto job_number = [this] { return state_.load() / kJob; };
    for (;;) {
      for (int spins = 0; spins < kSpins && job_number() == seen; ++spins) wait_a_little(spins);
      if (job_number() == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        ++sleepers_;
        wake_.wait(lock, [&] { return job_number() != seen; });
        --sleepers_;
      }
      std::uint64_t state = state_.load();
      while ((state & kOpen) && !state_.compare_exchange_weak(state, state + 1)) continue;
      seen = state / kJob;
      if (stop_.load()) return;        // This comes after the state, as the last thing that is announced is no job.
      if (!(state & kOpen)) continue;  // The job is over.
      attempt(*job_, thread);
      state_.fetch_sub(1, std::memory_order_release);
    }
  }

  const std::function<bool()> interrupted_;
  std::atomic<bool> given_up_{false};
  std::vector<std::thread> workers_;
  std::vector<Share> shares_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::uint64_t> state_{0};
  std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  const std::function<void(int)>* job_ = nullptr;
  std::exception_ptr failure_;
};

}  // namespace untwist
