#pragma once

// Python's `re` syntax (3.11, str patterns), as a tree, and as a PCRE2 pattern that finds the same.
//
//   in:  the text of a pattern
//   out: a tree, or an error with the position that Python would name; then PCRE2 text and facts for quick matching
//   who: pattern.cc
//
// The tree is needed because the two dialects share most of their letters and few of their rules: what Python refuses
// PCRE2 often takes for something else (\h, \K, [[:alpha:]]), and \w, \s, ^ and (?i) mean slightly different things.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/result.h"

namespace tornasole::pattern {

struct RegexFlags {
  bool ignore_case = false;
  bool ascii = false;
  bool multiline = false;
  bool dot_all = false;
  bool verbose = false;
};

// Code points from `low` to `high`, or a category: one of d D w W s S.
struct RegexSetItem {
  std::uint32_t low = 0;
  std::uint32_t high = 0;
  char category = 0;
};

struct RegexNode;
using RegexSequence = std::vector<RegexNode>;

struct RegexNode {
  enum class Kind {
    kLiteral,      // code
    kAny,          // .
    kSet,          // items, is_negated
    kAt,           // position: ^ $ A Z b B
    kRepeat,       // branches[0], min, max, greed
    kGroup,        // branches; number is 0 when it does not capture
    kAtomic,       // branches
    kLook,         // branches, is_behind, is_negated
    kBackref,      // number
    kConditional,  // number; branches: yes, no
  };
  enum class Greed { kGreedy, kLazy, kPossessive };

  Kind kind = Kind::kLiteral;
  RegexFlags flags = {};
  std::uint32_t code = 0;
  std::vector<RegexSetItem> items = {};
  bool is_negated = false;
  bool is_behind = false;
  char position = 0;
  std::uint32_t min = 0;
  std::uint32_t max = 0;
  Greed greed = Greed::kGreedy;
  int number = 0;
  std::vector<RegexSequence> branches = {};
};

inline constexpr std::uint32_t kUnlimited = 0xFFFFFFFFU;

// How many characters a piece matches.
struct RegexWidth {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

struct Regex {
  std::vector<RegexSequence> branches = {};
  std::vector<RegexWidth> group_widths = {};  // by number; [0] unused
  bool has_backreference = false;             // or a conditional
};

// The tree of a pattern. Errors are kInvalid: what is wrong, "at position N" counted in characters.
Result<Regex> parse_python_regex(std::string_view pattern);

// `group_widths` of the groups closed so far.
RegexWidth regex_width(const std::vector<RegexSequence>& branches, const std::vector<RegexWidth>& group_widths);
RegexWidth regex_width(const RegexNode& node, const std::vector<RegexWidth>& group_widths);

// The same pattern for PCRE2 with PCRE2_UTF and newline LF. kUnsupported for what cannot be said there.
Result<std::string> to_pcre2(const Regex& regex);

// A bound on the work of a backtracking search in a name of n characters: factor * n^degree / degree!, or none.
struct SearchCost {
  double factor = 1;
  int degree = 0;
  bool is_bounded = true;
};
SearchCost search_cost(const Regex& regex);
// The longest text every match contains; may be empty.
std::string required_literal(const Regex& regex);
// The longest run of plain characters written in the pattern, case aside; may be empty. For messages.
std::string longest_literal(const Regex& regex);

}  // namespace tornasole::pattern
