// Collections as users describe them: what a hook has, and what they come to without one.

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "capture/hook_state.h"
#include "pattern/pattern.h"
#include "plan/builtin_collections.h"
#include "plan/schedule.h"
#include "tornasole/hook.h"

namespace tornasole {
namespace capture {

ReductionConfig to_reduction_config(const ReductionSpec& spec) {
  ReductionConfig config{.save_raw_tensor = spec.save_raw_tensor, .save_shape = spec.save_shape};
  for (const Reduction& reduction : spec.reductions) {
    auto& of_kind = is_norm(reduction.kind) ? (reduction.of_absolute ? config.abs_norms : config.norms)
                                            : (reduction.of_absolute ? config.abs_reductions : config.reductions);
    of_kind.emplace_back(reduction_kind_name(reduction.kind));
  }
  return config;
}

SaveConfigMode to_save_config(const config::Schedule& schedule) {
  return {schedule.save_interval, schedule.start_step, schedule.end_step, schedule.save_steps, schedule.when_nan};
}

namespace {

CollectionConfig to_collection_config(const plan::Collection& collection) {
  CollectionConfig config{.name = collection.name,
                          .include_regex = collection.include_regex,
                          .exclude_regex = collection.exclude_regex,
                          .tensor_names = {collection.tensor_names.begin(), collection.tensor_names.end()},
                          .save_histogram = collection.save_histogram};
  if (collection.reductions) config.reduction_config = to_reduction_config(*collection.reductions);
  for (const Mode mode : kAllModes) {
    const auto& schedule = collection.schedules[mode_index(mode)];
    if (!schedule) continue;
    if (!config.save_config) config.save_config.emplace();
    config.save_config->modes[mode] = to_save_config(*schedule);
  }
  return config;
}

}  // namespace

Status HookState::set_collection(const CollectionConfig& config) {
  if (config.name.empty()) return invalid_error("a collection needs a name");
  const std::int64_t interval = config::default_save_interval(config_.framework);
  return change_collection(config.name, [&](plan::Collection& c) -> Status {
    c.include_regex = config.include_regex;
    c.exclude_regex = config.exclude_regex;
    if (!plan::is_listing(c.name)) c.tensor_names.clear();  // what was listed stays listed
    c.tensor_names.insert(config.tensor_names.begin(), config.tensor_names.end());
    c.save_histogram = config.save_histogram;
    c.reductions.reset();
    c.schedules = {};
    if (config.reduction_config) {
      TORNASOLE_TRY(c.reductions, config::make_reduction_spec(*config.reduction_config));
    }
    if (config.save_config) {
      TORNASOLE_TRY(c.schedules, config::make_schedules(*config.save_config, interval));
    }
    return {};
  });
}

Result<CollectionConfig> HookState::collection_config(std::string_view name) {
  if (is_inert()) return CollectionConfig{.name = std::string(name)};
  const std::lock_guard lock(mutex_);
  const plan::Collection* found = collections_.find(name);
  if (found == nullptr) {
    return make_error(ErrorCode::kNotFound, ErrorKind::kBase, "there is no collection \"{}\"", name);
  }
  return to_collection_config(*found);
}

Status HookState::reset_collections() {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  if (plan_) return runtime_error("the collections cannot be reset once they are prepared, which the first step did");
  collections_.reset();
  return {};
}

void HookState::enter_tape() {
  if (is_inert()) return;
  const std::lock_guard lock(mutex_);
  collections_.enter_tape();
}

void HookState::include_collection(std::string_view name) {
  if (is_inert()) return;
  const std::lock_guard lock(mutex_);
  collections_.include(name);
}

Status HookState::set_save_config(const SaveConfig& config) {
  TORNASOLE_TRY(const config::Schedules schedules,
                config::make_schedules(config, config::default_save_interval(config_.framework)));
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < schedules.size(); ++i) {
    if (schedules[i]) config_.schedules[i] = *schedules[i];
  }
  collections_.touch();
  return {};
}

Status HookState::set_reduction_config(const ReductionConfig& config) {
  TORNASOLE_TRY(ReductionSpec spec, config::make_reduction_spec(config));
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  config_.reductions = std::move(spec);
  collections_.touch();
  return {};
}

std::vector<std::string> HookState::saved_collections(bool only_due) {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  if (!plan_) return names;
  plan::CollectionBits due;
  if (only_due) due = plan_->due(mode_, mode_steps_[mode_index(mode_)]);
  for (std::size_t i = 0; i < plan_->saved().size(); ++i) {
    const bool is_listed = !only_due || ((due[i / 64] >> (i % 64)) & 1) != 0;
    if (is_listed) names.push_back(plan_->saved()[i]->name);
  }
  return names;
}

bool HookState::should_save(std::string_view tensor, std::string_view collection) {
  if (is_inert()) return false;
  const std::lock_guard lock(mutex_);
  if (!plan_) return false;
  const std::string_view asked = config::resolve_collection_alias(collection);
  // The name under which a framework's optimizer hands out the gradient of a variable.
  std::string name(tensor);
  if (asked == "gradients") name = fmt::format("gradients/{}Grad", tensor.substr(0, tensor.find(':')));
  const plan::CollectionBits due = plan_->due(mode_, mode_steps_[mode_index(mode_)]);
  for (std::size_t i = 0; i < plan_->saved().size(); ++i) {
    if (((due[i / 64] >> (i % 64)) & 1) == 0) continue;
    const plan::Collection& saved = *plan_->saved()[i];
    if (saved.name == asked && saved.include_regex.empty()) return true;
    if (plan_->matches(i, name)) return true;
  }
  return false;
}

}  // namespace capture

