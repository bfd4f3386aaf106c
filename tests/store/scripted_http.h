#pragma once

// An HttpClient whose answers are a function of the test's own.

#include <functional>
#include <mutex>
#include <string>
#include <vector>

#include "store/s3/http_exchange.h"

namespace tornasole::store::s3 {

inline HttpOutcome answer(int status, std::string body = "",
                          std::map<std::string, std::string, std::less<>> headers = {}) {
  HttpOutcome outcome;
  outcome.is_answered = true;
  outcome.answer = {status, std::move(headers), std::move(body)};
  return outcome;
}
inline HttpOutcome no_answer(HttpFailure::Kind kind) {
  HttpOutcome outcome;
  outcome.failure = {kind, "no answer"};
  return outcome;
}

class ScriptedHttp final : public HttpClient {
 public:
  using Script = std::function<HttpOutcome(const HttpRequest& request, std::size_t number)>;
  struct Log {
    std::vector<HttpRequest> requests = {};  // without bodies
    std::vector<std::string> bodies = {};
  };

  ScriptedHttp(Script script, Log* log) : script_(std::move(script)), log_(*log) {}
  HttpOutcome send(const HttpRequest& request) override {
    const std::lock_guard lock(mutex_);
    log_.requests.push_back(request);
    log_.bodies.emplace_back(request.body);
    log_.requests.back().body = {};
    return script_(request, log_.requests.size());
  }

 private:
  std::mutex mutex_;
  Script script_;
  Log& log_;
};

inline std::string header_of(const HttpRequest& request, std::string_view name) {
  for (const auto& [key, value] : request.headers) {
    if (key == name) return value;
  }
  return {};
}

}  // namespace tornasole::store::s3
