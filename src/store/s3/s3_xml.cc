#include "store/s3/s3_xml.h"

#include <algorithm>
#include <charconv>
#include <ctime>
#include <utility>

#include "base/errors.h"
#include "store/s3/s3_address.h"
#include "store/store.h"

namespace tornasole::store::s3 {
namespace {

constexpr int kMaxDepth = 16;

bool is_space(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }
bool is_name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
         c == '.' || c == ':';
}

void append_utf8(std::uint32_t code, std::string* to) {
  if (code < 0x80) {
    to->push_back(static_cast<char>(code));
  } else if (code < 0x800) {
    to->push_back(static_cast<char>(0xC0U | (code >> 6U)));
    to->push_back(static_cast<char>(0x80U | (code & 0x3FU)));
  } else if (code < 0x10000) {
    to->push_back(static_cast<char>(0xE0U | (code >> 12U)));
    to->push_back(static_cast<char>(0x80U | ((code >> 6U) & 0x3FU)));
    to->push_back(static_cast<char>(0x80U | (code & 0x3FU)));
  } else {
    to->push_back(static_cast<char>(0xF0U | (code >> 18U)));
    to->push_back(static_cast<char>(0x80U | ((code >> 12U) & 0x3FU)));
    to->push_back(static_cast<char>(0x80U | ((code >> 6U) & 0x3FU)));
    to->push_back(static_cast<char>(0x80U | (code & 0x3FU)));
  }
}

class XmlReader {
 public:
  explicit XmlReader(std::string_view text) : text_(text) {}

  Result<XmlElement> read() {
    skip_space();
    if (take("<?xml")) TORNASOLE_CHECK(skip_past("?>"));
    skip_space();
    XmlElement root;
    TORNASOLE_CHECK(read_element(&root, 0));
    skip_space();
    if (at_ != text_.size()) return wrong("something after the end");
    return root;
  }

 private:
  Error wrong(std::string_view what) const { return corrupt_error("XML at byte {}: {}", at_, what); }
  bool is_done() const { return at_ >= text_.size(); }
  void skip_space() {
    while (!is_done() && is_space(text_[at_])) ++at_;
  }
  bool take(std::string_view expected) {
    if (!text_.substr(at_).starts_with(expected)) return false;
    at_ += expected.size();
    return true;
  }
  Status skip_past(std::string_view end) {
    const std::size_t found = text_.find(end, at_);
    if (found == std::string_view::npos) return wrong("it is cut");
    at_ = found + end.size();
    return {};
  }
  Result<std::string_view> read_name() {
    const std::size_t start = at_;
    while (!is_done() && is_name_char(text_[at_])) ++at_;
    if (at_ == start) return wrong("a name is missing");
    return text_.substr(start, at_ - start);
  }

  // Attributes carry nothing we want; they are checked for form only.
  Status skip_attributes() {
    while (true) {
      skip_space();
      if (is_done()) return wrong("it is cut");
      if (text_[at_] == '>' || text_[at_] == '/') return {};
      TORNASOLE_CHECK(read_name());
      skip_space();
      if (!take("=")) return wrong("an attribute without a value");
      skip_space();
      if (is_done() || (text_[at_] != '"' && text_[at_] != '\'')) return wrong("an attribute without quotes");
      const char quote = text_[at_++];
      TORNASOLE_CHECK(skip_past(std::string_view(&quote, 1)));
    }
  }

  Status read_entity(std::string* to) {
    const std::size_t end = text_.find(';', at_);
    if (end == std::string_view::npos || end - at_ > 10) return wrong("an entity without an end");
    const std::string_view name = text_.substr(at_, end - at_);
    constexpr std::pair<std::string_view, char> kNamed[] = {
        {"lt", '<'}, {"gt", '>'}, {"amp", '&'}, {"quot", '"'}, {"apos", '\''}};
    bool is_known = false;
    for (const auto& [known, character] : kNamed) {
      if (name != known) continue;
      to->push_back(character);
      is_known = true;
    }
    if (!is_known) {
      const bool is_hex = name.starts_with("#x");
      if (!name.starts_with("#")) return wrong("an unknown entity");
      const std::string_view digits = name.substr(is_hex ? 2 : 1);
      std::uint32_t code = 0;
      const auto parsed = std::from_chars(digits.data(), digits.data() + digits.size(), code, is_hex ? 16 : 10);
      const bool is_character = code != 0 && code < 0x110000 && (code < 0xD800 || code > 0xDFFF);
      if (parsed.ec != std::errc() || parsed.ptr != digits.data() + digits.size() || !is_character) {
        return wrong("an entity that is no character");
      }
      append_utf8(code, to);
    }
    at_ = end + 1;
    return {};
  }

  Status read_element(XmlElement* element, int depth) {
    if (depth > kMaxDepth) return wrong("nested too deep");
    if (!take("<")) return wrong("an element is missing");
    TORNASOLE_TRY(const std::string_view name, read_name());
    const std::size_t colon = name.rfind(':');
    element->name = std::string(colon == std::string_view::npos ? name : name.substr(colon + 1));
    TORNASOLE_CHECK(skip_attributes());
    if (take("/>")) return {};
    if (!take(">")) return wrong("a tag without an end");
    while (true) {
      if (is_done()) return wrong("it is cut");
      if (take("</")) {
        TORNASOLE_TRY(const std::string_view closed, read_name());
        if (closed != name) return wrong("the wrong element is closed");
        skip_space();
        if (!take(">")) return wrong("a tag without an end");
        return {};
      }
      if (take("&")) {
        TORNASOLE_CHECK(read_entity(&element->text));
      } else if (text_[at_] == '<') {
        TORNASOLE_CHECK(read_element(&element->children.emplace_back(), depth + 1));
      } else {
        element->text.push_back(text_[at_++]);
      }
    }
  }

