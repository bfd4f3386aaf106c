// A tensor on the training thread: whether it is wanted, by whom and in what form. hook_queue.cc takes it from there.

#include <algorithm>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/hook_guard.h"
#include "capture/hook_state.h"
#include "format/paths.h"
#include "reduce/reduce.h"
#include "tensorboard/summary_tag.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kMaxNameBytes = std::size_t{64} << 10;
constexpr std::size_t kMaxUnclaimed = 20;
// Of one module in one step. A step that nothing ends would grow for ever, and its index past what can be read.
constexpr std::size_t kMaxNumbered = 10'000;
// What the flight recorder keeps of a tensor.
constexpr std::array<Reduction, 6> kRecorded = {{{ReductionKind::kMin, false},
                                                 {ReductionKind::kMax, false},
                                                 {ReductionKind::kMean, false},
                                                 {ReductionKind::kStd, false},
                                                 {ReductionKind::kL1, false},
                                                 {ReductionKind::kL2, false}}};

// The reference refuses a whole trial for a tensor under the prefix of the reductions.
bool is_reserved(std::string_view name) {
  return name.find("smdebug/reductions") != std::string_view::npos ||
         name.find("tornasole/reductions") != std::string_view::npos;
}

// Whether its elements are numbers with an order, which a histogram and a scalar need.
bool has_summary(const TensorView& tensor) {
  const DType dtype = tensor.dtype();
  return dtype != DType::kString && dtype != DType::kComplex64 && dtype != DType::kComplex128 &&
         tensor.size_bytes() > 0;
}

}  // namespace

TensorView view_of(const Tensor& tensor, std::vector<std::string_view>* texts) {
  if (tensor.dtype() != DType::kString) return {tensor.dtype(), tensor.bytes().data(), tensor.shape()};
  texts->assign(tensor.texts().begin(), tensor.texts().end());
  return TensorView::strings(*texts);
}

// `find` gives what is known of the name, with mutex_ held.
template <typename Find>
void HookState::save_found(std::uint64_t serial, std::string_view name, const TensorView& tensor,
                           const Find& find) noexcept {
  guarded("save", [&] {
    std::unique_lock lock(mutex_);
    if (step_.id.serial != serial || !step_.is_open) {
      health_->value_dropped("late", invalid_error("'{}' was saved after its step had ended", printable(name)));
      return;
    }
    try {
      NameInfo* info = find();
      if (info != nullptr) save_locked(lock, *info, tensor);
    } catch (...) {
      // A step without one of its values would look whole.
      lose_unsaved_locked(serial, error_from_current_exception());
    }
  });
}

void HookState::save(std::uint64_t serial, std::string_view name, const TensorView& tensor) noexcept {
  save_found(serial, name, tensor, [&] { return name_info_locked(name); });
}

void HookState::save(std::uint64_t serial, TensorName& name, const TensorView& tensor) noexcept {
  save_found(serial, name.text_, tensor, [&] {
    auto* known = static_cast<NameInfo*>(name.known_);
    if (known != nullptr && !known->is_bad) return known;
    known = name_info_locked(name.text_);
    name.known_ = known;
    return known;
  });
}

void HookState::lose_unsaved_locked(std::uint64_t serial, const Error& why) {
  if (step_.id.serial == serial && !step_.is_started && step_.has_due) {
    step_.is_started = true;
    health_->step_due();
  }
  if (step_.is_started) {
    lose_step_locked(serial, "save", why);
  } else {
    health_->note("save", why);
  }
}

void HookState::save_numbered(std::uint64_t serial, std::string_view module, bool is_input,
                              const TensorView& tensor) noexcept {
  save_found(serial, module, tensor, [&] { return next_locked(*numbered_locked(module, is_input)); });
}

void HookState::save_numbered(std::uint64_t serial, ModuleName& module, bool is_input,
                              const TensorView& tensor) noexcept {
  save_found(serial, module.text_, tensor, [&] {
    void*& known = is_input ? module.inputs_ : module.outputs_;
    if (known == nullptr) known = numbered_locked(module.text_, is_input);
    return next_locked(*static_cast<Numbered*>(known));
  });
}

HookState::Numbered* HookState::numbered_locked(std::string_view module, bool is_input) {
  std::string stem = fmt::format("{}_{}_", module, is_input ? "input" : "output");
  const auto known = numbered_.find(stem);
  if (known != numbered_.end()) return &known->second;
  return &numbered_.emplace(stem, Numbered{.stem = stem}).first->second;
}

HookState::NameInfo* HookState::next_locked(Numbered& numbered) {
  if (numbered.serial != step_.id.serial) {
    numbered.serial = step_.id.serial;
    numbered.next = 0;
  }
  const std::size_t number = numbered.next++;
  if (number >= kMaxNumbered) {
    health_->value_dropped("too_many", invalid_error("'{}' was saved {} times in one step; further ones are not",
                                                     printable(numbered.stem), kMaxNumbered));
    return nullptr;
  }
  if (number < numbered.infos.size() && !numbered.infos[number]->is_bad) return numbered.infos[number];
  NameInfo* info = name_info_locked(numbered.stem + std::to_string(number));
  if (number == numbered.infos.size()) numbered.infos.push_back(info);
  return info;
}

