#include "pattern/python_parser.h"

#include "base/errors.h"
#include "base/utf8.h"

namespace tornasole::pattern {
namespace {

constexpr int kMaxDepth = 200;
constexpr std::u32string_view kWhitespace = U" \t\n\r\v\f";
constexpr std::u32string_view kDigits = U"0123456789";
constexpr std::u32string_view kOctal = U"01234567";
constexpr std::u32string_view kHex = U"0123456789abcdefABCDEF";

bool is_in(std::u32string_view set, char32_t code) noexcept { return set.find(code) != set.npos; }
bool is_ascii_letter(char32_t code) noexcept {
  return (code >= U'a' && code <= U'z') || (code >= U'A' && code <= U'Z');
}

std::uint32_t to_number(std::u32string_view digits, std::uint32_t base) noexcept {
  std::uint32_t value = 0;
  for (const char32_t digit : digits) {
    const std::uint32_t weight = digit <= U'9' ? digit - U'0' : (digit | 0x20U) - U'a' + 10;
    value = value * base + weight;
  }
  return value;
}

// A control character written as a letter.
std::optional<char32_t> control_escape(char32_t letter) noexcept {
  switch (letter) {
    case U'a': return U'\a';
    case U'f': return U'\f';
    case U'n': return U'\n';
    case U'r': return U'\r';
    case U't': return U'\t';
    case U'v': return U'\v';
    default: return std::nullopt;
  }
}

RegexNode literal(char32_t code, RegexFlags flags) {
  return {.kind = RegexNode::Kind::kLiteral, .flags = flags, .code = code};
}

}  // namespace

Result<Regex> parse_python_regex(std::string_view pattern) { return PythonParser(decode_utf8(pattern)).parse(); }

Error PythonParser::error(std::string what, std::size_t offset) const {
  const std::size_t here = tokens_.position();
  return invalid_error("{} at position {}", what, here >= offset ? here - offset : 0);
}

Result<Regex> PythonParser::parse() {
  if (tokens_.ends_in_escape()) return invalid_error("a backslash at the end escapes nothing");
  TORNASOLE_TRY(std::vector<RegexSequence> branches, parse_branches({}));
  if (!tokens_.peek().is_end) return error("unbalanced parenthesis");
  for (const auto& [group, position] : conditions_) {
    if (group >= static_cast<int>(group_widths_.size())) {
      return invalid_error("there is no group {} to test, at position {}", group, position);
    }
  }
  if (is_template_ && has_repeat_) return invalid_error("flag t allows no repetition");
  Regex regex{.branches = std::move(branches), .has_backreference = has_backreference_};
  for (const auto& width : group_widths_) regex.group_widths.push_back(width.value_or(RegexWidth{}));
  return regex;
}

Result<std::vector<RegexSequence>> PythonParser::parse_branches(Context context) {
  if (context.depth > kMaxDepth) return error(fmt::format("groups are nested more than {} deep", kMaxDepth));
  std::vector<RegexSequence> branches;
  do {
    // Flags for the whole pattern stand at its very start; they hold in the other branches too.
    const bool is_first = context.depth == 0 && branches.empty();
    TORNASOLE_TRY(RegexSequence sequence, parse_sequence(&context, is_first));
    branches.push_back(std::move(sequence));
  } while (tokens_.match(U'|'));
  return branches;
}

Result<RegexSequence> PythonParser::parse_sequence(Context* context, bool is_first) {
  RegexSequence sequence;
  while (true) {
    const Token token = tokens_.peek();
    if (token.is_end || token.is(U'|') || token.is(U')')) return sequence;
    tokens_.get();
    if (context->flags.verbose && !token.is_escape) {
      if (is_in(kWhitespace, token.code)) continue;
      if (token.code == U'#') {
        Token skipped;
        do {
          skipped = tokens_.get();
        } while (!skipped.is_end && !skipped.is(U'\n'));
        continue;
      }
    }
    TORNASOLE_CHECK(parse_item(token, context, is_first, &sequence));
  }
}

Status PythonParser::parse_item(Token token, Context* context, bool is_first, RegexSequence* sequence) {
  using Kind = RegexNode::Kind;
  if (token.is_escape) {
    TORNASOLE_TRY(RegexNode node, parse_escape(token, *context));
    sequence->push_back(std::move(node));
    return {};
  }
  switch (token.code) {
    case U'[': {
      TORNASOLE_TRY(RegexNode node, parse_set(*context));
      sequence->push_back(std::move(node));
      return {};
    }
    case U'*':
    case U'+':
    case U'?':
    case U'{': return parse_repeat(token.code, *context, sequence);
    case U'(': return parse_group(context, is_first, sequence);
    case U'.': sequence->push_back({.kind = Kind::kAny, .flags = context->flags}); return {};
    case U'^':
    case U'$':
      sequence->push_back({.kind = Kind::kAt, .flags = context->flags, .position = static_cast<char>(token.code)});
      return {};
    default: sequence->push_back(literal(token.code, context->flags)); return {};
  }
}

Result<RegexNode> PythonParser::parse_escape(Token token, const Context& context) {
  using Kind = RegexNode::Kind;
  const char32_t letter = token.code;
  if (is_in(U"AZbB", letter)) {
    return RegexNode{.kind = Kind::kAt, .flags = context.flags, .position = static_cast<char>(letter)};
  }
  if (is_in(U"dDsSwW", letter)) {
    return RegexNode{.kind = Kind::kSet, .flags = context.flags, .items = {{.category = static_cast<char>(letter)}}};
  }
  if (letter >= U'1' && letter <= U'9') return parse_number_escape({letter}, context);
  if (letter == U'0') return literal(to_number(tokens_.get_while(2, kOctal), 8), context.flags);
  TORNASOLE_TRY(const RegexSetItem item, parse_set_item(token));
  return literal(item.low, context.flags);
}

// Three octal digits are a character; anything else is the number of a group.
Result<RegexNode> PythonParser::parse_number_escape(std::u32string digits, const Context& context) {
  digits += tokens_.get_while(1, kDigits);
  if (digits.size() == 2 && is_in(kOctal, digits[0]) && is_in(kOctal, digits[1])) {
    digits += tokens_.get_while(1, kOctal);
    if (digits.size() == 3) {
      const std::uint32_t code = to_number(digits, 8);
      if (code > 0377) return error(fmt::format("octal escape \\{} is beyond \\377", encode_utf8(digits)), 4);
      return literal(code, context.flags);
    }
  }
  const auto group = static_cast<int>(to_number(digits, 10));
  if (group >= static_cast<int>(group_widths_.size())) {
    return error(fmt::format("there is no group {} to refer to", group), digits.size());
  }
  TORNASOLE_CHECK(check_reference(group, digits.size() + 1));
  has_backreference_ = true;
  return RegexNode{.kind = RegexNode::Kind::kBackref, .flags = context.flags, .number = group};
}

// Escapes that mean one character, everywhere; and categories, which a set may hold.
Result<RegexSetItem> PythonParser::parse_set_item(Token token) {
  const char32_t letter = token.code;
  const auto one = [](char32_t code) { return RegexSetItem{.low = code, .high = code}; };
  if (!token.is_escape) return one(letter);
  if (const auto control = control_escape(letter)) return one(*control);
  if (is_in(U"dDsSwW", letter)) return RegexSetItem{.category = static_cast<char>(letter)};
  if (letter == U'b') return one(U'\b');
  if (is_in(U"xuU", letter)) {
    const std::size_t length = letter == U'x' ? 2 : letter == U'u' ? 4 : 8;
    const std::u32string digits = tokens_.get_while(length, kHex);
    if (digits.size() != length) {
      return error(fmt::format("escape \\{} needs {} hexadecimal digits", static_cast<char>(letter), length),
                   digits.size() + 2);
    }
    const std::uint32_t code = to_number(digits, 16);
    if (code > 0x10FFFF) return error(fmt::format("\\U{} is no character", encode_utf8(digits)), 10);
    return one(code);
  }
  if (letter == U'N') return error("characters by name, \\N{...}, are not supported; write \\uXXXX instead", 2);
  if (is_in(kOctal, letter)) {
    const std::u32string digits = std::u32string{letter} + tokens_.get_while(2, kOctal);
    const std::uint32_t code = to_number(digits, 8);
    if (code > 0377) return error(fmt::format("octal escape \\{} is beyond \\377", encode_utf8(digits)), 4);
    return one(code);
  }
  if (is_ascii_letter(letter) || is_in(kDigits, letter)) {
    return error(fmt::format("\\{} is no known escape", static_cast<char>(letter)), 2);
  }
  return one(letter);
}

Result<RegexNode> PythonParser::parse_set(const Context& context) {
  const std::size_t start = tokens_.position() - 1;
  const auto unterminated = [&] { return error("character set has no ]", tokens_.position() - start); };
  RegexNode set{.kind = RegexNode::Kind::kSet, .flags = context.flags};
  set.is_negated = tokens_.match(U'^');
  while (true) {
    const std::size_t item_start = tokens_.position();
    const Token token = tokens_.get();
    if (token.is_end) return unterminated();
    if (token.is(U']') && !set.items.empty()) return set;
    TORNASOLE_TRY(RegexSetItem item, parse_set_item(token));
    if (!tokens_.match(U'-')) {
      set.items.push_back(item);
      continue;
    }
    const Token last = tokens_.get();
    if (last.is_end) return unterminated();
    if (last.is(U']')) {
      set.items.push_back(item);
      set.items.push_back({.low = U'-', .high = U'-'});
      return set;
    }
    TORNASOLE_TRY(const RegexSetItem end, parse_set_item(last));
    if (item.category != 0 || end.category != 0) {
      return error("a range in a set goes from one character to another, not to a category",
                   tokens_.position() - item_start);
    }
    if (end.low < item.low) return error("a range in a set runs backwards", tokens_.position() - item_start);
    item.high = end.low;
    set.items.push_back(item);
  }
}

// {m}, {m,}, {,n}, {m,n} after the brace; false, with nothing taken, when the brace is a plain character.
Result<bool> PythonParser::parse_braces(std::uint32_t* min, std::uint32_t* max) {
  const std::size_t here = tokens_.position();
  if (tokens_.peek().is(U'}')) return false;
  const std::u32string low = tokens_.get_while(std::u32string::npos, kDigits);
  std::u32string high = low;
  if (tokens_.match(U',')) high = tokens_.get_while(std::u32string::npos, kDigits);
  if (!tokens_.match(U'}')) {
    tokens_.seek(here);
    return false;
  }
  // PCRE2 counts to 65535, and a name can hardly need more.
  constexpr std::uint32_t kMaxCount = 65535;
  const auto count = [](std::u32string_view digits) -> std::optional<std::uint32_t> {
    digits.remove_prefix(std::min(digits.find_first_not_of(U'0'), digits.size()));
    if (digits.size() > 5 || to_number(digits, 10) > kMaxCount) return std::nullopt;
    return to_number(digits, 10);
  };
  const auto low_count = count(low);
  const auto high_count = count(high);
  if (!low_count || !high_count) {
    return error(fmt::format("repetition counts above {} are not supported", kMaxCount), tokens_.position() - here);
  }
  *min = *low_count;
  *max = high.empty() ? kUnlimited : *high_count;
  if (*max < *min) return error("the least count is above the greatest", tokens_.position() - here);
  return true;
}

Status PythonParser::parse_repeat(char32_t sign, const Context& context, RegexSequence* sequence) {
  using Kind = RegexNode::Kind;
  const std::size_t here = tokens_.position();
  RegexNode repeat{.kind = Kind::kRepeat, .flags = context.flags};
  repeat.min = sign == U'+' ? 1 : 0;
  repeat.max = sign == U'?' ? 1 : kUnlimited;
  if (sign == U'{') {
    TORNASOLE_TRY(const bool is_repeat, parse_braces(&repeat.min, &repeat.max));
    if (!is_repeat) {
      sequence->push_back(literal(sign, context.flags));
      return {};
    }
  }
  const std::size_t offset = tokens_.position() - here + 1;
  if (sequence->empty() || sequence->back().kind == Kind::kAt) return error("there is nothing to repeat", offset);
  if (sequence->back().kind == Kind::kRepeat) return error("a repetition cannot be repeated", offset);
  if (tokens_.match(U'?')) {
    repeat.greed = RegexNode::Greed::kLazy;
  } else if (tokens_.match(U'+')) {
    repeat.greed = RegexNode::Greed::kPossessive;
  }
  repeat.branches.emplace_back();
  repeat.branches[0].push_back(std::move(sequence->back()));
  sequence->back() = std::move(repeat);
  has_repeat_ = true;
  return {};
}

}  // namespace tornasole::pattern
