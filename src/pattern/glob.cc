#include "pattern/glob.h"

#include <algorithm>
#include <cstring>

#include "pattern/python_tokens.h"
#include "pattern/text_search.h"

namespace tornasole::pattern {

namespace {

using Kind = RegexNode::Kind;

constexpr std::size_t kMaxLines = 8;

bool is_surrogate(std::uint32_t code) noexcept { return code >= 0xD800 && code <= 0xDFFF; }
bool is_plain_literal(const RegexNode& node) noexcept {
  return node.kind == Kind::kLiteral && !node.flags.ignore_case && !is_surrogate(node.code);
}

}  // namespace

// Reads branches into lines. A group of alternatives makes as many lines as it has branches, each continued on its own.
class GlobBuilder {
 public:
  using Lines = std::vector<Glob::Line>;

  static std::optional<Lines> build(const std::vector<RegexSequence>& branches, const Lines& prefixes) {
    Lines all;
    for (const RegexSequence& branch : branches) {
      Lines lines = prefixes;
      for (const RegexNode& node : branch) {
        if (!append(node, &lines) || lines.size() > kMaxLines) return std::nullopt;
      }
      all.insert(all.end(), lines.begin(), lines.end());
    }
    if (all.size() > kMaxLines) return std::nullopt;
    return all;
  }

 private:
  static bool append(const RegexNode& node, Lines* lines) {
    if (node.kind == Kind::kGroup) {
      auto extended = build(node.branches, *lines);
      if (!extended) return false;
      *lines = std::move(*extended);
      return true;
    }
    return std::ranges::all_of(*lines, [&](Glob::Line& line) { return append(node, &line); });
  }

  static bool append(const RegexNode& node, Glob::Line* line) {
    if (line->is_at_end) return false;
    Glob::Segment& segment = line->segments.back();
    switch (node.kind) {
      case Kind::kLiteral:
        if (!is_plain_literal(node)) return false;
        if (node.code == 0) return false;
        append_utf8(&segment.text, node.code);
        return true;
      case Kind::kSet: return append_set(node, &segment);
      case Kind::kLook: return append_look(node, &segment);
      case Kind::kRepeat: return append_star(node, line);
      case Kind::kAt: return append_at(node, line);
      default: return false;
    }
  }

  static bool append_set(const RegexNode& node, Glob::Segment* segment) {
    if (node.is_negated || node.flags.ignore_case) return false;
    Glob::Set set{.offset = segment->text.size()};
    for (const RegexSetItem& item : node.items) {
      if (item.category != 0 || item.high >= 128) return false;
      for (std::uint32_t code = item.low; code <= item.high; ++code) set.members.set(code);
    }
    segment->sets.push_back(set);
    segment->text += '\0';
    return true;
  }

  static bool append_look(const RegexNode& node, Glob::Segment* segment) {
    if (node.is_behind) return false;
    Glob::Look look{.is_negated = node.is_negated, .offset = segment->text.size()};
    for (const RegexSequence& branch : node.branches) {
      Glob::Look::Text text;
      for (const RegexNode& item : branch) {
        if (text.is_at_end) return false;
        if (is_plain_literal(item)) {
          append_utf8(&text.text, item.code);
        } else if (item.kind == Kind::kAt && item.position == '$') {
          text.is_at_end = true;
        } else {
          return false;
        }
      }
      look.texts.push_back(std::move(text));
    }
    segment->looks.push_back(std::move(look));
    return true;
  }

  // Greedy or lazy makes no difference to whether there is a match.
  static bool append_star(const RegexNode& node, Glob::Line* line) {
    const bool is_star = node.min == 0 && node.max == kUnlimited && node.greed != RegexNode::Greed::kPossessive &&
                         node.branches[0][0].kind == Kind::kAny;
    if (is_star) line->segments.emplace_back();
    return is_star;
  }

