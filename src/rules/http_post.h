#pragma once

// A POST over HTTP, one request for each connection; https is spoken by curl.

#include <string>
#include <string_view>

#include "tornasole/result.h"

namespace tornasole::rules {

struct HttpUrl {
  bool is_secure = false;
  std::string authority = {};  // as it was given: host, or host:port
  std::string host = {};       // without the brackets of an IPv6 address
  std::string port = "80";
  std::string target = "/";
};

// kInvalid for anything but http[s]://host[:port][/path][?query].
Result<HttpUrl> parse_http_url(std::string_view url);

// An error unless the server answers with a code from 200 to 299 in time. Redirects are not followed: they are an error
// that says so. An https address needs the program curl.
Status post_json(const HttpUrl& url, std::string_view json, double timeout_s);

}  // namespace tornasole::rules
