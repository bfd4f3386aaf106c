#include "trial/index_columns.h"

#include <algorithm>

#include "format/paths.h"

namespace tornasole::trial {
namespace {

constexpr auto kByNumber = [](const StepRow& row, std::int64_t number) { return row.number < number; };
constexpr auto kByModeStep = [](const auto& row, std::int64_t step) { return row.mode_step < step; };

}  // namespace

void IndexColumns::add(std::vector<NewPart> parts) {
  // A file without entries says nothing about its step.
  std::erase_if(parts, [&](const NewPart& part) { return tables_.layouts.series(part.layout).empty(); });
  if (parts.empty()) return;
  add_rows(parts);
  if (parts_.empty()) parts_.reserve(parts.size());  // later ones come one by one: let them grow as they like
  for (NewPart& added : parts) {
    Part part{.global_step = added.global_step,
              .mode_step = added.mode_step,
              .locations = added.locations,
              .layout = added.layout,
              .worker = added.worker,
              .mode = added.mode,
              .is_partial = added.is_partial};
    if (!added.event_file.empty() &&
        added.event_file != format::event_path(part.global_step, worker_file_name(part.worker))) {
      event_files_.push_back(std::move(added.event_file));
      part.event_file = static_cast<std::uint32_t>(event_files_.size());
    }
    parts_.push_back(part);
    const auto id = static_cast<std::uint32_t>(parts_.size() - 1);
    facts_.set(id, added.facts, parts_.capacity());
    link(id, &row_of(part.global_step));
    note_layout(part);
  }
  for (auto& rows : mode_rows_) {
    if (!std::ranges::is_sorted(rows, {}, &ModeRow::mode_step)) {
      std::ranges::stable_sort(rows, {}, &ModeRow::mode_step);
    }
  }
}

// Rows for all new steps at once: one merge, however the files were ordered.
void IndexColumns::add_rows(const std::vector<NewPart>& parts) {
  std::vector<StepRow> added;
  for (const NewPart& part : parts) {
    if (!added.empty() && added.back().number == part.global_step) continue;
    if (find_step(part.global_step) == nullptr) added.push_back({.number = part.global_step});
  }
  std::ranges::sort(added, {}, &StepRow::number);
  added.erase(std::ranges::unique(added, {}, &StepRow::number).begin(), added.end());
  const auto middle = static_cast<std::ptrdiff_t>(steps_.size());
  const bool is_later = steps_.empty() || added.empty() || steps_.back().number < added.front().number;
  steps_.insert(steps_.end(), added.begin(), added.end());
  if (!is_later) std::ranges::inplace_merge(steps_, steps_.begin() + middle, {}, &StepRow::number);
}

StepRow& IndexColumns::row_of(std::int64_t global_step) {
  return *std::lower_bound(steps_.begin(), steps_.end(), global_step, kByNumber);
}

void IndexColumns::link(std::uint32_t part_id, StepRow* row) {
  const Part& part = parts_[part_id];
  const bool is_first = row->first_part == kNoPart;
  if (is_first) {
    row->first_part = part_id;
    row->mode = part.mode;
    row->mode_step = part.mode_step;
    row->worker_count = 1;
  } else {
    if (!has_worker(*row, part.worker)) ++row->worker_count;
    row->is_ascending &= worker_file_name(parts_[row->last_part].worker) < worker_file_name(part.worker);
    parts_[row->last_part].next = part_id;
  }
  row->last_part = part_id;
  row->is_partial |= part.is_partial;
  note_mode(part, *row, is_first);
}

bool IndexColumns::has_worker(const StepRow& row, std::uint32_t worker) const noexcept {
  if (parts_[row.last_part].worker == worker) return true;
  // Files come sorted by worker: then the parts are ascending, and a worker behind the last is new.
  if (row.is_ascending && worker_file_name(parts_[row.last_part].worker) < worker_file_name(worker)) return false;
  for (std::uint32_t id = row.first_part; id != kNoPart; id = parts_[id].next) {
    if (parts_[id].worker == worker) return true;
  }
  return false;
}

void IndexColumns::note_mode(const Part& part, const StepRow& row, bool is_first) {
  if (part.mode == Mode::kGlobal) return;
  if (!is_first && part.mode == row.mode && part.mode_step == row.mode_step) return;
  mode_rows_[mode_index(part.mode)].push_back({part.mode_step, part.global_step});
}

void IndexColumns::note_layout(const Part& part) {
  if (part.layout >= layout_modes_.size()) layout_modes_.resize(part.layout + 1, 0);
  const auto bit = static_cast<std::uint8_t>(1U << mode_index(part.mode));
  if ((layout_modes_[part.layout] & bit) != 0) return;
  layout_modes_[part.layout] |= bit;
  if (is_known_.size() < tables_.names.size()) is_known_.resize(tables_.names.size());
  for (const Series series : tables_.layouts.series(part.layout)) is_known_[tensor_of(series)] = true;
}

std::uint32_t IndexColumns::intern_worker(std::string_view file_name) {
  const auto found = worker_ids_.find(file_name);
  if (found != worker_ids_.end()) return found->second;
  const auto id = static_cast<std::uint32_t>(workers_.size());
  workers_.push_back({std::string(file_name), format::decode_worker(file_name)});
  worker_ids_.emplace(file_name, id);
  return id;
}

std::optional<std::uint32_t> IndexColumns::find_worker(std::string_view name) const noexcept {
  for (std::uint32_t id = 0; id < workers_.size(); ++id) {
    if (workers_[id].name == name) return id;
  }
  return std::nullopt;
}

const StepRow* IndexColumns::find_step(std::int64_t global_step) const noexcept {
  const auto found = std::lower_bound(steps_.begin(), steps_.end(), global_step, kByNumber);
  return found != steps_.end() && found->number == global_step ? &*found : nullptr;
}

std::vector<std::int64_t> IndexColumns::mode_steps(Mode mode) const {
  std::vector<std::int64_t> steps;
  for (const ModeRow& row : mode_rows(mode)) {
    if (steps.empty() || steps.back() != row.mode_step) steps.push_back(row.mode_step);
  }
  return steps;
}

bool IndexColumns::has_mode(Mode mode) const noexcept {
  return mode == Mode::kGlobal ? !steps_.empty() : !mode_rows(mode).empty();
}

std::vector<std::int64_t> IndexColumns::global_steps(ModeStep step) const {
  if (step.mode == Mode::kGlobal) return {step.number};
  std::vector<std::int64_t> found;
  const auto& rows = mode_rows(step.mode);
  auto at = std::lower_bound(rows.begin(), rows.end(), step.number, kByModeStep);
  for (; at != rows.end() && at->mode_step == step.number; ++at) found.push_back(at->global_step);
  return found;
}

std::optional<std::int64_t> IndexColumns::global_step(ModeStep step) const {
  if (step.mode == Mode::kGlobal) return step.number;
  const auto& rows = mode_rows(step.mode);
  const auto at = std::lower_bound(rows.begin(), rows.end(), step.number, kByModeStep);
  if (at == rows.end() || at->mode_step != step.number) return std::nullopt;
  return at->global_step;
}

std::optional<std::int64_t> IndexColumns::next_step(ModeStep step) const {
  if (step.mode == Mode::kGlobal) {
    const auto found = std::lower_bound(steps_.begin(), steps_.end(), step.number, kByNumber);
    return found == steps_.end() ? std::nullopt : std::optional(found->number);
  }
  const auto& rows = mode_rows(step.mode);
  const auto at = std::lower_bound(rows.begin(), rows.end(), step.number, kByModeStep);
  return at == rows.end() ? std::nullopt : std::optional(at->mode_step);
}

std::optional<std::int64_t> IndexColumns::last_step(Mode mode) const {
  if (!has_mode(mode)) return std::nullopt;
  return mode == Mode::kGlobal ? steps_.back().number : mode_rows(mode).back().mode_step;
}

std::string IndexColumns::event_path(const Part& part) const {
  if (part.event_file != 0) return event_files_[part.event_file - 1];
  return format::event_path(part.global_step, worker_file_name(part.worker));
}

std::optional<std::uint32_t> IndexColumns::find_tensor(std::string_view name) const noexcept {
  const auto id = tables_.names.find(name);
  return id && is_known(*id) ? id : std::nullopt;
}

std::vector<bool> IndexColumns::tensors_of_mode(Mode mode) const {
  if (mode == Mode::kGlobal) return is_known_;
  std::vector<bool> has(is_known_.size());
  for (std::uint32_t layout = 0; layout < layout_modes_.size(); ++layout) {
    if (((layout_modes_[layout] >> mode_index(mode)) & 1U) == 0) continue;
    for (const Series series : tables_.layouts.series(layout)) has[tensor_of(series)] = true;
  }
  return has;
}

std::int64_t IndexColumns::size_bytes() const noexcept {
  std::size_t bytes = parts_.capacity() * sizeof(Part) + steps_.capacity() * sizeof(StepRow) +
                      layout_modes_.capacity() + is_known_.capacity() / 8 + workers_.capacity() * sizeof(Worker);
  for (const auto& rows : mode_rows_) bytes += rows.capacity() * sizeof(ModeRow);
  for (const std::string& path : event_files_) bytes += sizeof path + path.capacity();
  return static_cast<std::int64_t>(bytes) + facts_.size_bytes() + tables_.size_bytes() + arena_.size_bytes();
}

}  // namespace tornasole::trial
