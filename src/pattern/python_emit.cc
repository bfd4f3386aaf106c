// Writes a tree as a PCRE2 pattern. Nothing of the original text is copied: every construct is written in the one form
// that means the same in all PCRE2 releases, so \w, \b, (?i) and the multi-line ^ and $ do not appear.

#include <algorithm>
#include <cctype>
#include <span>

#include "base/errors.h"
#include "pattern/python_case.h"
#include "pattern/python_regex.h"

namespace tornasole::pattern {
namespace {

using Kind = RegexNode::Kind;

constexpr std::string_view kWord = "[\\p{L}\\p{N}_]";
constexpr std::string_view kAsciiWord = "[0-9A-Za-z_]";
constexpr std::string_view kNothing = "[^\\x{0}-\\x{10FFFF}]";  // one character that does not exist

// str.isspace()
constexpr CodeRange kSpaces[] = {{0x09, 0x0D},     {0x1C, 0x20},     {0x85, 0x85},     {0xA0, 0xA0},
                                 {0x1680, 0x1680}, {0x2000, 0x200A}, {0x2028, 0x2029}, {0x202F, 0x202F},
                                 {0x205F, 0x205F}, {0x3000, 0x3000}};
constexpr CodeRange kAsciiSpaces[] = {{0x09, 0x0D}, {0x20, 0x20}};
constexpr CodeRange kAsciiDigits[] = {{'0', '9'}};
constexpr CodeRange kAsciiWords[] = {{'0', '9'}, {'A', 'Z'}, {'_', '_'}, {'a', 'z'}};

void append_code(std::string* out, std::uint32_t code) {
  const bool is_plain = code < 0x80 && (std::isalnum(static_cast<int>(code)) != 0 || code == '_' || code == '/');
  if (is_plain) {
    *out += static_cast<char>(code);
  } else {
    fmt::format_to(std::back_inserter(*out), "\\x{{{:x}}}", code);
  }
}

// Without the surrogates, which no name contains and PCRE2 refuses.
void append_range(std::string* out, CodeRange range) {
  constexpr std::uint32_t kFirstSurrogate = 0xD800;
  constexpr std::uint32_t kLastSurrogate = 0xDFFF;
  const auto append = [&](std::uint32_t low, std::uint32_t high) {
    if (low > high) return;
    append_code(out, low);
    if (low == high) return;
    if (high > low + 1) *out += '-';
    append_code(out, high);
  };
  if (range.first > kLastSurrogate || range.second < kFirstSurrogate) return append(range.first, range.second);
  if (range.first < kFirstSurrogate) append(range.first, kFirstSurrogate - 1);
  if (range.second > kLastSurrogate) append(kLastSurrogate + 1, range.second);
}

class Emitter {
 public:
  explicit Emitter(const std::vector<RegexWidth>& widths) : widths_(widths) {}

  void branches(const std::vector<RegexSequence>& list) {
    for (std::size_t i = 0; i < list.size(); ++i) {
      if (i != 0) out_ += '|';
      sequence(list[i]);
    }
  }
  std::string take() { return std::move(out_); }

 private:
  void sequence(const RegexSequence& items) {
    for (const RegexNode& item : items) node(item);
  }

  void node(const RegexNode& item) {
    switch (item.kind) {
      case Kind::kLiteral: return literal(item);
      case Kind::kAny: out_ += item.flags.dot_all ? "(?s:.)" : "."; return;
      case Kind::kSet: return set(item);
      case Kind::kAt: return at(item);
      case Kind::kRepeat: return repeat(item);
      case Kind::kGroup: return group(item.number != 0 ? "(" : "(?:", item);
      case Kind::kAtomic: return group("(?>", item);
      case Kind::kLook: return look(item);
      case Kind::kBackref:
        fmt::format_to(std::back_inserter(out_), "(?{}:\\g{{{}}})", item.flags.ignore_case ? "i" : "", item.number);
        return;
      case Kind::kConditional: fmt::format_to(std::back_inserter(out_), "(?({})", item.number); return group("", item);
    }
  }

  void group(std::string_view opening, const RegexNode& item) {
    out_ += opening;
    branches(item.branches);
    out_ += ')';
  }

  void look(const RegexNode& item) {
    const bool was_behind = is_behind_;
    is_behind_ |= item.is_behind;
    if (item.is_behind) {
      group(item.is_negated ? "(?<!" : "(?<=", item);
    } else {
      group(item.is_negated ? "(?!" : "(?=", item);
    }
    is_behind_ = was_behind;
  }

  void literal(const RegexNode& item) {
    if (!item.flags.ignore_case) return ranges({{item.code, item.code}}, false);
    std::vector<CodeRange> variants;
    for (const std::uint32_t code : case_variants(item.code, item.flags.ascii)) variants.emplace_back(code, code);
    ranges(variants, false);
  }

  void ranges(const std::vector<CodeRange>& list, bool is_negated) {
    std::string inside;
    for (const CodeRange& range : list) append_range(&inside, range);
    if (inside.empty()) {
      out_ += is_negated ? "(?s:.)" : kNothing;
    } else if (!is_negated && list.size() == 1 && list[0].first == list[0].second) {
      out_ += inside;
    } else {
      fmt::format_to(std::back_inserter(out_), "[{}{}]", is_negated ? "^" : "", inside);
    }
  }

