// A pool of threads that waits politely: it spins for a moment, then yields, then sleeps.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace untwist {

class ThreadPool {
 public:
  explicit ThreadPool(int threads) {
    try {
      for (int i = 1; i < threads; ++i) workers_.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error&) {
      // No more threads to be had: those that are there will do, as no result depends on their number.
    }
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  ~ThreadPool() {
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      stop_ = true;
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    for (auto& worker : workers_) worker.join();
  }

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Calls job(thread) once per thread, on this one too, and returns when all are done; throws what one of them threw.
  void run(const std::function<void(int)>& job) {
    if (workers_.empty()) return job(0);
    {
      const std::lock_guard<std::mutex> guard(mutex_);
      job_ = &job;
      busy_.store(static_cast<int>(workers_.size()), std::memory_order_relaxed);
      generation_.fetch_add(1, std::memory_order_release);
    }
    wake_.notify_all();
    attempt(job, 0);
    for (int spins = 0; busy_.load(std::memory_order_acquire) > 0; spins += spins <= kSpins) wait_a_little(spins);
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  // Splits [0, count) into chunks of `chunk` that the threads take as they come: task(thread, first, last).
  template <typename Task>
  void chunks(std::size_t count, std::size_t chunk, const Task& task) {
    if (workers_.empty() || count <= chunk) {
      if (count > 0) task(0, std::size_t{0}, count);
      return;
    }
    std::atomic<std::size_t> next{0};
    run([&](int thread) {
      for (;;) {
        const std::size_t first = next.fetch_add(chunk, std::memory_order_relaxed);
        if (first >= count) return;
        task(thread, first, first + chunk < count ? first + chunk : count);
      }
    });
  }

 private:
  static constexpr int kSpins = 2000;  // tens of microseconds: about as long as a phase of a round takes

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
    std::size_t seen = 0;
    for (;;) {
      for (int spins = 0; spins < kSpins + 100 && generation_.load(std::memory_order_acquire) == seen; ++spins) {
        wait_a_little(spins);
      }
      if (generation_.load(std::memory_order_acquire) == seen) {
        std::unique_lock<std::mutex> lock(mutex_);
        wake_.wait(lock, [&] { return generation_.load(std::memory_order_acquire) != seen; });
      }
      seen = generation_.load(std::memory_order_acquire);
      if (stop_) return;
      attempt(*job_, thread);
      busy_.fetch_sub(1, std::memory_order_release);
    }
  }

  std::vector<std::thread> workers_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::atomic<std::size_t> generation_{0};
  std::atomic<int> busy_{0};
  const std::function<void(int)>* job_ = nullptr;
  std::exception_ptr failure_;
  bool stop_ = false;
};

}  // namespace untwist
