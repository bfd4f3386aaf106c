#include "store/s3/s3_address.h"

#include <algorithm>
#include <cctype>

#include "base/errors.h"

namespace tornasole::store::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";

bool is_lower_or_digit(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); }
bool is_unreserved(char c) {
  return is_lower_or_digit(c) || (c >= 'A' && c <= 'Z') || c == '-' || c == '.' || c == '_' || c == '~';
}

std::string escape(std::string_view text, bool keep_slashes) {
  constexpr char kDigits[] = "0123456789ABCDEF";
  std::string escaped;
  escaped.reserve(text.size() + 16);
  for (const char c : text) {
    if (is_unreserved(c) || (keep_slashes && c == '/')) {
      escaped.push_back(c);
    } else {
      const auto value = static_cast<unsigned char>(c);
      escaped.push_back('%');
      escaped.push_back(kDigits[value >> 4U]);
      escaped.push_back(kDigits[value & 15U]);
    }
  }
  return escaped;
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// Old buckets have upper case and underscores; what matters is that nothing else can get into a host or a path.
bool is_bucket_name(std::string_view name) {
  return name.size() >= 3 && name.size() <= 255 && name.find("..") == std::string_view::npos && name.front() != '.' &&
         name.back() != '.' && std::ranges::all_of(name, is_unreserved) && name.find('~') == std::string_view::npos;
}

// A name that may be the first label of a host: TLS certificates cover one label, so no dots.
bool is_host_label(std::string_view name) {
  return name.size() <= 63 && std::ranges::all_of(name, [](char c) { return is_lower_or_digit(c) || c == '-'; }) &&
         name.front() != '-' && name.back() != '-';
}

bool is_host(std::string_view host) {
  return !host.empty() && host.size() <= 255 && std::ranges::all_of(host, [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '.' || c == '-' || c == ':' || c == '[' ||
           c == ']' || c == '_';
  });
}

}  // namespace

Result<Address> parse_address(std::string_view location) {
  if (!location.starts_with(kScheme)) return invalid_error("'{}' is not s3://<bucket>/<prefix>", location);
  std::string_view rest = location.substr(kScheme.size());
  const std::size_t slash = rest.find('/');
  const std::string_view bucket = rest.substr(0, slash);
  if (!is_bucket_name(bucket)) {
    return invalid_error("'{}': '{}' cannot be a bucket; allowed: 3 to 255 letters, digits and . _ -", location,
                         bucket);
  }
  std::string prefix;
  rest = slash == std::string_view::npos ? std::string_view() : rest.substr(slash);
  for (const char c : rest) {
    if (c == '/' && (prefix.empty() || prefix.back() == '/')) continue;
    prefix.push_back(c);
  }
  while (!prefix.empty() && prefix.back() == '/') prefix.pop_back();
  if (prefix.size() > 900 || prefix.find('\0') != std::string::npos) {
    return invalid_error("'{}': a prefix has at most 900 bytes and no NUL", location.substr(0, 100));
  }
  return Address{std::string(bucket), std::move(prefix)};
}

std::string escape_path(std::string_view path) { return escape(path, /*keep_slashes=*/true); }
std::string escape_query(std::string_view text) { return escape(text, /*keep_slashes=*/false); }

std::optional<std::string> unescape(std::string_view text) {
  std::string plain;
  plain.reserve(text.size());
  for (std::size_t at = 0; at < text.size(); ++at) {
    if (text[at] != '%') {
      plain.push_back(text[at]);
      continue;
    }
    if (at + 2 >= text.size()) return std::nullopt;
    const int high = hex_value(text[at + 1]);
    const int low = hex_value(text[at + 2]);
    if (high < 0 || low < 0) return std::nullopt;
    plain.push_back(static_cast<char>(high * 16 + low));
    at += 2;
  }
  return plain;
}

std::string Endpoint::host_for(std::string_view bucket) const {
  return is_virtual_host ? fmt::format("{}.{}", bucket, host) : host;
}

std::string Endpoint::path_for(std::string_view bucket, std::string_view key) const {
  const std::string escaped = escape_path(key);
  if (is_virtual_host) return fmt::format("{}/{}", base_path, escaped);
  // Without a key there is no slash either: some servers take "bucket/" for a key.
  return key.empty() ? fmt::format("{}/{}", base_path, bucket) : fmt::format("{}/{}/{}", base_path, bucket, escaped);
}

bool is_loopback(std::string_view host) {
  if (host.starts_with("[::1]")) return true;
  const std::string_view name = host.substr(0, host.find(':'));
  if (name == "localhost") return true;
  if (!name.starts_with("127.")) return false;
  return std::ranges::count(name, '.') == 3 &&
         std::ranges::all_of(name, [](char c) { return c == '.' || (c >= '0' && c <= '9'); });
}

Result<Url> parse_url(std::string_view text) {
  // Whatever is wrong, the text is not repeated: it may hold a password.
  const std::size_t colon = text.find("://");
  Url url;
  if (colon != std::string_view::npos) url.scheme = std::string(text.substr(0, colon));
  if (url.scheme != "http" && url.scheme != "https") return invalid_error("a URL must start with http:// or https://");
  const std::string_view rest = text.substr(colon + 3);
  const std::size_t slash = rest.find('/');
  url.host = std::string(rest.substr(0, slash));
  if (!is_host(url.host)) return invalid_error("a URL must be <scheme>://<host>[:<port>][/<path>]");
  std::ranges::transform(url.host, url.host.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  url.path = slash == std::string_view::npos ? "" : std::string(rest.substr(slash));
  if (url.path.find_first_of("?#") != std::string::npos || url.path.find('\n') != std::string::npos) {
    return invalid_error("a URL here has no query and no fragment");
  }
  return url;
}

Result<Endpoint> make_endpoint(std::string_view bucket, const EndpointOptions& options) {
  if (options.addressing != "auto" && options.addressing != "path" && options.addressing != "virtual") {
    return invalid_error("S3 addressing: '{}' is not allowed; allowed: auto, path, virtual", options.addressing);
  }
  if (options.region.empty() || !is_host_label(options.region)) {
    return invalid_error("AWS region: '{}' is not allowed; allowed: lower-case letters, digits and -", options.region);
  }
  Endpoint endpoint;
  if (!options.url) {
    const bool is_china = options.region.starts_with("cn-");
    endpoint.host = fmt::format("s3.{}.amazonaws.com{}", options.region, is_china ? ".cn" : "");
    endpoint.is_virtual_host = options.addressing != "path" && is_host_label(bucket);
    return endpoint;
  }
  auto url = parse_url(*options.url);
  if (!url.ok()) return invalid_error("S3 endpoint: {}", url.error().message);
  if (url->scheme == "http" && !options.allow_http && !is_loopback(url->host)) {
    return invalid_error(
        "S3 endpoint: plain http to {} would show the data to the network; allowed: https, http to this host, or "
        "TORNASOLE_S3_ALLOW_HTTP=1",
        url->host);
  }
  while (!url->path.empty() && url->path.back() == '/') url->path.pop_back();
  endpoint.scheme = url->scheme;
  endpoint.host = url->host;
  endpoint.base_path = escape_path(url->path);
  endpoint.is_virtual_host = options.addressing == "virtual" && is_host_label(bucket);
  return endpoint;
}

}  // namespace tornasole::store::s3
