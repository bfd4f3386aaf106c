#include "store/s3/sigv4.h"

#include <algorithm>
#include <ctime>

#include <fmt/format.h>

#include "base/sha256.h"
#include "store/s3/s3_address.h"

namespace tornasole::store::s3 {
namespace {

constexpr std::string_view kAlgorithm = "AWS4-HMAC-SHA256";

// Outer blanks go, inner runs of blanks become one.
std::string trimmed(std::string_view value) {
  std::string clean;
  for (const char c : value) {
    if (c == ' ' && (clean.empty() || clean.back() == ' ')) continue;
    clean.push_back(c);
  }
  while (!clean.empty() && clean.back() == ' ') clean.pop_back();
  return clean;
}

}  // namespace

Secret::~Secret() {
  // Through volatile, so that it is not left out as a write nobody reads.
  for (volatile char* at = text_.data(); at != text_.data() + text_.size(); ++at) *at = '\0';
}

std::string canonical_query(std::vector<std::pair<std::string, std::string>> query) {
  for (auto& [name, value] : query) {
    name = escape_query(name);
    value = escape_query(value);
  }
  std::ranges::sort(query);
  std::string text;
  for (const auto& [name, value] : query) {
    if (!text.empty()) text.push_back('&');
    text += name;
    text.push_back('=');
    text += value;
  }
  return text;
}

std::string sign(const SigningInput& input, const Credentials& credentials) {
  auto headers = input.headers;
  std::ranges::sort(headers);
  std::string canonical_headers;
  std::string names;
  for (const auto& [name, value] : headers) {
    canonical_headers += fmt::format("{}:{}\n", name, trimmed(value));
    if (!names.empty()) names.push_back(';');
    names += name;
  }
  const std::string request = fmt::format("{}\n{}\n{}\n{}\n{}\n{}", input.method, input.path,
                                          canonical_query(input.query), canonical_headers, names, input.payload_hash);
  const std::string day = input.amz_date.substr(0, 8);
  const std::string scope = fmt::format("{}/{}/{}/aws4_request", day, input.region, input.service);
  const std::string text = fmt::format("{}\n{}\n{}\n{}", kAlgorithm, input.amz_date, scope, sha256_hex(request));

  // Every key of the chain is as good as the secret for its day.
  const Secret start("AWS4" + credentials.secret_key.reveal());
  const Secret of_day(hmac_sha256(start.reveal(), day));
  const Secret of_region(hmac_sha256(of_day.reveal(), input.region));
  const Secret of_service(hmac_sha256(of_region.reveal(), input.service));
  const Secret key(hmac_sha256(of_service.reveal(), "aws4_request"));
  return fmt::format("{} Credential={}/{},SignedHeaders={},Signature={}", kAlgorithm, credentials.access_key_id, scope,
                     names, to_hex(hmac_sha256(key.reveal(), text)));
}

std::string amz_date(double seconds) {
  const auto whole = static_cast<std::time_t>(seconds);
  std::tm parts{};
  gmtime_r(&whole, &parts);
  return fmt::format("{:04}{:02}{:02}T{:02}{:02}{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1, parts.tm_mday,
                     parts.tm_hour, parts.tm_min, parts.tm_sec);
}

}  // namespace tornasole::store::s3
