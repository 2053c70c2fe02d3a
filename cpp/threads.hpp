// A pool of threads waits politely: it spins for a moment, then sleeps. Nobody waits for a thread that has not come, so
// on a busy machine the caller does the work alone.
#pragma once

#include <algorithm>
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
      : interrupted_(std::move(interrupted)), seats_(static_cast<std::size_t>(threads)) {
    workers_.reserve(seats_.size());
    try {
      for (std::size_t i = 1; i < seats_.size(); ++i) workers_.emplace_back([this, i] { serve(i); });
    } catch (const std::system_error&) {
      // There are no more threads to be had. Those that are there will do, as no result depends on their number.
    }
  }

  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  ~ThreadPool() {
    stop_.store(true);
    wake_sleepers();
    for (auto& worker : workers_) worker.join();
  }

  // Makes a pool that was not told of interrupts ask for them, as long as this lives.
  class Listening {
   public:
    Listening(ThreadPool& pool, const std::function<bool()>& interrupted) : pool_(pool) {
      pool_.interrupted_ = interrupted;
    }
    ~Listening() {
      pool_.interrupted_ = {};
      pool_.given_up_.store(false);
    }
    Listening(const Listening&) = delete;
    Listening& operator=(const Listening&) = delete;

   private:
    ThreadPool& pool_;
  };

  int size() const { return static_cast<int>(workers_.size()) + 1; }

  // Splits [0, count) into chunks of `chunk` and calls task(thread, first, last) for each. A thread has the same share
  // of them call after call, so that it finds in its cache what it left there. One that is through with its share helps
  // the others. No more threads are called than there are chunks, and a pool of one thread may call task once for all
  // of them. Returns when all are done, and throws what one of them threw.
  template <typename Task>
  void chunks(std::size_t count, std::size_t chunk, const Task& task) {
    if (workers_.empty() || count <= chunk) {
      const std::size_t step = interrupted_ ? chunk : count;
      for (std::size_t first = 0; first < count; first += step) {
        ask(0);
        task(0, first, count - first > step ? first + step : count);
      }
      return;
    }
    const std::size_t all = (count + chunk - 1) / chunk;
    const std::size_t threads = std::min(all, workers_.size() + 1);
    for (std::size_t i = 0; i < threads; ++i) {
      seats_[i].next.store(all * i / threads, std::memory_order_relaxed);
      seats_[i].end = all * (i + 1) / threads;
    }
    run(threads, [&](std::size_t thread) {
      for (std::size_t i = 0; i < threads; ++i) {
        Seat& seat = seats_[(thread + i) % threads];
        while (seat.next.load(std::memory_order_relaxed) < seat.end) {
          const std::size_t taken = seat.next.fetch_add(1, std::memory_order_relaxed);
          if (taken >= seat.end) break;
          ask(thread);
          task(static_cast<int>(thread), taken * chunk, taken + 1 < all ? (taken + 1) * chunk : count);
        }
      }
    });
  }

 private:
  // A thread spins so often before it sleeps: for tens of microseconds, about as long as a phase of a round takes.
  static constexpr int kSpins = 2000;

  // The lower bits of call_ tell how many threads the job is for, the upper ones which job it is.
  static constexpr int kThreadBits = 16;
  static constexpr std::uint64_t kThreadMask = (std::uint64_t{1} << kThreadBits) - 1;

  // This is call_ while there is no job.
  static constexpr std::uint64_t kNoJob = 0;

  // Two threads that write to one cache line hold each other up. Processors fetch two lines at a time.
  static constexpr std::size_t kLinesApart = 128;

  // Every thread has a seat. What other threads write to and what only its own thread writes to are on different lines.
  struct Seat {
    alignas(kLinesApart) std::atomic<std::size_t> next{0};  // This is the next chunk of its share.
    std::size_t end = 0;
    alignas(kLinesApart) std::atomic<std::uint64_t> job{kNoJob};  // Its thread is inside this job.
  };

  // Throws if the work was given up. Only the thread that calls, number 0, asks whether it was.
  void ask(std::size_t thread) {
    if (!interrupted_) return;
    if (thread == 0 && !given_up_.load(std::memory_order_relaxed) && interrupted_()) given_up_.store(true);
    if (given_up_.load(std::memory_order_relaxed)) throw Interrupted{};
  }

  // Calls job(thread) on this thread, and on those below `threads` that come before it is done.
  template <typename Job>
  void run(std::size_t threads, const Job& job) {
    job_ = &job;
    do_job_ = [](const void* some, std::size_t thread) { (*static_cast<const Job*>(some))(thread); };
    const std::uint64_t call = ++jobs_ << kThreadBits | std::min<std::uint64_t>(threads, kThreadMask);
    call_.store(call);
    if (sleepers_.load() > 0) wake_sleepers();
    attempt(0);
    // A thread takes its seat and then looks at the call, here it is the other way around: either it sees that the job
    // is over or we see that it is inside.
    call_.store(kNoJob);
    for (std::size_t i = 1; i < threads; ++i) {
      const auto is_inside = [&] { return seats_[i].job.load() == call; };
      for (int spins = 0; is_inside(); spins += spins <= kSpins) wait_a_little(spins);
    }
    if (failure_) std::rethrow_exception(std::exchange(failure_, nullptr));
  }

  void wake_sleepers() {
    std::unique_lock<std::mutex>(mutex_).unlock();  // Whoever saw no call is asleep by now.
    wake_.notify_all();
  }

  static void wait_a_little(int spins) {
    if (spins > kSpins) return std::this_thread::yield();
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
  }

  void attempt(std::size_t thread) noexcept {
    try {
      do_job_(job_, thread);
    } catch (...) {
      const std::lock_guard<std::mutex> guard(mutex_);
      if (!failure_) failure_ = std::current_exception();
    }
  }

  void serve(std::size_t thread) {
    std::uint64_t seen = kNoJob;
    const auto is_called = [&] {
      const std::uint64_t call = call_.load();
      return call != kNoJob && call != seen;
    };
    while (!stop_.load()) {
      for (int spins = 0; spins < kSpins && !is_called() && !stop_.load(); ++spins) wait_a_little(spins);
      if (!is_called()) {
        std::unique_lock<std::mutex> lock(mutex_);
        ++sleepers_;
        wake_.wait(lock, [&] { return is_called() || stop_.load(); });
        --sleepers_;
      }
      const std::uint64_t call = call_.load();
      if (call == kNoJob || call == seen) continue;
      seen = call;
      if (thread >= (call & kThreadMask)) continue;
      seats_[thread].job.store(call);
      if (call_.load() == call) attempt(thread);
      seats_[thread].job.store(kNoJob);
    }
  }

  std::function<bool()> interrupted_;
  std::atomic<bool> given_up_{false};
  std::vector<std::thread> workers_;
  std::vector<Seat> seats_;
  std::mutex mutex_;
  std::condition_variable wake_;
  alignas(kLinesApart) std::atomic<std::uint64_t> call_{kNoJob};
  alignas(kLinesApart) std::atomic<int> sleepers_{0};
  std::atomic<bool> stop_{false};
  std::uint64_t jobs_ = 0;
  const void* job_ = nullptr;
  void (*do_job_)(const void*, std::size_t) = nullptr;
  std::exception_ptr failure_;
};

}  // namespace untwist
