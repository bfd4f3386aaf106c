#include "trial/name_filter.h"

#include "base/errors.h"
#include "pattern/limit_report.h"

namespace tornasole::trial {
namespace {

constexpr std::size_t kMaxPatterns = 1000;

// A pattern that gave up this often is not tried again: a trial may hold a million names made for it.
constexpr int kMaxGivenUp = 10;

}  // namespace

Result<std::vector<NameFilter::UsedPattern>> NameFilter::compile_all(const std::vector<std::string>& texts) {
  if (texts.size() > kMaxPatterns) {
    return invalid_error("{} patterns; at most {} are allowed in one query", texts.size(), kMaxPatterns);
  }
  std::vector<UsedPattern> patterns;
  for (const std::string& text : texts) {
    TORNASOLE_TRY(pattern::Pattern pattern, pattern::Pattern::compile(text));
    patterns.push_back({std::move(pattern)});
  }
  return patterns;
}

bool NameFilter::is_found(std::vector<UsedPattern>* patterns, std::string_view name) {
  const pattern::SearchedName searched(name);
  for (UsedPattern& used : *patterns) {
    if (used.given_up >= kMaxGivenUp) continue;
    const pattern::Match match = used.pattern.search(searched);
    if (match == pattern::Match::kYes) return true;
    if (match == pattern::Match::kLimit && used.given_up++ == 0) {
      limit_reports_.push_back(pattern::limit_report(used.pattern, name));
    }
  }
  return false;
}

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

bool NameFilter::contains(std::string_view name) {
  return listed_.contains(name) || (is_found(&include_, name) && !is_found(&exclude_, name));
}

}  // namespace tornasole::trial
