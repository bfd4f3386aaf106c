#include "plan/collections.h"

#include <algorithm>
#include <array>
#include <iterator>

#include "plan/builtin_collections.h"
#include "plan/config_patterns.h"

namespace tornasole::plan {
namespace {

void apply_settings(const config::CollectionSettings& settings, Collection* collection) {
  std::ranges::copy(settings.include_regex, std::back_inserter(collection->include_regex));
  if (settings.reductions) collection->reductions = settings.reductions;
  if (settings.save_histogram) collection->save_histogram = *settings.save_histogram;
  for (std::size_t i = 0; i < settings.schedules.size(); ++i) {
    if (settings.schedules[i]) collection->schedules[i] = settings.schedules[i];
  }
}

}  // namespace

std::vector<std::string> Collection::all_names() const {
  std::vector<std::string> names;
  std::ranges::set_union(tensor_names, matched_names, std::back_inserter(names));
  return names;
}

Result<Collections> Collections::make(const config::Config& config) {
  if (const auto problems = pattern_problems(config); !problems.errors().empty()) return problems.first_error();
  Collections collections;
  collections.framework_ = config.framework;
  collections.framework_version_ = config.framework_version;
  collections.reset();
  for (const std::string& name : default_collections(config.framework)) collections.include(name);
  for (const std::string& name : config.include_collections) collections.include(name);
  for (const config::CollectionSettings& settings : config.collections) {
    apply_settings(settings, &collections.get(settings.name));
    collections.include(settings.name);
  }
  if (!config.include_regex.empty()) {
    std::ranges::copy(config.include_regex, std::back_inserter(collections.get("default").include_regex));
    collections.include("default");
  }
  if (config.save_all) {
    collections.get("all").include_regex.emplace_back(".*");
    collections.include("all");
  }
  if (!config.derived.empty()) collections.include("derived");
  collections.version_ = 0;
  return collections;
}

const Collection* Collections::find(std::string_view name) const noexcept {
  const std::string_view real = config::resolve_collection_alias(name);
  const auto found = std::ranges::find(collections_, real, &Collection::name);
  return found == collections_.end() ? nullptr : &*found;
}

Collection& Collections::get(std::string_view name) {
  if (const Collection* found = find(name)) return const_cast<Collection&>(*found);  // one of ours, not const here
  const std::string_view real = config::resolve_collection_alias(name);
  auto on_request = on_request_collection(framework_, real);
  collections_.push_back(on_request ? std::move(*on_request) : Collection{.name = std::string(real)});
  touch();
  return collections_.back();
}

void Collections::include(std::string_view name) {
  const std::string_view real = config::resolve_collection_alias(name);
  if (!included_.emplace(real).second) return;
  // A collection that exists only once it is asked for: being named here is the asking.
  if (on_request_collection(framework_, real)) get(real);
  touch();
}

void Collections::reset() {
  collections_.clear();
  for (Collection& builtin : builtin_collections(framework_, framework_version_)) {
    collections_.push_back(std::move(builtin));
  }
  for (const std::string& name : included_) {
    if (on_request_collection(framework_, name)) get(name);
  }
  touch();
}

void Collections::enter_tape() {
  get("weights").include_regex.emplace_back("^weights/.*/((?!bias).)*$");
  get("losses").include_regex.emplace_back(".*loss.*");
  get("gradients").include_regex.emplace_back("^gradient");
  touch();
}

}  // namespace tornasole::plan
