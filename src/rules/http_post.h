#pragma once

// A POST over plain HTTP/1.1, one request for each connection.

#include <string>
#include <string_view>

#include "tornasole/result.h"

namespace tornasole::rules {

struct HttpUrl {
  std::string authority = {};  // as it was given: host, or host:port
  std::string host = {};       // without the brackets of an IPv6 address
  std::string port = "80";
  std::string target = "/";
};

// kInvalid for anything but http://host[:port][/path][?query]; kUnsupported for https://.
Result<HttpUrl> parse_http_url(std::string_view url);

// An error unless the server answers with a code from 200 to 299 in time. Redirects are not followed: they are an error
// that says so.
Status post_json(const HttpUrl& url, std::string_view json, double timeout_s);

}  // namespace tornasole::rules
