#include "store/s3/s3_client.h"

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/errors.h"
#include "base/sha256.h"

namespace tornasole::store::s3 {
namespace {

constexpr std::string_view kUnsigned = "UNSIGNED-PAYLOAD";
// A service that never answered is rather a wrong address than an outage, and set-up waits for it.
constexpr double kFirstBudget_s = 15;

// A code of the service is shown only if it looks like one: an answer may hold anything, also what was sent.
std::string shown_code(const ServiceError& error) {
  const bool is_code = !error.code.empty() && error.code.size() <= 64 && std::ranges::all_of(error.code, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
  });
  return is_code ? " (" + error.code + ")" : std::string();
}

bool is_any_of(std::string_view text, std::initializer_list<std::string_view> texts) {
  return std::ranges::find(texts, text) != texts.end();
}

bool is_passing(int status, std::string_view code) {
  return status == 408 || status == 429 || (status >= 500 && status != 501) ||
         is_any_of(code, {"RequestTimeout", "SlowDown", "Throttling", "ThrottlingException", "BadDigest",
                          "XAmzContentSHA256Mismatch", "XAmzContentChecksumMismatch", "ChecksumMismatch",
                          "IncompleteBody", "OperationAborted", "ConditionalRequestConflict", "InternalError"});
}

}  // namespace

// What one request has used up.
struct S3Client::Trial {
  std::int64_t start_ns = 0;
  int tries = 1;
  int spent = 0;  // tokens
  bool has_forgotten = false;
  bool has_moved = false;
  bool has_set_clock = false;
};

S3Client::S3Client(S3ClientSettings settings, S3ClientDependencies dependencies)
    : settings_(std::move(settings)),
      http_(std::move(dependencies.http)),
      clock_(dependencies.clock != nullptr ? *dependencies.clock : system_clock()),
      sleep_(std::move(dependencies.sleep)),
      credentials_(settings_.environment, http_.get(), &clock_),
      back_off_(static_cast<std::uint64_t>(clock_.monotonic_ns())),
      region_(settings_.endpoint.region) {}

Result<std::shared_ptr<S3Client>> S3Client::make(S3ClientSettings settings, S3ClientDependencies dependencies) {
  TORNASOLE_TRY(Endpoint endpoint, make_endpoint(settings.address.bucket, settings.endpoint));
  if (dependencies.http == nullptr) {
    TORNASOLE_TRY(dependencies.http, open_curl_client(settings.environment.get("AWS_CA_BUNDLE").value_or("")));
  }
  std::shared_ptr<S3Client> client(new S3Client(std::move(settings), std::move(dependencies)));
  client->endpoint_ = std::move(endpoint);
  return client;
}

std::string S3Client::describe(std::string_view key) const {
  return key.empty() ? fmt::format("s3://{}", settings_.address.bucket)
                     : fmt::format("s3://{}/{}", settings_.address.bucket, key);
}

S3Counts S3Client::counts() const noexcept {
  return {gets_, puts_, lists_, others_, retries_, bytes_read_, bytes_written_};
}

void S3Client::cancel() noexcept {
  {
    const std::lock_guard lock(mutex_);
    is_cancelled_ = true;
  }
  cancelled_.notify_all();
  http_->cancel();
}

void S3Client::pause(double seconds) {
  if (sleep_) return sleep_(seconds);
  std::unique_lock lock(mutex_);
  cancelled_.wait_for(lock, std::chrono::duration<double>(seconds), [this] { return is_cancelled_; });
}

void S3Client::count(const S3Request& request, const HttpOutcome& outcome) {
  const bool is_list = request.method == "GET" && request.key.empty();
  auto& counter = is_list ? lists_ : request.method == "GET" ? gets_ : request.method == "PUT" ? puts_ : others_;
  ++counter;
  bytes_read_ += outcome.answer.body.size();
  bytes_written_ += request.body.size();
}

Result<HttpOutcome> S3Client::send_once(const S3Request& request, const std::string& payload_hash) {
  TORNASOLE_TRY(const Credentials credentials, credentials_.get());
  SigningInput input{.method = request.method,
                     .path = {},
                     .query = request.query,
                     .headers = request.headers,
                     .payload_hash = payload_hash,
                     .region = {},
                     .amz_date = amz_date(now_s())};
  std::string host;
  std::string scheme;
  {
    const std::lock_guard lock(mutex_);
    input.path = endpoint_.path_for(settings_.address.bucket, request.key);
    input.region = region_;
    host = endpoint_.host_for(settings_.address.bucket);
    scheme = endpoint_.scheme;
  }
  input.headers.emplace_back("host", host);
  input.headers.emplace_back("x-amz-content-sha256", payload_hash);
  input.headers.emplace_back("x-amz-date", input.amz_date);
  if (!credentials.session_token.empty()) {
    input.headers.emplace_back("x-amz-security-token", credentials.session_token.reveal());
  }
  HttpRequest http{.method = request.method,
                   .url = fmt::format("{}://{}{}", scheme, host, input.path),
                   .headers = input.headers,
                   .body = request.body,
                   .max_answer_bytes = request.max_answer_bytes,
                   .idle_timeout_s = settings_.idle_timeout_s};
  if (!request.query.empty()) http.url += "?" + canonical_query(request.query);
  http.headers.emplace_back("authorization", sign(input, credentials));
  HttpOutcome outcome = http_->send(http);
  count(request, outcome);
  return outcome;
}

bool S3Client::move_region(const HttpAnswer& answer) {
  const std::string region(answer.header("x-amz-bucket-region"));
  if (region.empty() || settings_.endpoint.url) return false;
  EndpointOptions options = settings_.endpoint;
  options.region = region;
  auto endpoint = make_endpoint(settings_.address.bucket, options);
  if (!endpoint.ok()) return false;
  const std::lock_guard lock(mutex_);
  if (region_ == region) return false;
  region_ = region;
  endpoint_ = std::move(*endpoint);
  return true;
}

