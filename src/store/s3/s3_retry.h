#pragma once

// When a failed request is worth another try. One quota for all requests of a client: a service in trouble is not
// asked over and over. A retry costs 5 tokens, one after a time-out 10; a success gives back what its request spent,
// and one more.

#include <cstdint>
#include <mutex>
#include <random>

namespace tornasole::store::s3 {

struct RetryLimits {
  double budget_s = 600;  // of one request, all tries together
  int max_tries = 1000;
};

class RetryQuota {
 public:
  static constexpr int kTokens = 500;
  static constexpr int kRetryCost = 5;
  static constexpr int kTimeoutCost = 10;

  // False if there are not enough left.
  bool spend(int cost);
  void give_back(int spent);
  int tokens() const;

 private:
  mutable std::mutex mutex_;
  int tokens_ = kTokens;  // guarded by mutex_
};

// How long to wait before try number `retry` (1, 2, ...): between half of and the whole of 0.1 s doubled each time, at
// most 20 s.
class BackOff {
 public:
  explicit BackOff(std::uint64_t seed) : random_(seed) {}
  double wait_s(int retry);

 private:
  std::mutex mutex_;
  std::mt19937_64 random_;  // guarded by mutex_
};

}  // namespace tornasole::store::s3