bool HookState::skip_numbered(ModuleName& module, bool is_input) noexcept {
  bool is_skipped = false;
  guarded("save", [&] {
    const std::lock_guard lock(mutex_);
    auto* numbered = static_cast<Numbered*>(is_input ? module.inputs_ : module.outputs_);
    if (numbered == nullptr || !step_.is_open || !step_.has_due || step_.is_lost) return;
    const std::size_t number = numbered->serial == step_.id.serial ? numbered->next : 0;
    if (number >= numbered->infos.size()) return;
    NameInfo& info = *numbered->infos[number];
    if (info.is_bad || !info.is_seen_due) return;
    if (info.unwanted_in != step_.due_set) {
      if (is_wanted_locked(info)) return;
      info.unwanted_in = step_.due_set;
    }
    numbered->serial = step_.id.serial;
    numbered->next = number + 1;
    is_skipped = true;
  });
  return is_skipped;
}

bool HookState::is_wanted_locked(const NameInfo& info) {
  return (step_.has_due && plan_->order(info.id, step_.due).is_wanted) ||
         (step_.has_watch && (plan_->order(info.id, step_.watching).is_wanted ||
                              plan::any(plan_->watched_by(info.id, step_.id.mode, step_.watching)))) ||
         (step_.is_recording && plan_->order(info.id, all_bits_).is_wanted) ||
         (step_.has_due && is_derived_source_locked(info, step_.due)) ||
         (step_.has_keep && is_derived_source_locked(info, step_.due_next));
}

bool HookState::wants(std::uint64_t serial, std::string_view name) noexcept {
  bool is_wanted = false;
  guarded("wants", [&] {
    const std::lock_guard lock(mutex_);
    if (step_.id.serial != serial || !step_.is_open || step_.is_lost) return;
    const NameInfo* info = name_info_locked(name);
    if (info == nullptr || info->is_bad) return;
    is_wanted = is_wanted_locked(*info);
  });
  return is_wanted;
}

const std::string* HookState::keep_name_locked(std::string name) {
  if (writer_) return writer_->keep_name(std::move(name));
  return &own_names_.emplace_back(std::move(name));
}

HookState::NameInfo* HookState::name_info_locked(std::string_view name) {
  const auto known = infos_.find(name);
  if (known != infos_.end()) {
    if (known->second.is_bad) health_->value_dropped("bad_name", invalid_error("a tensor's name cannot be saved"));
    return &known->second;
  }
  NameInfo info;  // known when it is whole
  std::string clean(name);
  if (!is_valid_utf8(name)) {
    clean = replace_bad_utf8(name);
    health_->log(LogLevel::kWarning, fmt::format("the name '{}' is not UTF-8: saved as '{}'", printable(name), clean));
  }
  std::string_view what;
  if (clean.empty()) what = "is empty";
  if (clean.size() > kMaxNameBytes) what = "is longer than 64 KiB";
  if (is_reserved(clean)) what = "contains a prefix reserved for reductions";
  if (!what.empty()) {
    info.is_bad = true;
    health_->value_dropped("bad_name", invalid_error("a tensor's name {}: '{}'", what, printable(clean.substr(0, 80))));
  } else {
    info.id = plan_->name_id(clean);
    info.name = keep_name_locked(std::move(clean));
    for (const std::string& report : plan_->take_limit_reports()) {
      health_->note("pattern_limit", invalid_error("{}", report));
    }
  }
  return &infos_.emplace(std::string(name), std::move(info)).first->second;
}

const std::string* HookState::reduction_name_locked(NameInfo& info, Reduction reduction) {
  for (const auto& [known, name] : info.reduction_names) {
    if (known == reduction) return name;
  }
  const bool strip = config_.framework != Framework::kTensorflow;
  const std::string* name =
      keep_name_locked(format::reduction_tensor_name(reduction_name(reduction), *info.name, strip));
  info.reduction_names.emplace_back(reduction, name);
  return name;
}

const HookState::Numbers* HookState::numbers_locked(NameInfo& info, const std::vector<Reduction>& reductions) {
  for (const Numbers& known : info.numbers) {
    if (known.reductions == reductions) return &known;
  }
  Numbers numbers{.reductions = reductions};
  for (const Reduction reduction : reductions) numbers.names.push_back(reduction_name_locked(info, reduction));
  return &info.numbers.emplace_front(std::move(numbers));
}

SummaryOrder HookState::summary_locked(NameInfo& info, const plan::SaveOrder& order, const TensorView& tensor) {
  SummaryOrder summary;
  if (!has_summary(tensor)) return summary;
  if (order.is_scalar && tensor.element_count() == 1) {
    if (info.scalar_tag == nullptr) info.scalar_tag = keep_name_locked(tensorboard::clean_tag(*info.name));
    summary.scalar_tag = info.scalar_tag;
  }
  const std::string& collection = order.histogram_collection;
  if (collection.empty() || tensor.dtype() == DType::kBool) return summary;
  const auto known =
      std::ranges::find(info.histogram_tags, collection, &decltype(info.histogram_tags)::value_type::first);
  if (known != info.histogram_tags.end()) {
    summary.histogram_tag = known->second;
  } else {
    summary.histogram_tag = keep_name_locked(tensorboard::clean_tag(fmt::format("{}/{}", collection, *info.name)));
    info.histogram_tags.emplace_back(collection, summary.histogram_tag);
  }
  return summary;
}

