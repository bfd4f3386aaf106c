#pragma once

// Unicode facts of Python's `re`: which characters are equal without regard to case, and what an identifier is.

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace tornasole::pattern {

using CodeRange = std::pair<std::uint32_t, std::uint32_t>;

// Every code point that matches `code` under (?i), itself included, in order.
std::vector<std::uint32_t> case_variants(std::uint32_t code, bool is_ascii_only);
// The ranges widened by the case variants of all they contain, sorted and merged.
std::vector<CodeRange> add_case_variants(std::vector<CodeRange> ranges, bool is_ascii_only);
// Sorted, overlapping and touching ones merged.
std::vector<CodeRange> merge_ranges(std::vector<CodeRange> ranges);
// Every code point outside the merged ranges.
std::vector<CodeRange> invert_ranges(const std::vector<CodeRange>& merged);

// str.isidentifier().
bool is_python_identifier(std::string_view utf8) noexcept;

}  // namespace tornasole::pattern