void S3Client::take_clock(const HttpAnswer& answer) {
  const auto theirs = parse_http_time(answer.header("date"));
  if (theirs) clock_offset_s_.store(*theirs - clock_.wall_seconds(), std::memory_order_relaxed);
}

S3Client::Next S3Client::judge(const S3Request& request, const HttpOutcome& outcome, const ServiceError& error,
                               Trial* trial) {
  if (!outcome.is_answered) {
    switch (outcome.failure.kind) {
      case HttpFailure::Kind::kTimeout: return Next::kAgainAfterTimeout;
      case HttpFailure::Kind::kTooLong:
      case HttpFailure::Kind::kCancelled: return Next::kDone;
      default: return Next::kAgainLater;
    }
  }
  const int status = outcome.answer.status;
  if (status >= 200 && status < 300) {
    return !request.is_sound || request.is_sound(outcome.answer) ? Next::kDone : Next::kAgainLater;
  }
  if (is_passing(status, error.code)) return Next::kAgainLater;
  if (status == 301 || status == 307 || status == 400 || status == 403) {
    if (!trial->has_moved && move_region(outcome.answer)) {
      trial->has_moved = true;
      return Next::kAgainNow;
    }
    if (!trial->has_set_clock && is_any_of(error.code, {"RequestTimeTooSkewed", "RequestExpired"})) {
      trial->has_set_clock = true;
      take_clock(outcome.answer);
      return Next::kAgainNow;
    }
    // The key id is among the reasons: keys that were rotated are found again in their file.
    if (!trial->has_forgotten && is_any_of(error.code, {"ExpiredToken", "ExpiredTokenException", "TokenRefreshRequired",
                                                        "InvalidToken", "InvalidAccessKeyId"})) {
      trial->has_forgotten = true;
      credentials_.forget();
      return Next::kAgainNow;
    }
  }
  return Next::kDone;
}

Result<S3Answer> S3Client::call(const S3Request& request) {
  // Over TLS the body is protected by the channel and its checksum is signed; in plain text its hash is signed.
  bool is_tls;
  {
    const std::lock_guard lock(mutex_);
    is_tls = endpoint_.scheme == "https";
  }
  const std::string payload_hash = is_tls && !request.body.empty() ? std::string(kUnsigned) : sha256_hex(request.body);
  Trial trial{.start_ns = clock_.monotonic_ns()};
  while (true) {
    TORNASOLE_TRY(HttpOutcome outcome, send_once(request, payload_hash));
    ServiceError error;
    if (outcome.is_answered && (outcome.answer.status < 200 || outcome.answer.status >= 300)) {
      error = parse_service_error(outcome.answer.body);
    }
    const Next next = judge(request, outcome, error, &trial);
    const auto give_up = [&](std::string_view why) -> Result<S3Answer> {
      if (outcome.is_answered && outcome.answer.status >= 300) {
        return S3Answer{std::move(outcome.answer), std::move(error), trial.tries};
      }
      const std::string what =
          outcome.is_answered ? std::string("the answer is not what was stored") : outcome.failure.message;
      return io_error("{} {}: {}, after {} {}{}", request.method, describe(request.key), what, trial.tries,
                      trial.tries == 1 ? "try" : "tries", why);
    };
    if (next == Next::kDone) {
      if (!outcome.is_answered) return give_up("");
      if (outcome.answer.status < 500) quota_.give_back(trial.spent);
      if (outcome.answer.status < 300) has_succeeded_ = true;
      return S3Answer{std::move(outcome.answer), std::move(error), trial.tries};
    }
    ++trial.tries;
    if (next == Next::kAgainNow) continue;
    const int cost = next == Next::kAgainAfterTimeout ? RetryQuota::kTimeoutCost : RetryQuota::kRetryCost;
    const double wait_s = back_off_.wait_s(trial.tries - 1);
    const double used_s = static_cast<double>(clock_.monotonic_ns() - trial.start_ns) * 1e-9;
    --trial.tries;
    if (trial.tries >= settings_.limits.max_tries) return give_up("");
    const double budget_s =
        has_succeeded_ ? settings_.limits.budget_s : std::min(settings_.limits.budget_s, kFirstBudget_s);
    if (used_s + wait_s > budget_s) return give_up(", which is all the time there is");
    if (!quota_.spend(cost)) return give_up(", and too many others failed as well");
    ++trial.tries;
    trial.spent += cost;
    ++retries_;
    pause(wait_s);
  }
}

Error S3Client::to_error(std::string_view action, std::string_view key, const S3Answer& answer) const {
  const int status = answer.http.status;
  const std::string code = shown_code(answer.error);
  const std::string what = fmt::format("{} {}", action, describe(key));
  if (status == 404 && answer.error.code == "NoSuchBucket") {
    return io_error("{}: the bucket '{}' does not exist; buckets are never created here", what, address().bucket);
  }
  if (status == 404) return not_found_error("{}: no such object{}", what, code);
  if (status == 412) return invalid_error("{}: there is something at that name already", what);
  if (status == 401 || status == 403) {
    return io_error("{}: access refused, status {}{}; check the credentials, their permissions and the bucket", what,
                    status, code);
  }
  if (status == 301 || status == 307) {
    return io_error("{}: the bucket is in another region, status {}{}; set AWS_REGION", what, status, code);
  }
  return io_error("{}: the service answered {}{}{}", what, status, code,
                  answer.tries > 1 ? fmt::format(" to the last of {} tries", answer.tries) : std::string());
}

}  // namespace tornasole::store::s3
