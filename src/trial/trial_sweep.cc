// Many values in one pass: each event file is read once, front to back.

#include <algorithm>
#include <map>
#include <span>
#include <tuple>

#include "base/errors.h"
#include "trial/tensor_view.h"
#include "trial/trial_errors.h"
#include "trial/trial_state.h"

namespace tornasole::trial {
namespace {

// Which values of the steps a sweep passes over, in the order of global step, worker and position.
class SweepPlan {
 public:
  SweepPlan(const IndexColumns& columns, const SweepQuery& query, std::vector<bool> is_wanted)
      : columns_(columns), query_(query), is_wanted_(std::move(is_wanted)) {}

  void add_step(const StepRow& row) {
    parts_.clear();
    std::uint32_t count = 0;
    for (std::uint32_t id = row.first_part; id != kNoPart; id = columns_.part(id).next, ++count) {
      const Part& part = columns_.part(id);
      if (query_.mode != Mode::kGlobal && part.mode != query_.mode) continue;
      if (!query_.worker.empty() && columns_.worker_name(part.worker) != query_.worker) continue;
      parts_.push_back(id);
    }
    std::ranges::stable_sort(parts_, {}, [&](std::uint32_t id) -> const std::string& {
      return columns_.worker_name(columns_.part(id).worker);
    });
    for (const std::uint32_t id : parts_) add_part(id, /*may_be_replaced=*/row.worker_count < count);
  }
  std::vector<WantedValue> take() { return std::move(wanted_); }

 private:
  bool is_series_wanted(Series series) const {
    const std::uint32_t tensor = tensor_of(series);
    if (!is_wanted_.empty() && !is_wanted_[tensor]) return false;
    if (is_value(series)) return query_.values;
    const auto reduction = reduction_of(series);
    if (!reduction || !query_.reductions) return false;
    return query_.reduction_kinds.empty() ||
           std::ranges::find(query_.reduction_kinds, *reduction) != query_.reduction_kinds.end();
  }

  const std::vector<std::uint32_t>& wanted_places(std::uint32_t layout) {
    const auto [at, is_new] = places_.try_emplace(layout);
    if (is_new) {
      const auto all = columns_.tables().layouts.series(layout);
      if (query_.select) {
        select_places(all, &at->second);
      } else {
        for (std::uint32_t place = 0; place < all.size(); ++place) {
          if (is_series_wanted(all[place])) at->second.push_back(place);
        }
      }
    }
    return at->second;
  }

  void select_places(std::span<const Series> all, std::vector<std::uint32_t>* places) const {
    for (std::uint32_t first = 0, last = 0; first < all.size(); first = last) {
      const std::uint32_t tensor = tensor_of(all[first]);
      StoredForms forms;
      for (; last < all.size() && tensor_of(all[last]) == tensor; ++last) {
        if (is_value(all[last])) forms.value = true;
        if (const auto reduction = reduction_of(all[last])) forms.reductions.push_back(*reduction);
      }
      if (!is_wanted_.empty() && !is_wanted_[tensor]) continue;
      // Of a shape alone there is nothing to read.
      if (!forms.value && forms.reductions.empty()) continue;
      query_.select(columns_.tables().names.name(tensor), &forms);
      for (std::uint32_t place = first; place < last; ++place) {
        if (is_among(all[place], forms)) places->push_back(place);
      }
    }
  }

  static bool is_among(Series series, const StoredForms& forms) {
    if (is_value(series)) return forms.value;
    const auto reduction = reduction_of(series);
    return reduction && std::ranges::find(forms.reductions, *reduction) != forms.reductions.end();
  }

  // A part that another of the same worker and step replaces: only what the other does not have counts.
  bool is_replaced(const Part& part, std::uint32_t place) const {
    const Series series = columns_.tables().layouts.series(part.layout)[place];
    for (std::uint32_t id = part.next; id != kNoPart; id = columns_.part(id).next) {
      const Part& later = columns_.part(id);
      if (later.worker == part.worker && columns_.tables().layouts.find(later.layout, series) >= 0) return true;
    }
    return false;
  }

  void add_part(std::uint32_t id, bool may_be_replaced) {
    const Part& part = columns_.part(id);
    const std::size_t first = wanted_.size();
    for (const std::uint32_t place : wanted_places(part.layout)) {
      if (!may_be_replaced || !is_replaced(part, place)) wanted_.push_back({id, place});
    }
    const auto by_offset = [&](const WantedValue& value) { return part.locations[value.place].offset(); };
    const auto added = std::ranges::subrange(wanted_.begin() + static_cast<std::ptrdiff_t>(first), wanted_.end());
    if (!std::ranges::is_sorted(added, {}, by_offset)) std::ranges::stable_sort(added, {}, by_offset);
  }

