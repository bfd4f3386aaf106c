#pragma once

// Glob: the patterns that are nothing but texts with `.*` between them, which most are, matched without a regular
// expression engine. Exactly equal to the pattern, or not made.

#include <array>
#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pattern/python_regex.h"
#include "pattern/requirement.h"

namespace tornasole::pattern {

class Glob {
 public:
  // Unset when the pattern is more than this: texts, sets of ASCII characters, .*, ^ in front, $ at the end, look-ahead
  // at texts, and alternatives of those.
  static std::optional<Glob> make(const Regex& regex);

  // For a name without line feeds, which `.` would not match.
  bool search(std::string_view name) const noexcept;
  Requirement requirement() const;

 private:
  struct Look {
    struct Text {
      std::string text = {};
      bool is_at_end = false;  // followed by $
    };
    std::vector<Text> texts = {};
    bool is_negated = false;
    std::size_t offset = 0;  // in the segment
  };
  struct Set {
    std::bitset<128> members = {};
    std::size_t offset = 0;
  };
  // A stretch of fixed length: a text, some of whose places are sets instead.
  struct Segment {
    std::string text = {};  // a zero byte where a set is
    std::vector<Set> sets = {};
    std::vector<Look> looks = {};
    std::size_t anchor_offset = 0;  // the longest stretch of plain text: what is searched for
    std::size_t anchor_length = 0;
  };
  struct Line {
    std::vector<Segment> segments = {};  // with .* between them
    bool is_at_start = false;
    bool is_at_end = false;
  };

  friend class GlobBuilder;
  static bool matches_at(const Segment& segment, std::string_view name, std::size_t at) noexcept;
  static std::size_t find(const Segment& segment, std::string_view name, std::size_t from) noexcept;
  static bool add_refusal(const Line& line, Requirement* required);
  static bool search(const Line& line, std::string_view name) noexcept;

  std::vector<Line> lines_;  // alternatives
};

}  // namespace tornasole::pattern
