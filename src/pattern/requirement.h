#pragma once

// Requirement: the cheapest thing to ask of a name before a pattern is tried on it. Small and flat, so that a list of
// them is read in one go: most names fail most patterns, and fail them here.

#include <cstdint>
#include <cstring>
#include <string_view>

#include "pattern/text_search.h"

namespace tornasole::pattern {

struct Requirement {
  enum class Kind : std::uint8_t {
    kNone,       // nothing known
    kText,       // the name contains the text
    kPrefix,     // the name begins with the text
    kFirstByte,  // the name begins with one of the bytes
  };
  static constexpr std::size_t kMaxLength = 14;

  Kind kind = Kind::kNone;
  bool is_enough = false;  // a name without line feeds that meets it is a match
  std::uint8_t length = 0;
  std::uint8_t refused_length = 0;
  char text[kMaxLength] = {};
  char refused[kMaxLength] = {};  // the name must not begin with it; if its length is not 0

  // A longer text is cut, which makes it ask for less; too many first bytes make it ask for nothing.
  void append(char byte) noexcept {
    if (length < kMaxLength) {
      text[length++] = byte;
    } else if (kind == Kind::kFirstByte) {
      kind = Kind::kNone;
    }
  }

  // Inlined into the walk along a list of them, where the call would cost as much as the answer.
  [[gnu::always_inline]] bool is_met_by(std::string_view name) const noexcept {
    switch (kind) {
      case Kind::kNone: break;
      case Kind::kText:
        if (find_text(name, {text, length}, 0) == name.npos) return false;
        break;
      case Kind::kPrefix:
        if (!begins_with(name, text, length)) return false;
        break;
      case Kind::kFirstByte:
        if (name.empty() || !contains_byte(*name.data())) return false;
        break;
    }
    return refused_length == 0 || !begins_with(name, refused, refused_length);
  }

 private:
  // The first byte settles nearly all of them, without a call.
  static bool begins_with(std::string_view name, const char* start, std::size_t size) noexcept {
    return name.size() >= size && *name.data() == *start && std::memcmp(name.data(), start, size) == 0;
  }
  bool contains_byte(char byte) const noexcept {
    for (std::uint8_t i = 0; i < length; ++i) {
      if (text[i] == byte) return true;
    }
    return false;
  }
};

}  // namespace tornasole::pattern
