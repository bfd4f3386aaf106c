#pragma once

// Who asks: credentials and region from the places every AWS tool looks in, in this order:
//
//   1. AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, AWS_SESSION_TOKEN
//   2. web identity: AWS_WEB_IDENTITY_TOKEN_FILE and AWS_ROLE_ARN, traded at the token service
//   3. the profile (AWS_PROFILE, or default) of the shared files: keys, or a role with a web identity token
//   4. the container's endpoint: AWS_CONTAINER_CREDENTIALS_RELATIVE_URI or _FULL_URI
//   5. the instance's metadata service, version 2, unless AWS_EC2_METADATA_DISABLED is true
//
// What is found is kept until five minutes before it expires. No message holds a part of it.

#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "base/clock.h"
#include "store/s3/http_exchange.h"
#include "store/s3/sigv4.h"
#include "tornasole/result.h"

namespace tornasole::store::s3 {

// The environment as the caller sees it; the store reads none of its own.
struct S3Environment {
  // A variable that is set and not empty.
  std::function<std::optional<std::string>(std::string_view name)> variable;
  // A file of at most so many bytes; kNotFound if there is none.
  std::function<Result<std::string>(const std::string& path, std::size_t max_bytes)> read_file;

  std::optional<std::string> get(std::string_view name) const { return variable ? variable(name) : std::nullopt; }
};

// Section -> key -> value of the shared files. Lines that are neither are left out.
using IniSections = std::map<std::string, std::map<std::string, std::string>, std::less<>>;
IniSections parse_ini(std::string_view text);

// The settings of the chosen profile, of both files; those of the credentials file win.
std::map<std::string, std::string> read_profile(const S3Environment& environment);

// AWS_REGION, AWS_DEFAULT_REGION, the profile; nothing if none says.
std::optional<std::string> find_region(const S3Environment& environment);
// AWS_ENDPOINT_URL_S3, AWS_ENDPOINT_URL, the profile's endpoint_url, unless AWS_IGNORE_CONFIGURED_ENDPOINT_URLS.
std::optional<std::string> find_endpoint_url(const S3Environment& environment);

class CredentialChain {
 public:
  // Both must outlive the chain.
  CredentialChain(S3Environment environment, HttpClient* http, const Clock* clock)
      : environment_(std::move(environment)), http_(*http), clock_(*clock) {}

  // From any thread; at most one looks, the others wait for it.
  Result<Credentials> get();
  // The service refused them: the next get looks again.
  void forget();

 private:
  Result<Credentials> find();
  std::optional<Credentials> from_environment() const;
  Result<Credentials> from_web_identity(const std::string& token_file, const std::string& role,
                                        const std::string& session_name);
  Result<Credentials> from_profile();
  Result<Credentials> from_container();
  Result<Credentials> from_instance();
  Result<Credentials> fetch_json(HttpRequest request, std::string_view who);

  // constant
  const S3Environment environment_;
  HttpClient& http_;
  const Clock& clock_;

  std::mutex mutex_;
  std::optional<Credentials> found_;  // guarded by mutex_
};

}  // namespace tornasole::store::s3
