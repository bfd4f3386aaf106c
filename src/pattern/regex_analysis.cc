// What can be known of a pattern without running it: widths, a bound on the work, text that every match contains.

#include <algorithm>
#include <cmath>

#include "pattern/python_regex.h"
#include "pattern/python_tokens.h"

namespace tornasole::pattern {
namespace {

using Kind = RegexNode::Kind;

constexpr std::uint64_t kMaxWidth = std::uint64_t{1} << 62;

std::uint64_t saturated_product(std::uint64_t a, std::uint64_t b) noexcept {
  if (a != 0 && b > kMaxWidth / a) return kMaxWidth;
  return a * b;
}
std::uint64_t saturated_sum(std::uint64_t a, std::uint64_t b) noexcept { return std::min(a + b, kMaxWidth); }

// How often a backtracking matcher may try what follows a piece: factor * n^degree ways at most.
SearchCost ways(const RegexNode& node);

SearchCost ways(const RegexSequence& sequence) {
  SearchCost total;
  for (const RegexNode& node : sequence) {
    const SearchCost part = ways(node);
    total.factor = std::min(total.factor * part.factor, 1e18);
    total.degree += part.degree;
    total.is_bounded = total.is_bounded && part.is_bounded;
  }
  return total;
}

SearchCost ways(const std::vector<RegexSequence>& branches) {
  SearchCost total{.factor = 0};
  for (const RegexSequence& branch : branches) {
    const SearchCost part = ways(branch);
    total.factor = std::min(total.factor + part.factor, 1e18);
    total.degree = std::max(total.degree, part.degree);
    total.is_bounded = total.is_bounded && part.is_bounded;
  }
  return total;
}

SearchCost ways_of_repeat(const RegexNode& node) {
  const SearchCost body = ways(node.branches[0]);
  const bool is_fixed = node.min == node.max;
  const bool is_plain = body.degree == 0 && body.factor == 1 && body.is_bounded;
  if (is_plain) {
    if (is_fixed) return body;
    const bool is_short = node.max != kUnlimited && node.max - node.min < 4;
    return is_short ? SearchCost{.factor = static_cast<double>(node.max - node.min + 1)} : SearchCost{.degree = 1};
  }
  // Alternatives inside a repetition multiply with every round.
  if (node.max == kUnlimited || node.max > 4 || !body.is_bounded) return {.is_bounded = false};
  const double rounds = std::max<double>(node.max, 1);
  return {.factor = std::min(std::pow(body.factor + 1, rounds), 1e18),
          .degree = body.degree * static_cast<int>(rounds)};
}

SearchCost ways(const RegexNode& node) {
  switch (node.kind) {
    case Kind::kRepeat: return ways_of_repeat(node);
    case Kind::kGroup:
    case Kind::kAtomic:
    case Kind::kLook:
    case Kind::kConditional: return ways(node.branches);
    case Kind::kBackref: return {.degree = 1};  // comparing takes as long as the group is
    default: return {};
  }
}

bool starts_at_beginning(const RegexSequence& sequence) {
  for (const RegexNode& node : sequence) {
    if (node.kind == Kind::kAt) {
      return node.position == 'A' || (node.position == '^' && !node.flags.multiline);
    }
    if (node.kind != Kind::kLook) return false;
  }
  return false;
}

bool is_caseless_letter(const RegexNode& node) noexcept {
  const std::uint32_t lower = node.code | 0x20U;
  return node.flags.ignore_case && (node.code >= 0x80 || (lower >= 'a' && lower <= 'z'));
}

// Collects runs of literals that stand next to each other; `keep` says which count.
template <typename Keep>
void find_runs(const RegexSequence& sequence, bool look_everywhere, const Keep& keep, std::string* longest) {
  std::string run;
  const auto finish = [&] {
    if (run.size() > longest->size()) *longest = run;
    run.clear();
  };
  for (const RegexNode& node : sequence) {
    if (node.kind == Kind::kLiteral && keep(node)) {
      append_utf8(&run, node.code);
      continue;
    }
    // Zero-width items do not part the text around them.
    if (node.kind == Kind::kAt) continue;
    if (node.kind == Kind::kLook && !look_everywhere) continue;
    finish();
    const bool is_certain =
        node.kind == Kind::kGroup || node.kind == Kind::kAtomic || (node.kind == Kind::kRepeat && node.min > 0);
    if (look_everywhere || (is_certain && node.branches.size() == 1)) {
      for (const RegexSequence& branch : node.branches) find_runs(branch, look_everywhere, keep, longest);
    }
  }
  finish();
}

}  // namespace

RegexWidth regex_width(const std::vector<RegexSequence>& branches, const std::vector<RegexWidth>& group_widths) {
  RegexWidth width{.min = kMaxWidth, .max = 0};
  for (const RegexSequence& branch : branches) {
    RegexWidth sum;
    for (const RegexNode& node : branch) {
      const RegexWidth part = regex_width(node, group_widths);
      sum = {saturated_sum(sum.min, part.min), saturated_sum(sum.max, part.max)};
    }
    width = {std::min(width.min, sum.min), std::max(width.max, sum.max)};
  }
  return width;
}

RegexWidth regex_width(const RegexNode& node, const std::vector<RegexWidth>& group_widths) {
  switch (node.kind) {
    case Kind::kLiteral:
    case Kind::kAny:
    case Kind::kSet: return {1, 1};
    case Kind::kAt:
    case Kind::kLook: return {};
    case Kind::kGroup:
    case Kind::kAtomic:
    case Kind::kConditional: return regex_width(node.branches, group_widths);
    case Kind::kBackref: return group_widths[static_cast<std::size_t>(node.number)];
    case Kind::kRepeat: break;
  }
  const RegexWidth body = regex_width(node.branches, group_widths);
  RegexWidth width{.min = saturated_product(body.min, node.min)};
  width.max = node.max == kUnlimited && body.max != 0 ? kMaxWidth : saturated_product(body.max, node.max);
  return width;
}

SearchCost search_cost(const Regex& regex) {
  SearchCost cost = ways(regex.branches);
  const bool is_anchored = std::ranges::all_of(regex.branches, starts_at_beginning);
  if (!is_anchored) ++cost.degree;
  return cost;
}

std::string required_literal(const Regex& regex) {
  if (regex.branches.size() != 1) return {};
  std::string longest;
  const auto is_exact = [](const RegexNode& node) {
    return !is_caseless_letter(node) && (node.code < 0xD800 || node.code > 0xDFFF);
  };
  find_runs(regex.branches[0], false, is_exact, &longest);
  return longest;
}

std::string longest_literal(const Regex& regex) {
  std::string longest;
  const auto is_letter = [](const RegexNode& node) { return node.code < 0xD800 || node.code > 0xDFFF; };
  for (const RegexSequence& branch : regex.branches) find_runs(branch, true, is_letter, &longest);
  return longest;
}

}  // namespace tornasole::pattern
