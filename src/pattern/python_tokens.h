#pragma once

// A pattern cut into characters, a backslash taken together with the character after it.

#include <string>
#include <string_view>

#include "tornasole/result.h"

namespace tornasole::pattern {

struct Token {
  bool is_end = false;
  bool is_escape = false;
  char32_t code = 0;  // of an escape: the character after the backslash

  bool is(char32_t plain) const noexcept { return !is_end && !is_escape && code == plain; }
};

class TokenReader {
 public:
  explicit TokenReader(std::u32string text) : text_(std::move(text)) {}

  Token peek() const noexcept;
  Token get() noexcept;
  bool match(char32_t plain) noexcept;
  // Up to `most` plain characters of the set.
  std::u32string get_while(std::size_t most, std::u32string_view set);
  std::size_t position() const noexcept { return at_; }
  void seek(std::size_t position) noexcept { at_ = position; }
  // The pattern ends in a backslash that nothing follows.
  bool ends_in_escape() const noexcept;

 private:
  std::u32string text_;
  std::size_t at_ = 0;
};

// Valid UTF-8 only.
std::u32string decode_utf8(std::string_view text);
void append_utf8(std::string* out, char32_t code);
std::string encode_utf8(std::u32string_view text);

}  // namespace tornasole::pattern
