#include "rules/name_plans.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/errors.h"
#include "reduce/derived.h"

namespace tornasole::rules {
namespace {

constexpr std::string_view kDerivedPrefix = "derived/";

// A name that is matched by a pattern or chosen by hand may be a derived statistic; one that is merely there is not.
bool is_derived(std::string_view name) { return name.starts_with(kDerivedPrefix); }

}  // namespace

std::optional<Stat> stat_of(Reduction reduction) {
  // The norms of magnitudes are the norms.
  if (is_norm(reduction.kind)) reduction.of_absolute = false;
  return parse_stat(reduction_name(reduction));  // both call it the same
}

Status NamePlans::update(const Trial& trial) {
  plans_.clear();
  for (std::uint32_t number = 0; number < needs_.size(); ++number) TORNASOLE_CHECK(match(trial, number));
  return {};
}

Status NamePlans::match(const Trial& trial, std::uint32_t number) {
  const Need& need = needs_[number];
  std::set<std::string> chosen;
  const auto take = [&](std::vector<std::string> names) {
    chosen.insert(std::make_move_iterator(names.begin()), std::make_move_iterator(names.end()));
  };
  for (const std::string& collection : need.collections) {
    TORNASOLE_TRY(std::vector<std::string> names, trial.tensor_names({.collection = collection}));
    take(std::move(names));
  }
  if (!need.regex.empty()) {
    TORNASOLE_TRY(std::vector<std::string> names, trial.tensor_names({.regex = need.regex}));
    take(std::move(names));
  }
  for (const std::string& name : need.names) {
    if (trial.has_tensor(name)) chosen.insert(name);
  }
  const bool has_choice = !need.collections.empty() || !need.regex.empty() || !need.names.empty();
  if (!has_choice || (need.or_everything && chosen.empty())) {
    TORNASOLE_TRY(std::vector<std::string> names, trial.tensor_names());
    std::erase_if(names, is_derived);
    take(std::move(names));
  }
  if (!need.exclude_regex.empty()) {
    TORNASOLE_TRY(const std::vector<std::string> names, trial.tensor_names({.regex = need.exclude_regex}));
    for (const std::string& name : names) chosen.erase(name);
  }
  if (need.choose) std::erase_if(chosen, [&](const std::string& name) { return !need.choose(name); });
  for (const std::string& name : chosen) {
    const auto at = plans_.try_emplace(name).first;
    NamePlan& plan = at->second;
    plan.needs.push_back(number);
    for (std::size_t i = 0; i < kStatCount; ++i) {
      if (need.stats.has(static_cast<Stat>(i))) plan.stats.add(static_cast<Stat>(i));
    }
    plan.value = plan.value || need.value;
    plan.reductions_without_value = plan.reductions_without_value || need.reductions_without_value;
    for (const std::string& statistic : need.derived) {
      const std::string stored = fmt::format("{}{}/{}", kDerivedPrefix, statistic, name);
      if (trial.has_tensor(stored)) {
        NamePlan& derived = plans_[stored];
        derived.owner = at->first;
        derived.owner_plan = &plan;
        derived.statistic = statistic;
      } else if (std::ranges::find(plan.derived, statistic) == plan.derived.end()) {
        plan.derived.push_back(statistic);
      }
    }
  }
  return {};
}

const NamePlan* NamePlans::find(std::string_view name) const noexcept {
  const auto found = plans_.find(name);
  return found == plans_.end() ? nullptr : &found->second;
}

std::vector<std::string> NamePlans::names() const {
  std::vector<std::string> names;
  names.reserve(plans_.size());
  for (const auto& [name, plan] : plans_) names.push_back(name);
  std::ranges::sort(names);
  return names;
}

void NamePlans::select(std::string_view name, StoredForms* forms) const {
  const NamePlan* plan = find(name);
  if (plan == nullptr) {
    *forms = {};
    return;
  }
  StatSet missing = plan->stats;
  for (const Reduction stored : forms->reductions) {
    if (const auto stat = stat_of(stored)) missing.remove(*stat);
  }
  const bool needs_value = plan->value || !plan->derived.empty() || !plan->owner.empty() || !missing.empty();
  if (forms->value && needs_value) {
    forms->reductions.clear();  // the value gives them all
    return;
  }
  if (!forms->value && plan->reductions_without_value) return;
  forms->value = false;
  std::erase_if(forms->reductions, [&](Reduction reduction) {
    const auto stat = stat_of(reduction);
    return !stat || !plan->stats.has(*stat);
  });
}

}  // namespace tornasole::rules
