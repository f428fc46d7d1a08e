// Long work: spread over threads, watched by the caller, stopped at once when the caller says so.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <exception>
#include <functional>
#include <mutex>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

namespace cobpm {

// The calling thread calls `poll` with the fraction done about twenty times a second; whatever it throws stops all
// threads and reaches the caller. Worker threads never call it, so it may hold a lock of the caller's (Python's GIL).
class Monitor {
 public:
  using Poll = std::function<void(double)>;

  Monitor(Poll poll, double total) : poll_(std::move(poll)), total_(total), caller_(std::this_thread::get_id()) {}

  // To be called every few microseconds to milliseconds of work.
  void check(double done = 0.0) {
    if (stop_.load(std::memory_order_relaxed)) throw Stopped{};
    if (done > 0.0) {
      double seen = done_.load(std::memory_order_relaxed);
      while (!done_.compare_exchange_weak(seen, seen + done, std::memory_order_relaxed)) {
      }
    }
    if (!poll_ || std::this_thread::get_id() != caller_) return;
    const auto now = std::chrono::steady_clock::now();
    if (now - last_ < std::chrono::milliseconds(50)) return;
    last_ = now;
    poll_(total_ > 0.0 ? std::min(1.0, done_.load(std::memory_order_relaxed) / total_) : 0.0);
  }

  // Runs body(task) for task = 0 … tasks−1 on `threads` threads, the calling one among them. Tasks are handed out in
  // order; results must not depend on which thread ran which task.
  template <class Body>
  void parallel(std::size_t tasks, int threads, Body body) {
    std::atomic<std::size_t> next{0};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto work = [&] {
      try {
        for (std::size_t task; (task = next.fetch_add(1)) < tasks;) {
          check();
          body(task);
        }
      } catch (const Stopped&) {
      } catch (...) {
        const std::lock_guard<std::mutex> guard(failure_lock);
        if (!failure) failure = std::current_exception();
        stop_.store(true);
      }
    };
    const std::size_t extra = std::min<std::size_t>(threads > 1 ? threads - 1 : 0, tasks > 0 ? tasks - 1 : 0);
    std::size_t running = extra;
    std::mutex running_lock;
    std::condition_variable ended;
    std::vector<std::thread> workers;
    workers.reserve(extra);
    for (std::size_t i = 0; i < extra; ++i) {
      try {
        workers.emplace_back([&] {
          work();
          const std::lock_guard<std::mutex> guard(running_lock);
          --running;
          ended.notify_one();
        });
      } catch (const std::system_error&) {  // no more threads to be had: those that run do the work
        const std::lock_guard<std::mutex> guard(running_lock);
        running -= extra - i;
        break;
      }
    }
    work();
    // The caller may run out of tasks first: it goes on listening for an interrupt while the others finish.
    for (std::unique_lock<std::mutex> lock(running_lock); running > 0;) {
      ended.wait_for(lock, std::chrono::milliseconds(50));
      if (running == 0) break;
      lock.unlock();
      try {
        check();
      } catch (const Stopped&) {
      } catch (...) {
        const std::lock_guard<std::mutex> guard(failure_lock);
        if (!failure) failure = std::current_exception();
        stop_.store(true);
      }
      lock.lock();
    }
    for (auto& worker : workers) worker.join();
    if (failure) std::rethrow_exception(failure);
    if (stop_.load()) throw Stopped{};  // stopped from outside: this work is not complete
  }

 private:
  struct Stopped {};

  Poll poll_;
  double total_;
  std::thread::id caller_;
  std::chrono::steady_clock::time_point last_ = std::chrono::steady_clock::now();
  std::atomic<bool> stop_{false};
  std::atomic<double> done_{0.0};
};

}  // namespace cobpm