  std::string_view text_;
  std::size_t at_ = 0;
};

template <typename Number>
bool to_number(std::string_view text, Number* number) {
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), *number);
  return parsed.ec == std::errc() && parsed.ptr == text.data() + text.size();
}

double from_utc(std::tm parts) { return static_cast<double>(timegm(&parts)); }

}  // namespace

const XmlElement* XmlElement::find(std::string_view child) const noexcept {
  for (const XmlElement& element : children) {
    if (element.name == child) return &element;
  }
  return nullptr;
}

std::string_view XmlElement::text_of(std::string_view child) const noexcept {
  const XmlElement* element = find(child);
  return element == nullptr ? std::string_view() : std::string_view(element->text);
}

Result<XmlElement> parse_xml(std::string_view text) { return XmlReader(text).read(); }

std::optional<double> parse_iso_time(std::string_view text) {
  std::tm parts{};
  if (text.size() < 20 || text.back() != 'Z' || text[4] != '-' || text[7] != '-' || text[10] != 'T' ||
      text[13] != ':' || text[16] != ':' || (text[19] != '.' && text[19] != 'Z')) {
    return std::nullopt;
  }
  const bool is_sound = to_number(text.substr(0, 4), &parts.tm_year) && to_number(text.substr(5, 2), &parts.tm_mon) &&
                        to_number(text.substr(8, 2), &parts.tm_mday) && to_number(text.substr(11, 2), &parts.tm_hour) &&
                        to_number(text.substr(14, 2), &parts.tm_min) && to_number(text.substr(17, 2), &parts.tm_sec);
  if (!is_sound || parts.tm_mon < 1 || parts.tm_mon > 12) return std::nullopt;
  parts.tm_year -= 1900;
  parts.tm_mon -= 1;
  return from_utc(parts);
}

std::optional<double> parse_http_time(std::string_view text) {
  constexpr std::string_view kMonths = "JanFebMarAprMayJunJulAugSepOctNovDec";
  // "Mon, 12 Oct 2009 17:50:30 GMT"
  if (text.size() != 29 || !text.ends_with(" GMT")) return std::nullopt;
  std::tm parts{};
  const std::size_t month = kMonths.find(text.substr(8, 3));
  const bool is_sound = month != std::string_view::npos && month % 3 == 0 &&
                        to_number(text.substr(5, 2), &parts.tm_mday) && to_number(text.substr(12, 4), &parts.tm_year) &&
                        to_number(text.substr(17, 2), &parts.tm_hour) && to_number(text.substr(20, 2), &parts.tm_min) &&
                        to_number(text.substr(23, 2), &parts.tm_sec);
  if (!is_sound) return std::nullopt;
  parts.tm_mon = static_cast<int>(month / 3);
  parts.tm_year -= 1900;
  return from_utc(parts);
}

std::string parse_etag(std::string_view text) {
  if (text.size() >= 2 && text.front() == '"' && text.back() == '"') text = text.substr(1, text.size() - 2);
  const bool is_plain = std::ranges::all_of(text, [](char c) { return c > ' ' && c <= '~'; });
  return is_plain && text.size() <= kMaxVersionBytes ? std::string(text) : std::string();
}

Result<Listing> parse_listing(std::string_view text) {
  TORNASOLE_TRY(const XmlElement root, parse_xml(text));
  if (root.name != "ListBucketResult") return corrupt_error("XML: a listing is not called '{}'", root.name);
  const bool is_escaped = root.text_of("EncodingType") == "url";
  const auto plain = [is_escaped](std::string_view key) -> Result<std::string> {
    if (!is_escaped) return std::string(key);
    // The one place where a plus is a blank: the service escapes keys as forms do.
    std::string spaced(key);
    for (char& c : spaced) {
      if (c == '+') c = ' ';
    }
    if (auto decoded = unescape(spaced)) return *decoded;
    return corrupt_error("XML: a key that cannot be unescaped");
  };
  Listing listing;
  for (const XmlElement& element : root.children) {
    if (element.name == "Contents") {
      ListedObject& object = listing.objects.emplace_back();
      TORNASOLE_TRY(object.key, plain(element.text_of("Key")));
      const auto modified = parse_iso_time(element.text_of("LastModified"));
      if (object.key.empty() || !modified || !to_number(element.text_of("Size"), &object.size_bytes)) {
        return corrupt_error("XML: a listed object without key, size or time");
      }
      object.modified_s = *modified;
      object.etag = parse_etag(element.text_of("ETag"));
    } else if (element.name == "CommonPrefixes") {
      TORNASOLE_TRY(listing.prefixes.emplace_back(), plain(element.text_of("Prefix")));
    }
  }
  if (root.text_of("IsTruncated") == "true") {
    listing.next_token = std::string(root.text_of("NextContinuationToken"));
    if (listing.next_token->empty()) return corrupt_error("XML: a cut listing without a token for the rest");
  }
  return listing;
}

ServiceError parse_service_error(std::string_view text) {
  const auto root = parse_xml(text);
  if (!root.ok()) return {};
  const XmlElement* error = root->name == "Error" ? &*root : root->find("Error");
  if (error == nullptr) return {};
  return {std::string(error->text_of("Code")), std::string(error->text_of("Message"))};
}

}  // namespace tornasole::store::s3