  const IndexColumns& columns_;
  const SweepQuery& query_;
  const std::vector<bool> is_wanted_;                           // per tensor; empty: all
  std::map<std::uint32_t, std::vector<std::uint32_t>> places_;  // by layout
  std::vector<std::uint32_t> parts_;
  std::vector<WantedValue> wanted_;
};

}  // namespace

Error TrialState::explain_wanted(const Error& error, const WantedValue& wanted, ModeStep step,
                                 MissingFile* missing) const {
  const Part& part = columns_.part(wanted.part);
  if (error.code == ErrorCode::kNotFound && missing->part != wanted.part) {
    *missing = {wanted.part, may_file_come(part)};
  }
  const Series series = columns_.tables().layouts.series(part.layout)[wanted.place];
  return explain(error, series, step, part, missing->may_come);
}

Status TrialState::sweep(const SweepQuery& query, const std::function<bool(const SweptValue&)>& callback) const {
  std::vector<bool> is_wanted;
  for (const std::string& name : query.names) {
    TORNASOLE_TRY(const std::uint32_t tensor, find_tensor(name));
    is_wanted.resize(columns_.tables().names.size());
    is_wanted[tensor] = true;
  }
  SweepPlan plan(columns_, query, std::move(is_wanted));
  const StepRange range{query.first_step, query.end_step};
  for (const StepRow& row : columns_.steps()) {
    if (range.contains(row.number) && is_shown(row, progress_, query.steps)) plan.add_step(row);
  }
  const std::vector<WantedValue> wanted = plan.take();
  MissingFile missing;
  BulkOptions options{.threads = threads_};
  if (query.digest) {
    options.digest = [&](const WantedValue& one, const TensorView& value, bool* keep) -> std::shared_ptr<void> {
      const Series series = columns_.tables().layouts.series(columns_.part(one.part).layout)[one.place];
      if (!is_value(series)) return nullptr;
      return query.digest(columns_.tables().names.name(tensor_of(series)), value, keep);
    };
  }
  read_values(*store_, columns_, wanted, options, [&](const WantedValue& one, Result<ReadValue> read) {
    const Part& part = columns_.part(one.part);
    const Series series = columns_.tables().layouts.series(part.layout)[one.place];
    SweptValue swept{.name = columns_.tables().names.name(tensor_of(series)),
                     .global_step = {part.global_step},
                     .step = {part.mode, part.mode_step},
                     .worker = columns_.worker_name(part.worker),
                     .reduction = reduction_of(series)};
    if (!read.ok()) {
      const Error error = explain_wanted(read.error(), one, {Mode::kGlobal, part.global_step}, &missing);
      swept.error = &error;
      return callback(swept);
    }
    swept.digest = read->digest;
    if (!read->value) return callback(swept);
    std::vector<std::string_view> texts;
    const TensorView view = view_of(*read->value, &texts);
    swept.value = &view;
    swept.tensor = &*read->value;
    return callback(swept);
  });
  return {};
}

Error TrialState::not_stored_error(std::uint32_t tensor, ModeStep step, std::uint32_t worker,
                                   Reduction reduction) const {
  return value_unavailable_error({.tensor = columns_.tables().names.name(tensor),
                                  .step = step,
                                  .worker = columns_.worker_name(worker),
                                  .reason = "not saved",
                                  .message = fmt::format("its {} was not saved", reduction_name(reduction)),
                                  .has_reductions = has_reductions(columns_, tensor, step, worker)});
}

Status TrialState::read(std::span<const ValueQuery> queries,
                        const std::function<bool(std::size_t place, Result<Tensor> value)>& callback) const {
  struct Asked {
    WantedValue wanted = {};
    std::uint64_t offset = 0;
    std::size_t place = 0;
  };
  std::vector<Asked> asked;
  asked.reserve(queries.size());
  for (std::size_t i = 0; i < queries.size(); ++i) {
    const ValueQuery& query = queries[i];
    const auto found = [&]() -> Result<Place> {
      TORNASOLE_TRY(const std::uint32_t tensor, find_tensor(query.name));
      TORNASOLE_TRY(const std::uint32_t worker, choose_worker(tensor, query.step, query.worker));
      const Series series = query.reduction ? series_of(tensor, *query.reduction) : series_of(tensor, kValueSeries);
      const Place place = find_place(columns_, series, query.step, worker);
      if (place.location != nullptr) return place;
      if (query.reduction) return not_stored_error(tensor, query.step, worker, *query.reduction);
      return value(tensor, query.step, query.worker).error();
    }();
    if (!found.ok()) {
      if (!callback(i, found.error())) return {};
      continue;
    }
    const auto place_in_part = static_cast<std::uint32_t>(found->location - found->part->locations);
    asked.push_back({{columns_.part_id(*found->part), place_in_part}, found->location->offset(), i});
  }
  std::ranges::sort(asked, {}, [](const Asked& one) { return std::tuple(one.wanted.part, one.offset, one.place); });
  std::vector<WantedValue> wanted;
  wanted.reserve(asked.size());
  for (const Asked& one : asked) wanted.push_back(one.wanted);
  std::size_t next = 0;
  MissingFile missing;
  read_values(*store_, columns_, wanted, {.threads = threads_}, [&](const WantedValue& one, Result<ReadValue> read) {
    const std::size_t place = asked[next++].place;
    if (read.ok()) return callback(place, std::move(*read->value));
    return callback(place, explain_wanted(read.error(), one, queries[place].step, &missing));
  });
  return {};
}

Status TrialState::check_all_values() {
  const SweepQuery everything{.reductions = true};
  SweepPlan plan(columns_, everything, {});
  for (const StepRow& row : columns_.steps()) plan.add_step(row);
  const std::vector<WantedValue> wanted = plan.take();
  Status result;
  MissingFile missing;
  const auto look = [&](const WantedValue& one, const Result<ReadValue>& read) {
    if (read.ok()) return true;
    const Part& part = columns_.part(one.part);
    const Error error = explain_wanted(read.error(), one, {Mode::kGlobal, part.global_step}, &missing);
    if (settings_.on_damage == OnDamage::kFail) {
      result = error;
      return false;
    }
    note_damage(
        {.path = columns_.event_path(part), .offset = part.locations[one.place].offset(), .what = error.message});
    return true;
  };
  const auto keep_nothing = [](const WantedValue&, const TensorView&, bool* keep) -> std::shared_ptr<void> {
    *keep = false;
    return nullptr;
  };
  read_values(*store_, columns_, wanted, {.threads = threads_, .digest = keep_nothing}, look);
  return result;
}

}  // namespace tornasole::trial
