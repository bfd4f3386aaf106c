#pragma once

// One HTTP exchange, and whoever performs it. Headers of an answer have lower-case names.

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "tornasole/result.h"

namespace tornasole::store::s3 {

struct HttpRequest {
  std::string method = "GET";
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers = {};
  ByteView body = {};  // borrowed for the call
  std::uint64_t max_answer_bytes = std::uint64_t{16} << 20U;
  double connect_timeout_s = 5;
  double idle_timeout_s = 30;  // without a byte either way
  double total_timeout_s = 0;  // 0: none
  bool may_use_proxy = true;
};

struct HttpAnswer {
  int status = 0;
  std::map<std::string, std::string, std::less<>> headers = {};
  Bytes body = {};

  std::string_view header(std::string_view name) const {
    const auto found = headers.find(name);
    return found == headers.end() ? std::string_view() : std::string_view(found->second);
  }
};

// Why there is no answer. The message never holds a header or a body.
struct HttpFailure {
  enum class Kind { kConnect, kTimeout, kBroken, kTooLong, kCancelled };
  Kind kind = Kind::kBroken;
  std::string message = {};
};
struct HttpOutcome {
  HttpAnswer answer = {};
  bool is_answered = false;
  HttpFailure failure = {};  // if it is not
};

class HttpClient {
 public:
  virtual ~HttpClient() = default;
  // May be called from many threads at once. An answer with an error status is an answer.
  virtual HttpOutcome send(const HttpRequest& request) = 0;
  // Every exchange, running or to come, ends at once with kCancelled.
  virtual void cancel() noexcept {}
};

// On libcurl, which is looked for when this is called and not before: a process that never speaks to an object store
// does not even load it. kUnsupported if it is not there.
Result<std::unique_ptr<HttpClient>> open_curl_client(const std::string& certificates_file);

}  // namespace tornasole::store::s3
