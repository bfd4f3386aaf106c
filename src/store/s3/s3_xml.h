#pragma once

// The answers of S3, which are XML of a small kind: elements, text, the five named entities and numbers. What is
// outside that (document types, processing instructions inside, unclosed elements, depth over 16) is an error, so
// nothing is ever expanded or fetched.

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::store::s3 {

struct XmlElement {
  std::string name;  // without a namespace prefix
  std::string text;  // of the element itself
  std::vector<XmlElement> children = {};

  const XmlElement* find(std::string_view child) const noexcept;
  std::string_view text_of(std::string_view child) const noexcept;  // "" if there is none
};
// kCorrupt with the offset of what is wrong.
Result<XmlElement> parse_xml(std::string_view text);

struct ListedObject {
  std::string key;
  std::uint64_t size_bytes = 0;
  double modified_s = 0;  // whole seconds, as everywhere else in S3
  std::string etag = {};  // without quotes
};
struct Listing {
  std::vector<ListedObject> objects = {};
  std::vector<std::string> prefixes = {};  // common ones, with the delimiter at the end
  std::optional<std::string> next_token = {};
};
Result<Listing> parse_listing(std::string_view text);

struct ServiceError {
  std::string code;
  std::string message;
};
// Whatever can be understood; both empty if nothing can.
ServiceError parse_service_error(std::string_view text);

// An entity tag without its quotes; empty if it is longer than any, or not made of printable ASCII.
std::string parse_etag(std::string_view text);

// 2009-10-12T17:50:30.000Z or "Mon, 12 Oct 2009 17:50:30 GMT", since 1970.
std::optional<double> parse_iso_time(std::string_view text);
std::optional<double> parse_http_time(std::string_view text);

}  // namespace tornasole::store::s3
