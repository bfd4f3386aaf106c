#include "store/s3/s3_retry.h"

#include <algorithm>
#include <cmath>

namespace tornasole::store::s3 {

bool RetryQuota::spend(int cost) {
  const std::lock_guard lock(mutex_);
  if (tokens_ < cost) return false;
  tokens_ -= cost;
  return true;
}

void RetryQuota::give_back(int spent) {
  const std::lock_guard lock(mutex_);
  tokens_ = std::min(kTokens, tokens_ + spent + 1);
}

int RetryQuota::tokens() const {
  const std::lock_guard lock(mutex_);
  return tokens_;
}

double BackOff::wait_s(int retry) {
  constexpr double kFirst_s = 0.1;
  constexpr double kLongest_s = 20;
  const double whole = std::min(kLongest_s, kFirst_s * std::exp2(std::min(retry - 1, 20)));
  const std::lock_guard lock(mutex_);
  return whole * std::uniform_real_distribution<double>(0.5, 1.0)(random_);
}

}  // namespace tornasole::store::s3