// ---- without a hook

std::vector<CollectionConfig> collections_of(Framework framework, std::string_view framework_version) {
  std::vector<CollectionConfig> configs;
  for (const plan::Collection& builtin : plan::builtin_collections(framework, framework_version)) {
    configs.push_back(capture::to_collection_config(builtin));
  }
  return configs;
}

CollectionConfig new_collection(Framework framework, std::string_view name) {
  const std::string_view real = config::resolve_collection_alias(name);
  if (const auto on_request = plan::on_request_collection(framework, real)) {
    return capture::to_collection_config(*on_request);
  }
  return {.name = std::string(real)};
}

std::vector<std::string> saved_collections_of(Framework framework) { return plan::default_collections(framework); }

bool should_save_step(const SaveConfigMode& config, std::int64_t mode_step, Framework framework) {
  const auto complete = complete_save_config(config, framework);
  if (!complete) return false;
  std::vector<std::int64_t> save_steps = *complete->save_steps;
  std::ranges::sort(save_steps);
  return plan::is_due({.save_interval = *complete->save_interval,
                       .start_step = *complete->start_step,
                       .end_step = complete->end_step,
                       .save_steps = std::move(save_steps)},
                      mode_step);
}

Result<bool> finds_match(std::string_view pattern, std::string_view text) {
  TORNASOLE_TRY(const pattern::Pattern compiled, pattern::Pattern::compile(pattern));
  return compiled.search(text) == pattern::Match::kYes;
}

// ---- of a hook

Status Hook::set_collection(const CollectionConfig& config) { return state_->set_collection(config); }
Result<CollectionConfig> Hook::collection_config(std::string_view name) const {
  return state_->collection_config(name);
}
std::vector<std::string> Hook::tensor_names(std::string_view collection) const {
  return state_->collection(collection).all_names();
}
Status Hook::reset_collections() { return state_->reset_collections(); }
void Hook::include_collection(std::string_view name) { state_->include_collection(name); }
Status Hook::derive(const std::vector<std::string>& statistics) { return state_->derive(statistics); }
Status Hook::set_save_config(const SaveConfig& config) { return state_->set_save_config(config); }
Status Hook::set_reduction_config(const ReductionConfig& config) { return state_->set_reduction_config(config); }
std::vector<std::string> Hook::saved_collections() const { return state_->saved_collections(/*only_due=*/false); }
std::vector<std::string> Hook::due_collections() const { return state_->saved_collections(/*only_due=*/true); }
bool Hook::should_save(std::string_view tensor, std::string_view collection) const noexcept {
  try {
    return state_->should_save(tensor, collection);
  } catch (...) {
    return false;  // a question nobody can be told the failure of; the tensor itself will be
  }
}

}  // namespace tornasole