  static bool append_at(const RegexNode& node, Glob::Line* line) {
    // At the start of any line would be more than a name's start, which requirement() relies on.
    const bool is_line_start = (node.position == '^' && !node.flags.multiline) || node.position == 'A';
    const bool is_line_end = node.position == '$' || node.position == 'Z';
    const Glob::Segment& segment = line->segments.back();
    if (is_line_start && line->segments.size() == 1 && segment.text.empty() && segment.looks.empty()) {
      line->is_at_start = true;
      return true;
    }
    line->is_at_end = is_line_end;
    return is_line_end;
  }
};

std::optional<Glob> Glob::make(const Regex& regex) {
  if (regex.has_backreference) return std::nullopt;
  auto lines = GlobBuilder::build(regex.branches, {Line{.segments = {Segment{}}}});
  if (!lines) return std::nullopt;
  Glob glob;
  glob.lines_ = std::move(*lines);
  for (Line& line : glob.lines_) {
    for (Segment& segment : line.segments) {
      std::size_t start = 0;
      for (std::size_t i = 0; i <= segment.text.size(); ++i) {
        if (i < segment.text.size() && segment.text[i] != '\0') continue;
        if (i - start > segment.anchor_length) {
          segment.anchor_offset = start;
          segment.anchor_length = i - start;
        }
        start = i + 1;
      }
    }
  }
  return glob;
}

bool Glob::matches_at(const Segment& segment, std::string_view name, std::size_t at) noexcept {
  if (name.size() - at < segment.text.size()) return false;
  const char* place = name.data() + at;
  if (segment.sets.empty()) {
    if (!segment.text.empty() && *place != *segment.text.data()) return false;
    if (std::memcmp(place, segment.text.data(), segment.text.size()) != 0) return false;
  } else {
    for (std::size_t i = 0; i < segment.text.size(); ++i) {
      if (segment.text[i] != '\0' && segment.text[i] != place[i]) return false;
    }
    for (const Set& set : segment.sets) {
      const auto byte = static_cast<unsigned char>(place[set.offset]);
      if (byte >= 128 || !set.members[byte]) return false;
    }
  }
  for (const Look& look : segment.looks) {
    const std::string_view rest = name.substr(at + look.offset);
    const bool is_there = std::ranges::any_of(look.texts, [&](const Look::Text& text) {
      return text.is_at_end ? rest == text.text : rest.starts_with(text.text);
    });
    if (is_there == look.is_negated) return false;
  }
  return true;
}

// The first place at or after `from` where the segment matches; npos if there is none.
std::size_t Glob::find(const Segment& segment, std::string_view name, std::size_t from) noexcept {
  if (segment.anchor_length == 0) {
    for (std::size_t at = from; at <= name.size(); ++at) {
      // Between characters only: a look-ahead could otherwise be answered in the middle of one.
      const bool is_inside = at < name.size() && (static_cast<unsigned char>(name[at]) & 0xC0U) == 0x80;
      if (!is_inside && matches_at(segment, name, at)) return at;
    }
    return name.npos;
  }
  const std::string_view anchor = std::string_view(segment.text).substr(segment.anchor_offset, segment.anchor_length);
  std::size_t search_from = from + segment.anchor_offset;
  while (search_from + anchor.size() <= name.size()) {
    const std::size_t place = find_text(name, anchor, search_from);
    if (place == name.npos) return name.npos;
    if (matches_at(segment, name, place - segment.anchor_offset)) return place - segment.anchor_offset;
    search_from = place + 1;
  }
  return name.npos;
}

// Each segment is put at the first place where it fits: all have a fixed length, so an earlier place leaves every later
// segment at least as much room.
bool Glob::search(const Line& line, std::string_view name) noexcept {
  std::size_t at = 0;
  for (std::size_t i = 0; i < line.segments.size(); ++i) {
    const Segment& segment = line.segments[i];
    const bool is_fixed_start = i == 0 && line.is_at_start;
    const bool is_fixed_end = i + 1 == line.segments.size() && line.is_at_end;
    if (is_fixed_end) {
      if (name.size() - at < segment.text.size()) return false;
      const std::size_t place = name.size() - segment.text.size();
      return (!is_fixed_start || place == 0) && matches_at(segment, name, place);
    }
    if (is_fixed_start) {
      if (!matches_at(segment, name, 0)) return false;
      at = segment.text.size();
      continue;
    }
    const std::size_t place = find(segment, name, at);
    if (place == name.npos) return false;
    at = place + segment.text.size();
  }
  return true;
}

Requirement Glob::requirement() const {
  Requirement required;
  const bool are_at_start = std::ranges::all_of(lines_, [](const Line& line) {
    const std::string& text = line.segments[0].text;
    return line.is_at_start && !text.empty() && text[0] != '\0';
  });
  if (are_at_start) {
    required.kind = Requirement::Kind::kFirstByte;
    for (const Line& line : lines_) required.append(line.segments[0].text[0]);
  }
  if (lines_.size() != 1) return required;
  const Line& line = lines_[0];
  // The longest text, unless it is at the start, where one comparison tells.
  const Segment* longest = &line.segments[0];
  for (const Segment& segment : line.segments) {
    if (segment.anchor_length > longest->anchor_length) longest = &segment;
  }
  const Segment& first = line.segments[0];
  const bool is_prefix = are_at_start && first.anchor_offset == 0;
  const Segment& chosen = is_prefix ? first : *longest;
  if (chosen.anchor_length == 0) return required;
  required.kind = is_prefix ? Requirement::Kind::kPrefix : Requirement::Kind::kText;
  required.length = 0;
  for (std::size_t i = 0; i < chosen.anchor_length; ++i) required.append(chosen.text[chosen.anchor_offset + i]);
  const bool is_whole = required.length == chosen.anchor_length && chosen.anchor_length == chosen.text.size();
  const bool is_refusing = add_refusal(line, &required);
  // `.*` on either side of the text asks for nothing more.
  const bool is_alone = std::ranges::all_of(line.segments, [&](const Segment& segment) {
    return (segment.looks.empty() || (is_refusing && &segment == &first)) && segment.sets.empty() &&
           (&segment == &chosen || segment.text.empty());
  });
  required.is_enough = is_alone && is_whole && !line.is_at_end && (is_prefix || !line.is_at_start || &chosen != &first);
  return required;
}

// ^(?!text).* in front.
bool Glob::add_refusal(const Line& line, Requirement* required) {
  const Segment& first = line.segments[0];
  if (!line.is_at_start || line.segments.size() < 2 || !first.text.empty() || first.looks.size() != 1) return false;
  const Look& look = first.looks[0];
  if (!look.is_negated || look.texts.size() != 1 || look.texts[0].is_at_end) return false;
  const std::string& text = look.texts[0].text;
  if (text.empty() || text.size() > Requirement::kMaxLength) return false;
  required->refused_length = static_cast<std::uint8_t>(text.size());
  std::ranges::copy(text, required->refused);
  return true;
}

bool Glob::search(std::string_view name) const noexcept {
  return std::ranges::any_of(lines_, [&](const Line& line) { return search(line, name); });
}

}  // namespace tornasole::pattern
