#pragma once

// S3Client: signed requests to one bucket, tried again where that helps.
//
//   1. take credentials, sign, send
//   2. no answer, 429, 5xx, a checksum the service disagrees with: wait and try again, within limits and quota
//   3. expired credentials: forget them; another region: move there; a clock that is off: take the service's. Each at
//      most once a request, at once
//   4. every other answer is the caller's

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "store/s3/http_exchange.h"
#include "store/s3/s3_address.h"
#include "store/s3/s3_credentials.h"
#include "store/s3/s3_retry.h"
#include "store/s3/s3_xml.h"
#include "tornasole/result.h"

namespace tornasole::store::s3 {

struct S3Request {
  std::string method = "GET";
  std::string key = {};  // "" for the bucket itself
  std::vector<std::pair<std::string, std::string>> query = {};
  std::vector<std::pair<std::string, std::string>> headers = {};  // names in lower case
  ByteView body = {};
  std::uint64_t max_answer_bytes = std::uint64_t{16} << 20U;
  // Whether an answer is whole; one that is not is tried again.
  std::function<bool(const HttpAnswer& answer)> is_sound = {};
};

struct S3Answer {
  HttpAnswer http = {};
  ServiceError error = {};  // of an answer that is none of success
  int tries = 1;
};

// How many requests were sent, retries included.
struct S3Counts {
  std::uint64_t get = 0, put = 0, list = 0, other = 0, retries = 0, bytes_read = 0, bytes_written = 0;
};

struct S3ClientSettings {
  Address address = {};
  EndpointOptions endpoint = {};
  RetryLimits limits = {};
  double idle_timeout_s = 30;
  S3Environment environment = {};
};
struct S3ClientDependencies {
  std::unique_ptr<HttpClient> http = nullptr;      // null: libcurl
  const Clock* clock = nullptr;                    // null: the system's
  std::function<void(double seconds)> sleep = {};  // empty: really
};

class S3Client {
 public:
  // Speaks to nobody yet.
  static Result<std::shared_ptr<S3Client>> make(S3ClientSettings settings, S3ClientDependencies dependencies);

  // kIo when there was no answer in the end, or no credentials. From many threads.
  Result<S3Answer> call(const S3Request& request);
  // Every call, running or to come, ends soon with kIo.
  void cancel() noexcept;

  const Address& address() const noexcept { return settings_.address; }
  // "s3://bucket/key", for messages.
  std::string describe(std::string_view key) const;
  // What to say about an answer that is an error: kNotFound for 404, kInvalid for 412, else kIo.
  Error to_error(std::string_view action, std::string_view key, const S3Answer& answer) const;
  S3Counts counts() const noexcept;

 private:
  S3Client(S3ClientSettings settings, S3ClientDependencies dependencies);
  struct Trial;
  enum class Next { kDone, kAgainNow, kAgainLater, kAgainAfterTimeout };

  Result<HttpOutcome> send_once(const S3Request& request, const std::string& payload_hash);
  Next judge(const S3Request& request, const HttpOutcome& outcome, const ServiceError& error, Trial* trial);
  bool move_region(const HttpAnswer& answer);
  void take_clock(const HttpAnswer& answer);
  void pause(double seconds);
  void count(const S3Request& request, const HttpOutcome& outcome);
  double now_s() const { return clock_.wall_seconds() + clock_offset_s_.load(std::memory_order_relaxed); }

  // constant
  const S3ClientSettings settings_;
  const std::unique_ptr<HttpClient> http_;
  const Clock& clock_;
  const std::function<void(double)> sleep_;

  CredentialChain credentials_;
  RetryQuota quota_;
  BackOff back_off_;
  std::atomic<double> clock_offset_s_ = 0;
  std::atomic<bool> has_succeeded_ = false;  // any request did
  std::atomic<std::uint64_t> gets_ = 0, puts_ = 0, lists_ = 0, others_ = 0, retries_ = 0, bytes_read_ = 0,
                             bytes_written_ = 0;

  mutable std::mutex mutex_;
  std::condition_variable cancelled_;
  // guarded by mutex_
  bool is_cancelled_ = false;
  std::string region_;
  Endpoint endpoint_;
};

}  // namespace tornasole::store::s3
