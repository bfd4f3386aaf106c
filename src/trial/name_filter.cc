#include "trial/name_filter.h"

#include <algorithm>

#include "base/errors.h"

namespace tornasole::trial {
namespace {

constexpr std::size_t kMaxPatterns = 1000;

Result<std::vector<pattern::Pattern>> compile_all(const std::vector<std::string>& texts) {
  if (texts.size() > kMaxPatterns) {
    return invalid_error("{} patterns; at most {} are allowed in one query", texts.size(), kMaxPatterns);
  }
  std::vector<pattern::Pattern> patterns;
  for (const std::string& text : texts) {
    TORNASOLE_TRY(pattern::Pattern pattern, pattern::Pattern::compile(text));
    patterns.push_back(std::move(pattern));
  }
  return patterns;
}

bool is_found(const std::vector<pattern::Pattern>& patterns, std::string_view name) {
  const pattern::SearchedName searched(name);
  return std::ranges::any_of(patterns, [&](const auto& p) { return p.search(searched) == pattern::Match::kYes; });
}

}  // namespace

Result<NameFilter> NameFilter::by_patterns(const std::vector<std::string>& patterns) {
  NameFilter filter;
  TORNASOLE_TRY(filter.include_, compile_all(patterns));
  return filter;
}

Result<NameFilter> NameFilter::by_collection(const TrialCollection& collection) {
  NameFilter filter;
  filter.listed_.insert(collection.tensor_names.begin(), collection.tensor_names.end());
  TORNASOLE_TRY(filter.include_, compile_all(collection.include_regex));
  TORNASOLE_TRY(filter.exclude_, compile_all(collection.exclude_regex));
  return filter;
}

bool NameFilter::contains(std::string_view name) const {
  return listed_.contains(name) || (is_found(include_, name) && !is_found(exclude_, name));
}

}  // namespace tornasole::trial
