// Preparation of a plan, in order:
//   1. `all` gets its pattern if it is included; the listing when_nan is made if anything is watched
//   2. every collection, in creation order, is checked and completed from the hook's settings
//   3. the saved set is decided; its patterns are compiled
//   4. names known from the plan before are matched again

#include <algorithm>

#include "base/errors.h"
#include "plan/builtin_collections.h"
#include "plan/plan_state.h"

namespace tornasole::plan {
namespace {

constexpr std::size_t kMaxPatterns = 1000;

bool saves_nothing(const ReductionSpec& form) noexcept {
  return form.reductions.empty() && !form.save_raw_tensor && !form.save_shape;
}

void warn_of_missing(const Collections& collections, std::vector<std::string>* warnings) {
  for (const std::string& name : collections.included()) {
    if (collections.find(name) != nullptr) continue;
    std::string known;
    for (const Collection& collection : collections.all()) {
      if (!known.empty()) known += ", ";
      known += collection.name;
    }
    warnings->push_back(fmt::format(
        "collection \"{}\" is to be saved but does not exist, so nothing is saved for it; there are: {}", name, known));
  }
}

}  // namespace

Result<Plan> Plan::prepare(const config::Config& config, Collections* collections, Plan* previous) {
  auto state = std::make_unique<State>();
  State* before = previous != nullptr ? previous->state_.get() : nullptr;
  state->framework = config.framework;
  state->has_tensorboard = config.tensorboard_dir.has_value();
  state->hook_reductions = config.reductions;
  state->hook_schedules = config.schedules;
  state->collections = collections;
  if (before != nullptr) {
    // Matched names are worked out anew, so that a pattern taken back or an exclusion added takes effect on them.
    for (State::SavedCollection& saved : before->saved) {
      saved.collection->matched_names.clear();
      saved.published = 0;
    }
    state->spare_patterns = std::move(before->patterns);
  }

  const bool saves_all = collections->included().contains("all");
  if (Collection& all = collections->get("all");
      saves_all && std::ranges::find(all.include_regex, ".*") == all.include_regex.end()) {
    all.include_regex.emplace_back(".*");
  }
  const Status prepared = [&]() -> Status {
    for (Collection& collection : collections->all()) TORNASOLE_CHECK(state->check_and_complete(&collection));
    for (Collection& collection : collections->all()) {
      const bool is_saved = collections->included().contains(collection.name) ||
                            (saves_all && !must_be_named(config.framework, collection.name));
      if (is_saved && !is_listing(collection.name)) TORNASOLE_CHECK(state->save_collection(&collection));
    }
    return {};
  }();
  if (!prepared) {
    if (before != nullptr) {
      state->patterns.merge(state->spare_patterns);
      before->patterns = std::move(state->patterns);
      previous->publish_names();
    }
    return prepared.error();
  }
  warn_of_missing(*collections, &state->warnings);
  state->count_schedules();
  state->index_explicit_names();
  if (before != nullptr) {
    state->names = std::move(before->names);
    state->limit_reports = std::move(before->limit_reports);
    state->make_room(state->names.size());
    for (std::uint32_t id = 0; id < state->names.size(); ++id) state->resolve(id, state->names.name(id));
    previous->state_ = std::make_unique<State>();
    state->spare_patterns.clear();
  }
  if (std::ranges::any_of(state->has_watch, [](bool has) { return has; })) collections->get("when_nan");
  return Plan(std::move(state));
}

Status Plan::State::check_and_complete(Collection* collection) {
  if (!collection->is_builtin && collection->include_regex.empty() && collection->tensor_names.empty()) {
    return make_error(ErrorCode::kInvalid, ErrorKind::kBadCollection,
                      "collection \"{}\" has neither a pattern nor a tensor name, so it can never match; give it "
                      "include_regex or add names to it, or do not create it",
                      collection->name);
  }
  for (std::size_t i = 0; i < collection->schedules.size(); ++i) {
    if (!collection->schedules[i]) collection->schedules[i] = hook_schedules[i];
  }
  if (is_always_raw(collection->name)) {
    collection->save_histogram = false;
    collection->reductions = ReductionSpec{};
  }
  if (!collection->reductions) collection->reductions = hook_reductions;
  if (framework == Framework::kXgboost && !collection->reductions->reductions.empty()) {
    const std::string warning = "reductions are not made of XGBoost's tensors; they are saved whole";
    if (std::ranges::find(warnings, warning) == warnings.end()) warnings.push_back(warning);
    collection->reductions->reductions.clear();
    collection->reductions->save_raw_tensor = true;
  }
  return {};
}

Result<UsedPattern*> Plan::State::use_pattern(const std::string& where, const std::string& text) {
  const auto known = patterns.find(text);
  if (known != patterns.end()) return known->second.get();
  if (patterns.size() >= kMaxPatterns) {
    return invalid_error("{}: pattern \"{}\" is one too many; at most {} different patterns are allowed in all", where,
                         text, kMaxPatterns);
  }
  if (auto spare = spare_patterns.extract(text)) return patterns.insert(std::move(spare)).position->second.get();
  auto compiled = pattern::Pattern::compile(text);
  if (!compiled) return invalid_error("{}: {}", where, compiled.error().message);
  return patterns.emplace(text, std::make_unique<UsedPattern>(*std::move(compiled))).first->second.get();
}

Status Plan::State::use_patterns(const Collection& collection, SavedCollection* saved_collection) {
  const std::string where = fmt::format("collection \"{}\"", collection.name);
  for (const std::string& text : collection.include_regex) {
    TORNASOLE_TRY(UsedPattern * used, use_pattern(where, text));
    saved_collection->include.push_back(used);
  }
  for (const std::string& text : collection.exclude_regex) {
    TORNASOLE_TRY(UsedPattern * used, use_pattern(where, text));
    saved_collection->exclude.push_back(used);
  }
  return {};
}

Status Plan::State::save_collection(Collection* collection) {
  SavedCollection entry{.collection = collection};
  TORNASOLE_CHECK(use_patterns(*collection, &entry));
  const std::size_t position = saved.size();
  for (std::size_t mode = 0; mode < collection->schedules.size(); ++mode) {
    const std::vector<std::string>& texts = collection->schedules[mode]->when_nan;
    if (texts.empty()) continue;
    auto list = std::ranges::find(watch_lists, texts, &WatchList::texts);
    if (list == watch_lists.end()) {
      WatchList created{.texts = texts};
      for (const std::string& text : texts) {
        TORNASOLE_TRY(UsedPattern * used, use_pattern(fmt::format("when_nan of \"{}\"", collection->name), text));
        created.patterns.push_back(used);
      }
      list = watch_lists.insert(watch_lists.end(), std::move(created));
      watched.clear();  // its layout is one entry per list
    }
    CollectionBits& owners = list->collections[mode];
    if (owners.size() <= position / 64) owners.resize(position / 64 + 1);
    owners[position / 64] |= std::uint64_t{1} << (position % 64);
  }
  for (UsedPattern* used : entry.include) {
    wanted.push_back({used->pattern.requirement(), static_cast<std::uint32_t>(position), used});
  }
  saved.push_back(std::move(entry));
  saved_view.push_back(collection);
  if (saves_nothing(*collection->reductions)) {
    warnings.push_back(fmt::format(
        "collection \"{}\" would save nothing: it has no reductions, and save_raw_tensor and save_shape are false",
        collection->name));
  }
  return {};
}

void Plan::State::count_schedules() {
  const std::size_t new_words = (saved.size() + 63) / 64;
  // Positions only grow at the end, so that the bits of known names move but keep their meaning.
  if (new_words != words) {
    std::vector<std::uint64_t> wider(names.size() * new_words);
    for (std::size_t id = 0; id < names.size(); ++id) {
      for (std::size_t w = 0; w < words; ++w) wider[id * new_words + w] = members[id * words + w];
    }
    members = std::move(wider);
    words = new_words;
    orders.clear();
    recent = {};
    for (auto& [name, bits] : explicit_names) bits.resize(words);
  }
  for (std::size_t mode = 0; mode < distinct_schedules.size(); ++mode) {
    distinct_schedules[mode].clear();
    has_watch[mode] = false;
    for (const SavedCollection& entry : saved) {
      if (is_blocked(*entry.collection, kAllModes[mode])) continue;
      const config::Schedule& schedule = *entry.collection->schedules[mode];
      has_watch[mode] = has_watch[mode] || !schedule.when_nan.empty();
      if (std::ranges::find(distinct_schedules[mode], schedule) == distinct_schedules[mode].end()) {
        distinct_schedules[mode].push_back(schedule);
      }
    }
  }
}

void Plan::State::index_explicit_names() {
  for (std::size_t i = 0; i < saved.size(); ++i) {
    for (const std::string& name : saved[i].collection->tensor_names) {
      CollectionBits& bits = explicit_names[name];
      bits.resize(words);
      bits[i / 64] |= std::uint64_t{1} << (i % 64);
    }
  }
}

}  // namespace tornasole::plan
