// Groups of Python's pattern syntax: everything that begins with a parenthesis.

#include <algorithm>

#include "base/errors.h"
#include "pattern/python_case.h"
#include "pattern/python_parser.h"

namespace tornasole::pattern {
namespace {

constexpr std::u32string_view kFlagLetters = U"iLmsxatu";

bool is_flag(char32_t code) noexcept { return kFlagLetters.find(code) != kFlagLetters.npos; }

void set_flag(RegexFlags* flags, char32_t letter, bool on) noexcept {
  switch (letter) {
    case U'i': flags->ignore_case = on; break;
    case U'm': flags->multiline = on; break;
    case U's': flags->dot_all = on; break;
    case U'x': flags->verbose = on; break;
    case U'a': flags->ascii = on; break;
    case U'u': flags->ascii = !on; break;
    default: break;
  }
}

// The text up to the terminator, as Python sees it: an escaped terminator does not end it.
Result<std::u32string> name_until(TokenReader* tokens, char32_t terminator, std::string_view what) {
  std::u32string name;
  while (true) {
    const Token token = tokens->get();
    if (token.is_end || token.is(terminator)) {
      if (!token.is_end && !name.empty()) return name;
      return invalid_error("{} at position {}",
                           name.empty() ? fmt::format("missing {}", what)
                                        : fmt::format("{} has no end, {}", what, encode_utf8({&terminator, 1})),
                           tokens->position() - (token.is_end ? name.size() : 1));
    }
    if (token.is_escape) name += U'\\';
    name += token.code;
  }
}

// A whole number as Python's int() reads it, of ASCII digits.
std::optional<int> to_group_number(std::u32string_view text) {
  const auto is_space = [](char32_t c) { return c == U' ' || (c >= U'\t' && c <= U'\r') || (c >= 0x1C && c <= 0x1F); };
  while (!text.empty() && is_space(text.front())) text.remove_prefix(1);
  while (!text.empty() && is_space(text.back())) text.remove_suffix(1);
  bool is_negative = false;
  if (!text.empty() && (text.front() == U'+' || text.front() == U'-')) {
    is_negative = text.front() == U'-';
    text.remove_prefix(1);
  }
  std::int64_t value = 0;
  bool was_digit = false;
  for (const char32_t c : text) {
    const bool is_digit = c >= U'0' && c <= U'9';
    if (!is_digit && (c != U'_' || !was_digit)) return std::nullopt;
    if (is_digit) value = std::min<std::int64_t>(value * 10 + static_cast<std::int64_t>(c - U'0'), 1 << 30);
    was_digit = is_digit;
  }
  if (!was_digit || (is_negative && value != 0)) return std::nullopt;
  return static_cast<int>(value);
}

}  // namespace

Status PythonParser::check_identifier(const std::u32string& name, std::size_t offset) {
  if (is_python_identifier(encode_utf8(name))) return {};
  return error(fmt::format("\"{}\" cannot be the name of a group", encode_utf8(name)), name.size() + offset);
}

Result<int> PythonParser::open_group(const std::u32string& name) {
  const auto number = static_cast<int>(group_widths_.size());
  if (!name.empty()) {
    const auto [known, is_new] = group_names_.emplace(name, number);
    if (!is_new) {
      return error(fmt::format("group name \"{}\" is taken by group {}", encode_utf8(name), known->second),
                   name.size() + 1);
    }
  }
  group_widths_.emplace_back(std::nullopt);
  return number;
}

Status PythonParser::check_reference(int group, std::size_t offset) {
  if (!group_widths_[static_cast<std::size_t>(group)]) {
    return error(fmt::format("group {} is still open here and cannot be referred to", group), offset);
  }
  return check_inside_look_behind(group);
}

Status PythonParser::check_inside_look_behind(int group) {
  if (!look_behind_groups_) return {};
  const auto index = static_cast<std::size_t>(group);
  if (index >= group_widths_.size() || !group_widths_[index]) {
    return error(fmt::format("group {} is still open here and cannot be referred to", group));
  }
  if (group >= *look_behind_groups_) {
    return error(fmt::format("group {} is defined in the same look-behind and cannot be referred to in it", group));
  }
  return {};
}

Status PythonParser::parse_group(Context* context, bool is_first, RegexSequence* sequence) {
  const std::size_t start = tokens_.position() - 1;
  Opening opening{.flags = context->flags};
  if (tokens_.match(U'?')) {
    bool is_done = false;
    TORNASOLE_CHECK(parse_extension(context, is_first, start, sequence, &opening, &is_done));
    if (is_done) return {};
  }
  int number = 0;
  if (opening.is_capture) {
    TORNASOLE_TRY(number, open_group(opening.name));
  }
  const Context inner{.flags = opening.flags, .depth = context->depth + 1};
  TORNASOLE_TRY(std::vector<RegexSequence> branches, parse_branches(inner));
  if (!tokens_.match(U')')) return error("group is not closed", tokens_.position() - start);
  RegexNode group{.kind = opening.is_atomic ? RegexNode::Kind::kAtomic : RegexNode::Kind::kGroup,
                  .flags = context->flags,
                  .number = number,
                  .branches = std::move(branches)};
  if (number != 0) {
    std::vector<RegexWidth> known;
    for (const auto& width : group_widths_) known.push_back(width.value_or(RegexWidth{}));
    group_widths_[static_cast<std::size_t>(number)] = regex_width(group.branches, known);
  }
  sequence->push_back(std::move(group));
  return {};
}

// What follows "(?". Done when it was not the beginning of a group with contents.
Status PythonParser::parse_extension(Context* context, bool is_first, std::size_t start, RegexSequence* sequence,
                                     Opening* opening, bool* is_done) {
  const Token token = tokens_.get();
  if (token.is_end) return error("the pattern ends inside (?");
  if (token.is_escape) return error("(?\\ begins nothing known", 2);
  switch (token.code) {
    case U'P': return parse_python_extension(*context, sequence, opening, is_done);
    case U':': opening->is_capture = false; return {};
    case U'>':
      opening->is_capture = false;
      opening->is_atomic = true;
      return {};
    case U'#': {
      Token skipped;
      do {
        skipped = tokens_.get();
      } while (!skipped.is_end && !skipped.is(U')'));
      if (skipped.is_end) return error("comment is not closed", tokens_.position() - start);
      *is_done = true;
      return {};
    }
    case U'=':
    case U'!':
    case U'<': *is_done = true; return parse_look(token.code, *context, start, sequence);
    case U'(': *is_done = true; return parse_conditional(*context, start, sequence);
    default: break;
  }
  if (is_flag(token.code) || token.code == U'-') {
    opening->is_capture = false;
    return parse_flags(token.code, context, is_first, start, *sequence, opening, is_done);
  }
  return error(fmt::format("(?{} begins nothing known", encode_utf8({&token.code, 1})), 2);
}

Status PythonParser::parse_python_extension(const Context& context, RegexSequence* sequence, Opening* opening,
                                            bool* is_done) {
  if (tokens_.match(U'<')) {
    TORNASOLE_TRY(opening->name, name_until(&tokens_, U'>', "group name"));
    return check_identifier(opening->name, 1);
  }
  if (!tokens_.match(U'=')) return error("(?P is followed by neither < nor =", 2);
  TORNASOLE_TRY(const std::u32string name, name_until(&tokens_, U')', "group name"));
  TORNASOLE_CHECK(check_identifier(name, 1));
  const auto group = group_names_.find(name);
  if (group == group_names_.end()) {
    return error(fmt::format("there is no group named \"{}\"", encode_utf8(name)), name.size() + 1);
  }
  TORNASOLE_CHECK(check_reference(group->second, name.size() + 1));
  sequence->push_back({.kind = RegexNode::Kind::kBackref, .flags = context.flags, .number = group->second});
  has_backreference_ = true;
  *is_done = true;
  return {};
}

Status PythonParser::parse_look(char32_t sign, const Context& context, std::size_t start, RegexSequence* sequence) {
  RegexNode look{.kind = RegexNode::Kind::kLook, .flags = context.flags};
  const bool was_inside = look_behind_groups_.has_value();
  if (sign == U'<') {
    const Token direction = tokens_.get();
    if (direction.is_end) return error("the pattern ends inside (?<");
    if (!direction.is(U'=') && !direction.is(U'!')) {
      return error("(?< is followed by neither = nor !; a named group is (?P<name>...)", 3);
    }
    look.is_behind = true;
    sign = direction.code;
    if (!was_inside) look_behind_groups_ = static_cast<int>(group_widths_.size());
  }
  look.is_negated = sign == U'!';
  TORNASOLE_TRY(look.branches, parse_branches({.flags = context.flags, .depth = context.depth + 1}));
  if (look.is_behind && !was_inside) look_behind_groups_.reset();
  if (!tokens_.match(U')')) return error("group is not closed", tokens_.position() - start);
  if (look.is_behind) {
    std::vector<RegexWidth> known;
    for (const auto& width : group_widths_) known.push_back(width.value_or(RegexWidth{}));
    const RegexWidth width = regex_width(look.branches, known);
    if (width.min != width.max) {
      return error("look-behind must match a fixed number of characters", tokens_.position() - start);
    }
  }
  sequence->push_back(std::move(look));
  return {};
}

Result<int> PythonParser::parse_condition(const std::u32string& name) {
  if (is_python_identifier(encode_utf8(name))) {
    const auto group = group_names_.find(name);
    if (group != group_names_.end()) return group->second;
    return error(fmt::format("there is no group named \"{}\"", encode_utf8(name)), name.size() + 1);
  }
  const auto number = to_group_number(name);
  if (!number) return error(fmt::format("\"{}\" cannot be the name of a group", encode_utf8(name)), name.size() + 1);
  if (*number == 0) return error("group 0 cannot be tested", name.size() + 1);
  conditions_.emplace(*number, tokens_.position() - name.size() - 1);
  return *number;
}

Status PythonParser::parse_conditional(const Context& context, std::size_t start, RegexSequence* sequence) {
  TORNASOLE_TRY(const std::u32string name, name_until(&tokens_, U')', "group name"));
  TORNASOLE_TRY(const int number, parse_condition(name));
  TORNASOLE_CHECK(check_inside_look_behind(number));
  if (context.depth >= 200) return error("groups are nested too deep");
  RegexNode node{.kind = RegexNode::Kind::kConditional, .flags = context.flags, .number = number};
  Context inner{.flags = context.flags, .depth = context.depth + 1};
  for (int branch = 0; branch < 2; ++branch) {
    if (branch == 1 && !tokens_.match(U'|')) break;
    TORNASOLE_TRY(RegexSequence sequence_of_branch, parse_sequence(&inner, false));
    node.branches.push_back(std::move(sequence_of_branch));
  }
  if (tokens_.peek().is(U'|')) return error("a test of a group has at most two branches");
  if (!tokens_.match(U')')) return error("group is not closed", tokens_.position() - start);
  if (node.branches.size() < 2) node.branches.emplace_back();
  sequence->push_back(std::move(node));
  has_backreference_ = true;
  return {};
}

Status PythonParser::parse_flags(char32_t first, Context* context, bool is_first, std::size_t start,
                                 const RegexSequence& sequence, Opening* opening, bool* is_done) {
  std::u32string on;
  std::u32string off;
  char32_t letter = first;
  const auto next = [&](std::string_view expected) -> Status {
    const Token token = tokens_.get();
    if (token.is_end || token.is_escape) return error(fmt::format("expected {} after the flags", expected));
    letter = token.code;
    return {};
  };
  while (letter != U')' && letter != U'-' && letter != U':') {
    if (!is_flag(letter)) return error("expected one of the flags a i m s u x, or - : )", 1);
    if (letter == U'L') return error("flag L is for bytes, not for text");
    on += letter;
    if (on.find(U'a') != on.npos && on.find(U'u') != on.npos) return error("flags a and u exclude each other");
    TORNASOLE_CHECK(next("-, : or )"));
  }
  if (letter == U')') {
    if (!is_first || !sequence.empty()) {
      return error("flags for the whole pattern must stand at its start", tokens_.position() - start);
    }
    is_template_ |= on.find(U't') != on.npos;
    is_unicode_ |= on.find(U'u') != on.npos;
    for (const char32_t flag : on) {
      if (flag != U'u') set_flag(&context->flags, flag, true);
    }
    if (is_unicode_ && context->flags.ascii) return error("flags a and u exclude each other");
    *is_done = true;
    return {};
  }
  if (on.find(U't') != on.npos) return error("flag t holds for the whole pattern only", 1);
  if (letter == U'-') {
    TORNASOLE_CHECK(next("a flag"));
    do {
      if (!is_flag(letter)) return error("expected one of the flags i m s x to switch off", 1);
      if (letter == U'a' || letter == U'u' || letter == U'L') return error("flags a, u and L cannot be switched off");
      off += letter;
      TORNASOLE_CHECK(next("a colon"));
    } while (letter != U':');
  }
  if (off.find(U't') != off.npos) return error("flag t holds for the whole pattern only", 1);
  if (on.find_first_of(off) != on.npos) return error("a flag is switched on and off at once", 1);
  for (const char32_t flag : on) set_flag(&opening->flags, flag, true);
  for (const char32_t flag : off) set_flag(&opening->flags, flag, false);
  return {};
}

}  // namespace tornasole::pattern
