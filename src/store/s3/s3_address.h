#pragma once

// Where a bucket is: `s3://bucket/prefix` taken apart, keys escaped, and the URL a request goes to.

#include <optional>
#include <string>
#include <string_view>

#include "tornasole/result.h"

namespace tornasole::store::s3 {

struct Address {
  std::string bucket = {};
  std::string prefix = {};  // "" or "a/b": no slash at either end, none repeated
};
// kInvalid unless it is s3://<bucket>/<prefix> with a bucket name that S3 allows; the prefix may be empty.
Result<Address> parse_address(std::string_view location);

// RFC 3986: everything but letters, digits and -._~ as %XX; slashes of a path stay.
std::string escape_path(std::string_view path);
std::string escape_query(std::string_view text);
// The reverse; nothing if a % is not followed by two hex digits. A plus stays a plus.
std::optional<std::string> unescape(std::string_view text);

// The service: scheme and host (with port), and how a bucket is put into a request.
struct Endpoint {
  std::string scheme = "https";
  std::string host;       // with a port unless it is the scheme's own
  std::string base_path;  // "" or "/below"
  bool is_virtual_host = true;

  std::string host_for(std::string_view bucket) const;
  // Escaped, starts with a slash.
  std::string path_for(std::string_view bucket, std::string_view key) const;
};
struct EndpointOptions {
  std::optional<std::string> url = {};  // unset: Amazon's own for the region
  std::string region = "us-east-1";
  std::string addressing = "auto";  // auto, path or virtual
  bool allow_http = false;          // plain HTTP to other hosts than this one
};
// kInvalid for a URL that is none, has credentials, a query or a fragment, or is plain HTTP to another host.
Result<Endpoint> make_endpoint(std::string_view bucket, const EndpointOptions& options);

// Whether a host (with or without a port) is this machine: localhost, 127.0.0.0/8, [::1].
bool is_loopback(std::string_view host);

struct Url {
  std::string scheme, host, path;
};
// http or https, without credentials, query or fragment.
Result<Url> parse_url(std::string_view text);

}  // namespace tornasole::store::s3
