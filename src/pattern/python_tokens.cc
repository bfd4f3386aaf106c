#include "pattern/python_tokens.h"

namespace tornasole::pattern {

Token TokenReader::peek() const noexcept {
  if (at_ >= text_.size()) return {.is_end = true};
  if (text_[at_] != U'\\') return {.code = text_[at_]};
  if (at_ + 1 >= text_.size()) return {.is_end = true};
  return {.is_escape = true, .code = text_[at_ + 1]};
}

Token TokenReader::get() noexcept {
  const Token token = peek();
  if (!token.is_end) at_ += token.is_escape ? 2 : 1;
  return token;
}

bool TokenReader::match(char32_t plain) noexcept {
  if (!peek().is(plain)) return false;
  ++at_;
  return true;
}

std::u32string TokenReader::get_while(std::size_t most, std::u32string_view set) {
  std::u32string taken;
  while (taken.size() < most) {
    const Token token = peek();
    if (token.is_end || token.is_escape || set.find(token.code) == set.npos) break;
    taken += token.code;
    ++at_;
  }
  return taken;
}

bool TokenReader::ends_in_escape() const noexcept {
  bool is_escape = false;
  for (const char32_t code : text_) is_escape = !is_escape && code == U'\\';
  return is_escape;
}

std::u32string decode_utf8(std::string_view text) {
  std::u32string decoded;
  decoded.reserve(text.size());
  std::size_t i = 0;
  while (i < text.size()) {
    const auto first = static_cast<unsigned char>(text[i]);
    const std::size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
    char32_t code = length == 1 ? first : first & (0x7FU >> length);
    for (std::size_t k = 1; k < length && i + k < text.size(); ++k) {
      code = (code << 6) | (static_cast<unsigned char>(text[i + k]) & 0x3FU);
    }
    decoded += code;
    i += length;
  }
  return decoded;
}

void append_utf8(std::string* out, char32_t code) {
  if (code < 0x80) {
    *out += static_cast<char>(code);
  } else if (code < 0x800) {
    *out += static_cast<char>(0xC0 | (code >> 6));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  } else if (code < 0x10000) {
    *out += static_cast<char>(0xE0 | (code >> 12));
    *out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  } else {
    *out += static_cast<char>(0xF0 | (code >> 18));
    *out += static_cast<char>(0x80 | ((code >> 12) & 0x3F));
    *out += static_cast<char>(0x80 | ((code >> 6) & 0x3F));
    *out += static_cast<char>(0x80 | (code & 0x3F));
  }
}

std::string encode_utf8(std::u32string_view text) {
  std::string encoded;
  for (const char32_t code : text) append_utf8(&encoded, code);
  return encoded;
}

}  // namespace tornasole::pattern
