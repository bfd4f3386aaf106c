#include "plan/plan.h"

#include <algorithm>
#include <limits>
#include <set>

#include "base/errors.h"
#include "pattern/limit_report.h"
#include "plan/builtin_collections.h"
#include "plan/plan_state.h"
#include "plan/schedule.h"

namespace tornasole::plan {
namespace {

constexpr std::int64_t kNever = std::numeric_limits<std::int64_t>::max();

bool test_bit(const CollectionBits& bits, std::size_t position) noexcept {
  const std::size_t word = position / 64;
  return word < bits.size() && ((bits[word] >> (position % 64)) & 1) != 0;
}
void set_bit(std::uint64_t* words, std::size_t position) noexcept {
  words[position / 64] |= std::uint64_t{1} << (position % 64);
}

}  // namespace

Plan::Plan(std::unique_ptr<State> state) : state_(std::move(state)) {}
Plan::Plan(Plan&&) noexcept = default;
Plan& Plan::operator=(Plan&&) noexcept = default;
Plan::~Plan() = default;

const std::vector<std::string>& Plan::warnings() const noexcept { return state_->warnings; }
const std::vector<const Collection*>& Plan::saved() const noexcept { return state_->saved_view; }
bool Plan::has_watch(Mode mode) const noexcept { return state_->has_watch[mode_index(mode)]; }
std::size_t Plan::name_count() const noexcept { return state_->names.size(); }
std::string_view Plan::name(NameId id) const noexcept { return state_->names.name(id.value); }

std::int64_t Plan::next_due_step(Mode mode, std::int64_t from) const noexcept {
  std::int64_t next = kNever;
  for (const config::Schedule& schedule : state_->distinct_schedules[mode_index(mode)]) {
    next = std::min(next, next_due(schedule, from));
  }
  return next;
}

std::int64_t Plan::same_until(Mode mode, std::int64_t mode_step) const noexcept {
  std::int64_t until = kNever;
  for (const config::Schedule& schedule : state_->distinct_schedules[mode_index(mode)]) {
    until = std::min(until, plan::same_until(schedule, mode_step));
  }
  return until;
}

bool Plan::State::is_blocked(const Collection& collection, Mode mode) const noexcept {
  return (mode == Mode::kEval || mode == Mode::kPredict) && is_training_only(collection.name);
}

CollectionBits Plan::due(Mode mode, std::int64_t mode_step) const {
  CollectionBits bits(state_->words);
  for (std::size_t i = 0; i < state_->saved.size(); ++i) {
    const Collection& collection = *state_->saved[i].collection;
    if (state_->is_blocked(collection, mode)) continue;
    if (is_due(*collection.schedules[mode_index(mode)], mode_step)) set_bit(bits.data(), i);
  }
  return bits;
}

CollectionBits Plan::watching(Mode mode, std::int64_t mode_step) const {
  CollectionBits bits(state_->words);
  if (!has_watch(mode)) return bits;
  for (std::size_t i = 0; i < state_->saved.size(); ++i) {
    const Collection& collection = *state_->saved[i].collection;
    const config::Schedule& schedule = *collection.schedules[mode_index(mode)];
    if (schedule.when_nan.empty() || state_->is_blocked(collection, mode)) continue;
    if (!is_due(schedule, mode_step)) set_bit(bits.data(), i);
  }
  return bits;
}

NameId Plan::name_id(std::string_view name) {
  state_->make_room(state_->names.size() + 1);  // no name may be known that has no place among the members
  const NameTable::Found found = state_->names.intern(name);
  if (found.is_new) state_->resolve(found.id, name);
  return {found.id};
}

bool Plan::State::matches(UsedPattern* used, const pattern::SearchedName& name) {
  const pattern::Match match = used->pattern.search(name);
  if (match == pattern::Match::kLimit && !used->has_hit_limit) {
    used->has_hit_limit = true;
    limit_reports.push_back(pattern::limit_report(used->pattern, name.text()));
  }
  return match == pattern::Match::kYes;
}

bool Plan::State::matches_any(const std::vector<UsedPattern*>& list, const pattern::SearchedName& name) {
  for (UsedPattern* used : list) {
    if (used->pattern.requirement().is_met_by(name.text()) && matches(used, name)) return true;
  }
  return false;
}

bool Plan::matches(std::size_t position, std::string_view name) {
  const State::SavedCollection& saved = state_->saved[position];
  const pattern::SearchedName searched(name);
  return state_->matches_any(saved.include, searched) && !state_->matches_any(saved.exclude, searched);
}

void Plan::State::make_room(std::size_t names_count) {
  if (const std::size_t needed = names_count * words; members.size() < needed) members.resize(2 * needed);
}

void Plan::State::resolve(std::uint32_t id, std::string_view text) {
  std::uint64_t* bits = members.data() + std::size_t{id} * words;
  std::fill_n(bits, words, 0);
  const pattern::SearchedName name(text);
  if (!explicit_names.empty()) {
    if (const auto listed = explicit_names.find(name.text()); listed != explicit_names.end()) {
      std::ranges::copy(listed->second, bits);
    }
  }
  for (const Wanted& want : wanted) {
    if (!want.requirement.is_met_by(name.text())) continue;
    if (((bits[want.collection / 64] >> (want.collection % 64)) & 1) != 0) continue;
    const bool is_certain = want.requirement.is_enough && !name.has_line_feed();
    if (!is_certain && !matches(want.pattern, name)) continue;
    SavedCollection& collection = saved[want.collection];
    if (matches_any(collection.exclude, name)) continue;
    set_bit(bits, want.collection);
    collection.matched.push_back(id);
  }
}

void Plan::publish_names() {
  State& state = *state_;
  const auto publish = [&](const std::vector<std::uint32_t>& ids, std::size_t* published, Collection* collection) {
    for (; *published < ids.size(); ++*published) collection->matched_names.emplace(state.names.name(ids[*published]));
  };
  for (State::SavedCollection& saved : state.saved) publish(saved.matched, &saved.published, saved.collection);
  if (state.watched_published < state.watched_names.size()) {
    publish(state.watched_names, &state.watched_published, &state.collections->get("when_nan"));
  }
}

const SaveOrder& Plan::order(NameId name, const CollectionBits& due) {
  State& state = *state_;
  const std::uint64_t* members = state.members.data() + std::size_t{name.value} * state.words;
  if (state.words == 1) {
    const std::uint64_t word = due.empty() ? 0 : members[0] & due[0];
    if (word == 0) return state.nothing;
    State::Recent& recent = state.recent[(word * 0x9E3779B97F4A7C15U) >> 60];
    if (recent.word == word) return *recent.order;
    state.scratch.assign(1, word);
    recent = {word, &state.find_order(state.scratch)};
    return *recent.order;
  }
  state.scratch.resize(state.words);
  for (std::size_t i = 0; i < state.words; ++i) state.scratch[i] = i < due.size() ? members[i] & due[i] : 0;
  return any(state.scratch) ? state.find_order(state.scratch) : state.nothing;
}

const SaveOrder& Plan::State::find_order(const CollectionBits& due_members) {
  auto known = orders.find(due_members);
  if (known == orders.end()) known = orders.emplace(due_members, make_order(due_members)).first;
  return known->second;
}

SaveOrder Plan::State::make_order(const CollectionBits& due_members) const {
  SaveOrder order;
  std::pair<bool, std::string_view> histogram = {true, {}};  // all and default come last, then by name
  bool wants_shape = false;
  for (std::size_t i = 0; i < saved.size(); ++i) {
    if (!test_bit(due_members, i)) continue;
    order.collections.push_back(static_cast<int>(i));
    const Collection& collection = *saved[i].collection;
    const ReductionSpec& form = *collection.reductions;
    order.save_raw |= form.save_raw_tensor;
    wants_shape |= form.save_shape;
    order.is_scalar |= is_scalar_collection(collection.name);
    order.is_metric |= is_metric_collection(collection.name);
    if (is_always_raw(collection.name)) continue;
    for (const Reduction reduction : form.reductions) {
      if (std::ranges::find(order.reductions, reduction) == order.reductions.end()) {
        order.reductions.push_back(reduction);
      }
    }
    if (!collection.save_histogram || !has_tensorboard) continue;
    const std::pair<bool, std::string_view> candidate = {collection.name == "all" || collection.name == "default",
                                                         collection.name};
    if (histogram.second.empty() || candidate < histogram) histogram = candidate;
  }
  // A value carries its shape, and the reference's reader loses a value that has both.
  order.save_shape = wants_shape && !order.save_raw;
  order.histogram_collection = histogram.second;
  order.is_wanted = order.save_raw || order.save_shape || !order.reductions.empty() ||
                    !order.histogram_collection.empty() || order.is_scalar || order.is_metric;
  return order;
}

CollectionBits Plan::watched_by(NameId name, Mode mode, const CollectionBits& watching) {
  State& state = *state_;
  CollectionBits bits(state.words);
  const std::size_t lists = state.watch_lists.size();
  if (state.watched.size() < state.names.size() * lists) state.watched.resize(state.names.size() * lists);
  bool was_watched = false;
  bool is_new = false;
  for (std::size_t i = 0; i < lists; ++i) {
    State::Watched& watched = state.watched[name.value * lists + i];
    was_watched |= watched == State::Watched::kYes;
    const CollectionBits& owners = state.watch_lists[i].collections[mode_index(mode)];
    bool is_asked = false;
    for (std::size_t w = 0; w < owners.size() && w < watching.size(); ++w) is_asked |= (owners[w] & watching[w]) != 0;
    if (!is_asked) continue;
    if (watched == State::Watched::kUnknown) {
      const bool matches =
          state.matches_any(state.watch_lists[i].patterns, pattern::SearchedName(state.names.name(name.value)));
      watched = matches ? State::Watched::kYes : State::Watched::kNo;
      is_new |= matches;
    }
    if (watched != State::Watched::kYes) continue;
    for (std::size_t w = 0; w < owners.size() && w < watching.size(); ++w) bits[w] |= owners[w] & watching[w];
  }
  if (is_new && !was_watched) state.watched_names.push_back(name.value);
  return bits;
}

std::vector<std::string> Plan::take_limit_reports() { return std::exchange(state_->limit_reports, {}); }

void Plan::add_to_collections(NameId name, std::span<const std::string_view> collections) {
  State& state = *state_;
  for (const std::string_view collection_name : collections) {
    Collection& collection = state.collections->get(collection_name);
    collection.tensor_names.emplace(state.names.name(name.value));
    if (is_listing(collection.name)) continue;
    auto found = std::ranges::find(state.saved, &collection, &State::SavedCollection::collection);
    if (found == state.saved.end()) {
      state.collections->include(collection.name);
      // Its patterns were checked when they were set; if one is bad all the same, the next preparation says so.
      if (!state.check_and_complete(&collection) || !state.save_collection(&collection)) continue;
      state.count_schedules();
      found = state.saved.end() - 1;
    }
    set_bit(state.members.data() + name.value * state.words, static_cast<std::size_t>(found - state.saved.begin()));
    state.explicit_names[std::string(state.names.name(name.value))].assign(
        state.members.begin() + static_cast<std::ptrdiff_t>(name.value * state.words),
        state.members.begin() + static_cast<std::ptrdiff_t>((name.value + 1) * state.words));
  }
}

}  // namespace tornasole::plan