HookState::Work HookState::make_work_locked(NameInfo& info, const plan::CollectionBits& due, const TensorView& tensor) {
  Work work{.serial = step_.id.serial, .name = info.name};
  const plan::SaveOrder& order = plan_->order(info.id, due);
  if (!order.is_wanted) return work;
  work.save_raw = order.save_raw;
  work.save_shape = order.save_shape;
  work.is_metric = order.is_metric;
  if (!order.reductions.empty()) work.numbers = numbers_locked(info, order.reductions);
  if (config_.tensorboard_dir) work.summary = summary_locked(info, order, tensor);
  const std::int64_t bytes = std::max<std::int64_t>(tensor.size_bytes(), 0);
  for (const int position : order.collections) {
    Saved& saved = saved_by_position_[static_cast<std::size_t>(position)];
    if (saved.values == nullptr) {
      const std::string& collection = plan_->saved()[static_cast<std::size_t>(position)]->name;
      saved = {&bytes_by_collection_[collection], &values_by_collection_[collection]};
    }
    ++*saved.values;
    *saved.bytes += work.save_raw ? bytes : static_cast<std::int64_t>(8 * order.reductions.size());
  }
  return work;
}

void HookState::save_locked(std::unique_lock<std::mutex>& lock, NameInfo& info, const TensorView& tensor) {
  if (info.is_bad || step_.is_lost) return;
  if (tensor.dtype() != DType::kString && (tensor.size_bytes() < 0 || dtype_size(tensor.dtype()) == 0 ||
                                           (tensor.data() == nullptr && tensor.size_bytes() > 0))) {
    health_->value_dropped("bad_value",
                           invalid_error("'{}' has no elements of a known type and shape ({} {})", *info.name,
                                         dtype_name(tensor.dtype()), tensor.shape().to_string()));
    return;
  }
  if (step_.is_recording) record_locked(info, tensor);
  if (step_.has_watch) watch_locked(info, tensor);
  if (step_.has_due) save_due(lock, info, tensor);
  if (!statistics_.empty() && (step_.has_due || step_.has_keep)) {
    derive(lock, info, tensor, step_.due, clock_->wall_seconds());
  }
}

void HookState::save_due(std::unique_lock<std::mutex>& lock, NameInfo& info, const TensorView& tensor) {
  if (!info.is_seen_due) {
    info.is_seen_due = true;
    if (!plan_->order(info.id, all_bits_).is_wanted && unclaimed_.size() < kMaxUnclaimed)
      unclaimed_.push_back(*info.name);
  }
  Work work = make_work_locked(info, step_.due, tensor);
  if (work.is_empty()) return;
  work.wall_time = clock_->wall_seconds();
  write_work(lock, work, tensor);
}

// Keeps what may have to be written when the step ends, and looks for NaN and infinity in what is watched.
void HookState::watch_locked(NameInfo& info, const TensorView& tensor) {
  const plan::CollectionBits watchers = plan_->watched_by(info.id, step_.id.mode, step_.watching);
  const bool is_trigger = plan::any(watchers) && reduce::has_non_finite(tensor);
  if (is_trigger) {
    for (std::size_t word = 0; word < watchers.size(); ++word) step_.triggered[word] |= watchers[word];
  }
  if (!is_trigger && !plan_->order(info.id, step_.watching).is_wanted) return;
  const auto bytes = static_cast<std::size_t>(std::max<std::int64_t>(tensor.size_bytes(), 0));
  if (step_.held_bytes + bytes > static_cast<std::size_t>(config_.queue_bytes)) {
    health_->value_dropped("hold_full", io_error("'{}': the values kept for when_nan exceed queue_bytes ({})",
                                                 *info.name, config_.queue_bytes));
    return;
  }
  step_.held_bytes += bytes;
  step_.held.push_back({&info, Tensor(tensor), clock_->wall_seconds(), is_trigger});
}

void HookState::record_locked(NameInfo& info, const TensorView& tensor) {
  const plan::SaveOrder& order = plan_->order(info.id, all_bits_);
  if (!order.is_wanted) return;
  const double now = clock_->wall_seconds();
  if (config_.flight_recorder_raw || order.is_scalar || tensor.dtype() == DType::kString) {
    if (tensor.size_bytes() <= config_.flight_recorder_bytes) recorder_.add({info.name, Tensor(tensor), now});
    return;
  }
  for (const reduce::ReducedValue& value : reduce::reduce(tensor, kRecorded).values) {
    recorder_.add({reduction_name_locked(info, value.reduction), value.value.to_tensor(), now});
  }
}

}  // namespace tornasole::capture
