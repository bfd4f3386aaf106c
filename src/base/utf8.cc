#include "base/utf8.h"

#include <fmt/format.h>

#include <cstdint>

namespace tornasole {
namespace {

struct Decoded {
  std::uint32_t code_point = 0;
  std::size_t length = 0;  // bytes looked at; of the bad sequence when it is one
  bool is_good = false;
};

Decoded decode_one(std::string_view text) noexcept {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned char first = byte(0);
  if (first < 0x80) return {first, 1, true};
  std::size_t length = 0;
  std::uint32_t code_point = 0;
  unsigned char low = 0x80;  // bounds of the second byte exclude overlong forms, surrogates, and beyond U+10FFFF
  unsigned char high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
    code_point = first & 0x1FU;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    code_point = first & 0x0FU;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    code_point = first & 0x07U;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return {0, 1, false};
  }
  for (std::size_t i = 1; i < length; ++i) {
    if (i >= text.size() || byte(i) < low || byte(i) > high) return {0, i, false};
    code_point = (code_point << 6) | (byte(i) & 0x3FU);
    low = 0x80;
    high = 0xBF;
  }
  return {code_point, length, true};
}

bool is_unsafe_to_print(std::uint32_t c) noexcept {
  if (c < 0x20 || (c >= 0x7F && c < 0xA0)) return true;
  return (c >= 0x200B && c <= 0x200F) || (c >= 0x2028 && c <= 0x202E) || (c >= 0x2066 && c <= 0x2069) || c == 0xFEFF;
}

}  // namespace

bool is_valid_utf8(std::string_view text) noexcept {
  while (!text.empty()) {
    const Decoded next = decode_one(text);
    if (!next.is_good) return false;
    text.remove_prefix(next.length);
  }
  return true;
}

std::string replace_bad_utf8(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = decode_one(text);
    out += next.is_good ? text.substr(0, next.length) : std::string_view("\xEF\xBF\xBD");
    text.remove_prefix(next.length);
  }
  return out;
}

std::string printable(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Decoded next = decode_one(text);
    if (!next.is_good) {
      for (const char bad : text.substr(0, next.length))
        out += fmt::format("\\x{:02x}", static_cast<unsigned char>(bad));
    } else if (is_unsafe_to_print(next.code_point)) {
      out += next.code_point < 0x100 ? fmt::format("\\x{:02x}", next.code_point)
                                     : fmt::format("\\u{:04x}", next.code_point);
    } else {
      out += text.substr(0, next.length);
    }
    text.remove_prefix(next.length);
  }
  return out;
}

}  // namespace tornasole
