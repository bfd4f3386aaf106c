#pragma once

// run_ordered: work on several threads, results on the calling thread, in order, with bounded memory.
//
//   1. A thread takes the next piece of work, unless too many results wait or their cost is beyond the budget.
//   2. The calling thread takes the results in order; the first `false` of its callback ends everything.
//
// A piece that costs more than the whole budget is worked on alone, so that nothing waits for ever.

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

namespace tornasole::trial {

struct OrderedPoolOptions {
  unsigned threads = 1;
  std::size_t max_waiting = 16;  // results made and not taken
  std::uint64_t budget = 0;      // of their cost, together
};

template <typename T>
class OrderedPool {
 public:
  OrderedPool(std::size_t count, const OrderedPoolOptions& options)
      : count_(count), options_(options), results_(options.max_waiting) {}

  // cost(i) may be called any number of times. make_worker() is called by each thread and gives what it works with:
  // worker(i) makes a result and must not throw.
  template <typename Cost, typename MakeWorker, typename Consume>
  void run(Cost cost, MakeWorker make_worker, Consume consume) {
    std::vector<std::jthread> threads;
    const Stopper stopper{this};  // also when consume throws; destroyed before the threads are joined
    for (unsigned i = 0; i < options_.threads; ++i) {
      threads.emplace_back([&] {
        auto worker = make_worker();
        while (const auto piece = take(cost)) put(*piece, worker(*piece));
      });
    }
    for (std::size_t i = 0; i < count_; ++i) {
      if (!consume(get(i))) break;
      release(cost(i));
    }
    stop();
    threads.clear();
  }

 private:
  struct Stopper {
    OrderedPool* pool;
    ~Stopper() { pool->stop(); }
  };

  template <typename Cost>
  std::optional<std::size_t> take(const Cost& cost) {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] {
      if (is_stopped_ || next_ == count_) return true;
      const bool has_room = next_ < consumed_ + options_.max_waiting;
      return has_room && (next_ == consumed_ || in_flight_ + cost(next_) <= options_.budget);
    });
    if (is_stopped_ || next_ == count_) return std::nullopt;
    in_flight_ += cost(next_);
    return next_++;
  }
  void put(std::size_t piece, T result) {
    const std::lock_guard lock(mutex_);
    results_[piece % results_.size()].emplace(std::move(result));
    changed_.notify_all();
  }
  T get(std::size_t piece) {
    std::unique_lock lock(mutex_);
    std::optional<T>& result = results_[piece % results_.size()];
    changed_.wait(lock, [&] { return result.has_value(); });
    T taken = std::move(*result);
    result.reset();
    return taken;
  }
  void release(std::uint64_t cost) {
    const std::lock_guard lock(mutex_);
    ++consumed_;
    in_flight_ -= cost;
    changed_.notify_all();
  }
  void stop() {
    const std::lock_guard lock(mutex_);
    is_stopped_ = true;
    changed_.notify_all();
  }

  const std::size_t count_;
  const OrderedPoolOptions options_;
  std::mutex mutex_;
  std::condition_variable changed_;
  // guarded by mutex_
  std::vector<std::optional<T>> results_;  // a ring
  std::size_t next_ = 0;
  std::size_t consumed_ = 0;
  std::uint64_t in_flight_ = 0;
  bool is_stopped_ = false;
};

}  // namespace tornasole::trial
