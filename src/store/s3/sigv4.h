#pragma once

// AWS Signature Version 4 in the Authorization header.
//
//   1. canonical request: method, path, sorted query, sorted headers, their names, hash of the body
//   2. text to sign: algorithm, time, scope (day/region/service/aws4_request), hash of 1
//   3. key: HMAC chain over day, region, service
//   4. Authorization: scope, names of the signed headers, HMAC of 2

#include <fmt/core.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tornasole::store::s3 {

// A text that prints as ***, is wiped when it goes, and can be read only by who says so.
class Secret {
 public:
  Secret() = default;
  explicit Secret(std::string text) : text_(std::move(text)) {}
  Secret(const Secret&) = default;
  Secret& operator=(const Secret&) = default;
  ~Secret();

  const std::string& reveal() const noexcept { return text_; }
  bool empty() const noexcept { return text_.empty(); }

 private:
  std::string text_;
};

struct Credentials {
  std::string access_key_id;  // not secret, but not shown either
  Secret secret_key;
  Secret session_token = {};
  double expires_s = 0;  // since 1970; 0: never
};

struct SigningInput {
  std::string method;
  std::string path;                                             // escaped
  std::vector<std::pair<std::string, std::string>> query = {};  // plain
  std::vector<std::pair<std::string, std::string>> headers;     // with host; names in lower case
  std::string payload_hash;                                     // hex, or UNSIGNED-PAYLOAD
  std::string region;
  std::string service = "s3";
  std::string amz_date;  // 20130524T000000Z
};

// Sorted and escaped: what goes behind the '?'.
std::string canonical_query(std::vector<std::pair<std::string, std::string>> query);
// The value of the Authorization header.
std::string sign(const SigningInput& input, const Credentials& credentials);

// 20130524T000000Z
std::string amz_date(double seconds);

}  // namespace tornasole::store::s3

template <>
struct fmt::formatter<tornasole::store::s3::Secret> : fmt::formatter<std::string_view> {
  template <typename Context>
  auto format(const tornasole::store::s3::Secret&, Context& context) const {
    return fmt::formatter<std::string_view>::format("***", context);
  }
};
