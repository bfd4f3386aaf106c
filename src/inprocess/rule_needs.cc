#include "inprocess/rule_needs.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "base/errors.h"

namespace tornasole::inprocess {
namespace {

// Of anything that is not finite, the largest magnitude is not finite either.
constexpr std::string_view kTellsNonFinite = "abs_max";

// The statistics of a need that can be stored; what they are of is saved with these.
Result<ReductionConfig> reductions_of(std::string_view rule, const Need& need) {
  if (need.value) {
    return unsupported_error(
        "rule {} needs whole values: inside the training only rules that statistics are enough for may run; "
        "run it beside the training or after it",
        rule);
  }
  ReductionConfig config;
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    // What is no reduction, such as a count, is not stored: the rule does without it, as with any run that lacks it.
    if (need.stats.has(stat)) static_cast<void>(add_reductions(stat_name(stat), &config));
  }
  if (config == ReductionConfig() && (need.reductions_without_value || !need.derived.empty())) {
    // A run knows a tensor by what was saved under its own name, so what is derived is not enough.
    TORNASOLE_CHECK(add_reductions(kTellsNonFinite, &config));
  }
  if (config == ReductionConfig()) {
    return unsupported_error("rule {} needs statistics that are not stored; run it beside the training or after it",
                             rule);
  }
  return config;
}

// A number of one element is told by its value alone.
bool is_scalar(const Need& need) { return need.stats.has(Stat::kMean) && need.stats.has(Stat::kCount); }

void add_to(const std::vector<std::string>& from, std::vector<std::string>* to) {
  for (const std::string& name : from) {
    if (std::ranges::find(*to, name) == to->end()) to->push_back(name);
  }
}

ReductionConfig united(ReductionConfig one, const ReductionConfig& other) {
  add_to(other.reductions, &one.reductions);
  add_to(other.abs_reductions, &one.abs_reductions);
  add_to(other.norms, &one.norms);
  add_to(other.abs_norms, &one.abs_norms);
  return one;
}

class NeededCollections {
 public:
  explicit NeededCollections(Hook* hook)
      : hook_(*hook), options_(hook->options()), saved_(options_.include_collections) {
    if (options_.save_all) saved_.emplace_back("all");
  }

  Status save(const std::string& name, const ReductionConfig& wanted, bool is_scalar) {
    static_cast<void>(hook_.collection(name));  // made if there is none
    TORNASOLE_TRY(CollectionConfig config, hook_.collection_config(name));
    const bool is_saved = std::ranges::find(saved_, name) != saved_.end();
    if (is_saved) {
      const std::optional<ReductionConfig> now =
          config.reduction_config ? config.reduction_config : options_.reduction_config;
      if (!now || now->save_raw_tensor) return {};  // the value gives them all
      config.reduction_config = united(*now, wanted);
      config.reduction_config->save_raw_tensor = is_scalar;
    } else {
      config.reduction_config = wanted;
      config.reduction_config->save_raw_tensor = is_scalar;
    }
    TORNASOLE_CHECK(hook_.set_collection(config));
    hook_.include_collection(name);
    if (!is_saved) saved_.push_back(name);
    return {};
  }

  Status save_named(const std::string& name, const Need& need, const ReductionConfig& wanted, bool is_scalar) {
    CollectionConfig config{.name = name,
                            .include_regex = need.regex,
                            .exclude_regex = need.exclude_regex,
                            .tensor_names = need.names,
                            .reduction_config = wanted};
    config.reduction_config->save_raw_tensor = is_scalar;
    TORNASOLE_CHECK(hook_.set_collection(config));
    hook_.include_collection(name);
    return {};
  }

 private:
  Hook& hook_;
  HookOptions options_;
  std::vector<std::string> saved_;
};

}  // namespace

Status save_needs(std::string_view rule, const std::vector<Need>& needs, Hook* hook) {
  if (needs.empty()) {
    return unsupported_error("rule {} is about time, not tensors: run it beside the training", rule);
  }
  NeededCollections collections(hook);
  std::vector<ReductionConfig> wanted;
  for (const Need& need : needs) {
    TORNASOLE_TRY(ReductionConfig reductions, reductions_of(rule, need));
    wanted.push_back(std::move(reductions));
  }
  for (std::size_t i = 0; i < needs.size(); ++i) {
    const Need& need = needs[i];
    TORNASOLE_CHECK(hook->derive(need.derived));
    const bool is_everything = need.collections.empty() && need.regex.empty() && need.names.empty();
    const std::vector<std::string> names = is_everything ? std::vector<std::string>{"all"} : need.collections;
    for (const std::string& name : names) TORNASOLE_CHECK(collections.save(name, wanted[i], is_scalar(need)));
    if (!need.regex.empty() || !need.names.empty()) {
      TORNASOLE_CHECK(collections.save_named(fmt::format("{}_needs_{}", rule, i), need, wanted[i], is_scalar(need)));
    }
  }
  return {};
}

}  // namespace tornasole::inprocess
