#pragma once

// Reads Python's pattern syntax into a tree; the class behind parse_python_regex.

#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "pattern/python_regex.h"
#include "pattern/python_tokens.h"

namespace tornasole::pattern {

class PythonParser {
 public:
  explicit PythonParser(std::u32string text) : tokens_(std::move(text)) {}
  Result<Regex> parse();

 private:
  struct Context {
    RegexFlags flags = {};
    int depth = 0;
  };
  // What was read between "(?" and the contents of the group.
  struct Opening {
    bool is_capture = true;
    bool is_atomic = false;
    std::u32string name = {};
    RegexFlags flags = {};
  };

  Result<std::vector<RegexSequence>> parse_branches(Context context);
  Result<RegexSequence> parse_sequence(Context* context, bool is_first);
  Status parse_item(Token token, Context* context, bool is_first, RegexSequence* sequence);
  Result<RegexNode> parse_escape(Token token, const Context& context);
  Result<RegexNode> parse_number_escape(std::u32string digits, const Context& context);
  Result<RegexNode> parse_set(const Context& context);
  Result<RegexSetItem> parse_set_item(Token token);
  Status parse_repeat(char32_t sign, const Context& context, RegexSequence* sequence);
  Result<bool> parse_braces(std::uint32_t* min, std::uint32_t* max);
  Status parse_group(Context* context, bool is_first, RegexSequence* sequence);
  Status parse_extension(Context* context, bool is_first, std::size_t start, RegexSequence* sequence, Opening* opening,
                         bool* is_done);
  Status parse_python_extension(const Context& context, RegexSequence* sequence, Opening* opening, bool* is_done);
  Status parse_look(char32_t sign, const Context& context, std::size_t start, RegexSequence* sequence);
  Status parse_conditional(const Context& context, std::size_t start, RegexSequence* sequence);
  Result<int> parse_condition(const std::u32string& name);
  Status parse_flags(char32_t first, Context* context, bool is_first, std::size_t start, const RegexSequence& sequence,
                     Opening* opening, bool* is_done);
  Result<int> open_group(const std::u32string& name);
  Status check_reference(int group, std::size_t offset);
  Status check_inside_look_behind(int group);
  Status check_identifier(const std::u32string& name, std::size_t offset);
  Error error(std::string what, std::size_t offset = 0) const;

  TokenReader tokens_;
  std::vector<std::optional<RegexWidth>> group_widths_ = {RegexWidth{}};  // unset while the group is open
  std::map<std::u32string, int> group_names_;
  std::optional<int> look_behind_groups_;  // groups there were where the outermost look-behind began
  std::map<int, std::size_t> conditions_;  // groups tested by number, and where: they may come later
  bool is_unicode_ = false;
  bool is_template_ = false;
  bool has_repeat_ = false;
  bool has_backreference_ = false;
};

}  // namespace tornasole::pattern