  // A set of ranges and categories. Only "not a letter" of Unicode cannot stand inside brackets with the rest.
  void set(const RegexNode& item) {
    std::vector<CodeRange> plain;
    std::vector<CodeRange> fixed;  // categories: case does not widen them
    std::string properties;
    bool has_non_word = false;
    const auto add = [&](std::span<const CodeRange> list, bool is_inverse) {
      std::vector<CodeRange> ranges_of_category(list.begin(), list.end());
      if (is_inverse) ranges_of_category = invert_ranges(ranges_of_category);
      fixed.insert(fixed.end(), ranges_of_category.begin(), ranges_of_category.end());
    };
    for (const RegexSetItem& entry : item.items) {
      const bool ascii = item.flags.ascii;
      switch (entry.category) {
        case 0: plain.emplace_back(entry.low, entry.high); break;
        case 's':
        case 'S': add(ascii ? std::span<const CodeRange>(kAsciiSpaces) : kSpaces, entry.category == 'S'); break;
        case 'd':
        case 'D':
          if (ascii) {
            add(kAsciiDigits, entry.category == 'D');
          } else {
            properties += entry.category == 'd' ? "\\p{Nd}" : "\\P{Nd}";
          }
          break;
        default:
          if (ascii) {
            add(kAsciiWords, entry.category == 'W');
          } else if (entry.category == 'w') {
            properties += "\\p{L}\\p{N}_";
          } else {
            has_non_word = true;
          }
      }
    }
    if (item.flags.ignore_case) plain = add_case_variants(std::move(plain), item.flags.ascii);
    plain.insert(plain.end(), fixed.begin(), fixed.end());
    emit_set(merge_ranges(std::move(plain)), properties, has_non_word, item.is_negated);
  }

  void emit_set(const std::vector<CodeRange>& list, const std::string& properties, bool has_non_word, bool is_negated) {
    if (properties.empty() && !has_non_word) return ranges(list, is_negated);
    std::string inside = properties;
    for (const CodeRange& range : list) append_range(&inside, range);
    if (!has_non_word) {
      fmt::format_to(std::back_inserter(out_), "[{}{}]", is_negated ? "^" : "", inside);
    } else if (inside.empty()) {
      out_ += is_negated ? kWord : "[^\\p{L}\\p{N}_]";
    } else if (is_negated) {
      fmt::format_to(std::back_inserter(out_), "(?:(?![{}]){})", inside, kWord);
    } else {
      fmt::format_to(std::back_inserter(out_), "(?:[{}]|[^\\p{{L}}\\p{{N}}_])", inside);
    }
  }

  void at(const RegexNode& item) {
    const std::string_view word = item.flags.ascii ? kAsciiWord : kWord;
    switch (item.position) {
      case '^': out_ += item.flags.multiline ? "(?<![^\\n])" : "^"; return;
      case '$': out_ += item.flags.multiline ? "(?![^\\n])" : "$"; return;
      case 'A': out_ += "^"; return;
      case 'Z': out_ += "\\z"; return;
      case 'b': fmt::format_to(std::back_inserter(out_), "(?:(?<={0})(?!{0})|(?<!{0})(?={0}))", word); return;
      default:
        // Python finds no place in an empty name, not even one that is no boundary.
        fmt::format_to(std::back_inserter(out_), "(?:(?<={0})(?={0})|(?<!{0})(?!{0})(?!^\\z))", word);
    }
  }

  void repeat(const RegexNode& item) {
    const RegexNode& body = item.branches[0][0];
    if (is_behind_ && regex_width(body, widths_).max == 0) {
      // PCRE2 wants a fixed number of repetitions here, and once is as good as often for what has no width.
      if (item.min != 0) node(body);
      return;
    }
    const bool is_single = body.kind == Kind::kLiteral || body.kind == Kind::kAny || body.kind == Kind::kSet;
    if (!is_single) out_ += "(?:";
    node(body);
    if (!is_single) out_ += ')';
    if (item.max == kUnlimited && item.min <= 1) {
      out_ += item.min == 0 ? "*" : "+";
    } else if (item.max == kUnlimited) {
      fmt::format_to(std::back_inserter(out_), "{{{},}}", item.min);
    } else if (item.min == 0 && item.max == 1) {
      out_ += '?';
    } else if (item.min == item.max) {
      fmt::format_to(std::back_inserter(out_), "{{{}}}", item.min);
    } else {
      fmt::format_to(std::back_inserter(out_), "{{{},{}}}", item.min, item.max);
    }
    // A fixed count is neither lazy nor possessive, and in a look-behind the extra sign would hide that it is fixed.
    if (item.min == item.max && is_behind_) return;
    if (item.greed == RegexNode::Greed::kLazy) out_ += '?';
    if (item.greed == RegexNode::Greed::kPossessive) out_ += '+';
  }

  const std::vector<RegexWidth>& widths_;
  std::string out_;
  bool is_behind_ = false;
};

}  // namespace

Result<std::string> to_pcre2(const Regex& regex) {
  Emitter emitter(regex.group_widths);
  emitter.branches(regex.branches);
  return emitter.take();
}

}  // namespace tornasole::pattern
