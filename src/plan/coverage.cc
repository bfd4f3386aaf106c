// What the saved collections asked for and got: patterns that no name matched, and the names they may have meant.

#include <algorithm>

#include "plan/plan_state.h"

namespace tornasole::plan {
namespace {

constexpr std::size_t kMaxNearMisses = 3;
constexpr std::size_t kMinLiteral = 3;

// The least number of characters to insert, remove or change so that `text` occurs somewhere in `name`.
std::size_t distance_within(std::string_view text, std::string_view name) {
  std::vector<std::size_t> row(name.size() + 1, 0);  // a match may begin anywhere
  for (std::size_t i = 1; i <= text.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= name.size(); ++j) {
      const std::size_t changed = diagonal + (text[i - 1] == name[j - 1] ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
    }
  }
  return *std::ranges::min_element(row);
}

struct Candidate {
  std::size_t distance = 0;
  std::uint32_t id = 0;
  auto operator<=>(const Candidate&) const = default;
};

// Names that differ from the pattern in case, then those that differ from its longest text in few characters.
std::vector<std::string> near_misses(const pattern::Pattern& pattern, const NameTable& names) {
  std::vector<Candidate> candidates;
  const auto any_case = pattern::Pattern::compile("(?i:" + pattern.text() + ")");
  const std::string_view literal = pattern.literal();
  const std::size_t most = std::max<std::size_t>(1, literal.size() / 3);
  for (std::uint32_t id = 0; id < names.size(); ++id) {
    const std::string_view name = names.name(id);
    if (any_case && any_case->search(name) == pattern::Match::kYes) {
      candidates.push_back({0, id});
    } else if (literal.size() >= kMinLiteral) {
      const std::size_t distance = distance_within(literal, name);
      // Distance 0 is a near miss as well: the text is there, the rest of the pattern keeps it from matching.
      if (distance <= most) candidates.push_back({distance + 1, id});
    }
  }
  const std::size_t count = std::min(candidates.size(), kMaxNearMisses);
  std::ranges::partial_sort(candidates, candidates.begin() + static_cast<std::ptrdiff_t>(count));
  std::vector<std::string> nearest;
  for (std::size_t i = 0; i < count; ++i) nearest.emplace_back(names.name(candidates[i].id));
  return nearest;
}

bool matches_any_name(const pattern::Pattern& pattern, const NameTable& names) {
  for (std::uint32_t id = 0; id < names.size(); ++id) {
    if (pattern.search(names.name(id)) == pattern::Match::kYes) return true;
  }
  return false;
}

}  // namespace

std::vector<Plan::Coverage> Plan::coverage() const {
  const State& state = *state_;
  std::vector<Coverage> report;
  for (std::size_t i = 0; i < state.saved.size(); ++i) {
    const State::SavedCollection& saved = state.saved[i];
    Coverage entry{.collection = saved.collection->name};
    for (std::size_t id = 0; id < state.names.size(); ++id) {
      entry.matched_names += static_cast<std::int64_t>((state.members[id * state.words + i / 64] >> (i % 64)) & 1);
    }
    for (const UsedPattern* used : saved.include) {
      if (matches_any_name(used->pattern, state.names)) continue;
      entry.unmatched_patterns.push_back(used->pattern.text());
      for (std::string& name : near_misses(used->pattern, state.names)) {
        if (std::ranges::find(entry.near_misses, name) == entry.near_misses.end()) {
          entry.near_misses.push_back(std::move(name));
        }
      }
    }
    report.push_back(std::move(entry));
  }
  return report;
}

}  // namespace tornasole::plan
