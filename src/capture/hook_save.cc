// The way of one tensor from the training thread into the queue.

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/copy_elements.h"
#include "capture/hook_guard.h"
#include "capture/hook_state.h"
#include "capture/without_lock.h"
#include "format/event.h"
#include "format/paths.h"
#include "format/record.h"
#include "reduce/reduce.h"
#include "tensorboard/summary_tag.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kMaxNameBytes = std::size_t{64} << 10;
constexpr std::size_t kSmallBytes = std::size_t{16} << 10;  // gathered in chunks
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kPieceBytes = std::size_t{512} << 10;
constexpr std::int64_t kMillisecondNs = 1'000'000;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kStalledNs = 30 * kSecondNs;
constexpr std::int64_t kStreamStalledNs = 250 * kMillisecondNs;
constexpr std::int64_t kStreamNs = 10 * kSecondNs;
constexpr std::size_t kMaxUnclaimed = 20;
// What the flight recorder keeps of a tensor.
constexpr std::array<Reduction, 6> kRecorded = {{{ReductionKind::kMin, false},
                                                 {ReductionKind::kMax, false},
                                                 {ReductionKind::kMean, false},
                                                 {ReductionKind::kStd, false},
                                                 {ReductionKind::kL1, false},
                                                 {ReductionKind::kL2, false}}};

std::string_view as_bytes(const Buffer& buffer, std::size_t offset, std::size_t length) {
  return {reinterpret_cast<const char*>(buffer.data()) + offset, length};
}

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
  if (number < numbered.infos.size() && !numbered.infos[number]->is_bad) return numbered.infos[number];
  NameInfo* info = name_info_locked(numbered.stem + std::to_string(number));
  if (number == numbered.infos.size()) numbered.infos.push_back(info);
  return info;
}

bool HookState::wants(std::uint64_t serial, std::string_view name) noexcept {
  bool is_wanted = false;
  guarded("wants", [&] {
    const std::lock_guard lock(mutex_);
    if (step_.id.serial != serial || !step_.is_open || step_.is_lost) return;
    const NameInfo* info = name_info_locked(name);
    if (info == nullptr || info->is_bad) return;
    is_wanted = (step_.has_due && plan_->order(info->id, step_.due).is_wanted) ||
                (step_.has_watch && (plan_->order(info->id, step_.watching).is_wanted ||
                                     plan::any(plan_->watched_by(info->id, step_.id.mode, step_.watching)))) ||
                (step_.is_recording && plan_->order(info->id, all_bits_).is_wanted) ||
                (step_.has_due && is_derived_source_locked(*info, step_.due)) ||
                (step_.has_keep && is_derived_source_locked(*info, step_.due_next));
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
  NameInfo& info = infos_.emplace(std::string(name), NameInfo{}).first->second;
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
    return &info;
  }
  info.id = plan_->name_id(clean);
  info.name = keep_name_locked(std::move(clean));
  for (const std::string& report : plan_->take_limit_reports()) {
    health_->note("pattern_limit", invalid_error("{}", report));
  }
  return &info;
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
  for (const Reduction reduction : order.reductions) {
    work.reductions.emplace_back(reduction, reduction_name_locked(info, reduction));
  }
  if (config_.tensorboard_dir) work.summary = summary_locked(info, order, tensor);
  const std::int64_t bytes = std::max<std::int64_t>(tensor.size_bytes(), 0);
  for (const int position : order.collections) {
    Saved& saved = saved_by_position_[static_cast<std::size_t>(position)];
    if (saved.values == nullptr) {
      const std::string& collection = plan_->saved()[static_cast<std::size_t>(position)]->name;
      saved = {&bytes_by_collection_[collection], &values_by_collection_[collection]};
    }
    ++*saved.values;
    *saved.bytes += work.save_raw ? bytes : static_cast<std::int64_t>(8 * work.reductions.size());
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

// ---- into the queue

void HookState::write_work(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor) {
  if (!start_step_locked()) return;
  if (config_.dry_run) {
    health_->log(LogLevel::kInfo,
                 fmt::format("dry run: would save '{}' ({} {}) in mode {} at step {}{}", *work.name,
                             dtype_name(tensor.dtype()), tensor.shape().to_string(), mode_name(step_.id.mode),
                             step_.id.mode_step, work.save_raw ? "" : ", reduced"));
  }
  if (work.save_shape) push_shape_locked(work.serial, work.name, tensor.shape());
  const bool is_metric = work.is_metric && config_.in_sagemaker;
  if (!work.reductions.empty() || is_metric) {
    // Reducing reads the whole tensor: other threads need not wait for that.
    reduce::Reduced reduced;
    double mean = 0;
    {
      const WithoutLock unlocked(this, &lock);
      std::vector<Reduction> wanted;
      wanted.reserve(work.reductions.size());
      for (const auto& [reduction, name] : work.reductions) wanted.push_back(reduction);
      reduced = reduce::reduce(tensor, wanted, static_cast<int>(config_.reduce_threads));
      if (is_metric) mean = reduce::mean_of(tensor);
    }
    for (const reduce::ReducedValue& value : reduced.values) {
      const auto named = std::find_if(work.reductions.begin(), work.reductions.end(),
                                      [&](const auto& pair) { return pair.first == value.reduction; });
      std::vector<std::string_view> texts;
      const TensorView number = value.value.view();
      // Sums of unsigned elements are uint64, which smdebug cannot read either.
      bool is_exact_only = false;
      const std::optional<Tensor> wide =
          config_.readable_by_smdebug ? reduce::widen_for_smdebug(number, &is_exact_only) : std::nullopt;
      push_small_locked(work.serial, named->second, wide ? view_of(*wide, &texts) : number, work.wall_time);
    }
    note_non_finite_locked(work, reduced);
    if (!reduced.skipped.empty() && warned_names_.insert(work.name).second) {
      health_->log(LogLevel::kWarning, fmt::format("'{}' ({} {}): {} is not defined for it and was not saved",
                                                   *work.name, dtype_name(tensor.dtype()), tensor.shape().to_string(),
                                                   reduction_name(reduced.skipped.front())));
    }
    if (is_metric) {
      step_.metrics.push_back({*work.name, step_.id.mode, mean, work.wall_time, step_.id.mode_step});
    }
  }
  if (work.save_raw) {
    write_raw(lock, work, tensor);
  } else if (work.summary.histogram_tag != nullptr) {
    // The writer counts, so the elements go to it although they are not stored.
    Work alone{.serial = work.serial, .name = work.name, .summary = work.summary, .wall_time = work.wall_time};
    alone.summary.is_alone = true;
    push_copy(lock, alone, tensor);
  }
}

void HookState::note_non_finite_locked(const Work& work, const reduce::Reduced& reduced) {
  constexpr std::size_t kMaxNames = 100;
  if (step_.id.serial != work.serial || step_.non_finite.size() == kMaxNames) return;
  const bool is_finite = std::ranges::none_of(
      reduced.values, [](const reduce::ReducedValue& value) { return reduce::has_non_finite(value.value.view()); });
  if (!is_finite) step_.non_finite.push_back(work.name);
}

std::vector<std::string> HookState::non_finite_tensors() {
  const std::lock_guard lock(mutex_);
  std::vector<std::string> names;
  if (!step_.is_open) return names;
  for (const std::string* name : step_.non_finite) names.push_back(*name);
  return names;
}

void HookState::write_raw(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor) {
  if (config_.readable_by_smdebug && tensor.dtype() != DType::kString) {
    bool is_exact_only = false;
    const std::optional<Tensor> wide = reduce::widen_for_smdebug(tensor, &is_exact_only);
    if (is_exact_only && warned_names_.insert(work.name).second) {
      health_->log(LogLevel::kWarning,
                   fmt::format("'{}' has values beyond int64: smdebug will not be able to read it", *work.name));
    }
    if (wide) {
      push_copy(lock, work, {wide->dtype(), wide->bytes().data(), wide->shape()});
      return;
    }
  }
  if (tensor.dtype() == DType::kString) {
    push_texts_locked(work, tensor);
  } else {
    push_copy(lock, work, tensor);
  }
}

void HookState::push_copy(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor) {
  const auto bytes = static_cast<std::size_t>(tensor.size_bytes());
  if (bytes == 0) return;
  if (!work.summary.is_alone && !spend_locked(work.serial, *work.name, tensor.dtype(), tensor.shape(), bytes)) return;
  if (step_.is_lost || step_.id.serial != work.serial) return;
  if (bytes <= kSmallBytes) {
    push_small_locked(work.serial, work.name, tensor, work.wall_time, work.summary);
    return;
  }
  if (config_.dry_run) return;
  // What the chunks of small values hold is not to be had.
  const std::size_t limit = writer_->queue().pool_limit_bytes();
  if (bytes + std::min(2 * kChunkBytes, limit / 2) > limit) {
    push_stream(lock, work, tensor);
    return;
  }
  const JobQueue::WaitLimits limits = wait_limits_locked(work.serial);
  std::int64_t waited_ns = 0;
  bool is_taken = false;
  {
    const WithoutLock unlocked(this, &lock);
    Buffer buffer = writer_->queue().take_buffer(bytes, limits, &waited_ns);
    is_taken = static_cast<bool>(buffer);
    if (is_taken) {
      copy_elements(tensor, buffer.data());
      const std::string_view content = as_bytes(buffer, 0, bytes);
      writer_->push(ValueJob{work.serial,
                             work.name,
                             tensor.dtype(),
                             tensor.shape(),
                             work.wall_time,
                             content,
                             std::move(buffer),
                             {},
                             work.summary},
                    bytes);
    }
  }
  note_wait_locked(work.serial, waited_ns);
  if (!is_taken) lose_unqueued_locked(work.serial, work.summary, *work.name, bytes);
}

Error HookState::queue_full_error(const std::string& name, std::uint64_t bytes) const {
  return io_error("no room for '{}' ({} bytes) in the queue of {} bytes: the store {} is too slow for what is saved",
                  name, bytes, config_.queue_bytes, writer_->store().description());
}

void HookState::lose_unqueued_locked(std::uint64_t serial, const SummaryOrder& summary, const std::string& name,
                                     std::uint64_t bytes) {
  if (summary.is_alone) {
    health_->value_dropped("tensorboard", queue_full_error(name, bytes));
  } else {
    lose_step_locked(serial, "queue_full", queue_full_error(name, bytes));
  }
}

// A value larger than the queue goes through it in pieces, so that the writer never reads the caller's memory.
void HookState::push_stream(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor) {
  const auto bytes = static_cast<std::uint64_t>(tensor.size_bytes());
  if (!tensor.is_contiguous()) {
    if (work.summary.is_alone) {
      health_->value_dropped("tensorboard", io_error("'{}' ({} bytes) has no histogram: it is larger than queue_bytes "
                                                     "and not contiguous",
                                                     *work.name, bytes));
      return;
    }
    lose_value_locked(work, tensor, "too_large", "it is larger than queue_bytes and not contiguous");
    return;
  }
  const std::uint64_t stream = ++stream_;
  std::int64_t total_wait_ns = 0;
  bool is_cut = false;
  {
    const WithoutLock unlocked(this, &lock);
    writer_->push(
        StreamJob{work.serial, stream, work.name, tensor.dtype(), tensor.shape(), work.wall_time, bytes, work.summary});
    const std::int64_t start = clock_->monotonic_ns();
    for (std::uint64_t done = 0; done < bytes && !is_cut;) {
      const auto piece = static_cast<std::size_t>(std::min<std::uint64_t>(kPieceBytes, bytes - done));
      const std::int64_t rest = kStreamNs - (clock_->monotonic_ns() - start);
      std::int64_t waited_ns = 0;
      Buffer buffer = rest > 0 ? writer_->queue().take_buffer(piece, {rest, kStreamStalledNs}, &waited_ns) : Buffer();
      total_wait_ns += waited_ns;
      is_cut = !buffer;
      if (buffer) std::memcpy(buffer.data(), tensor.data() + done, piece);
      writer_->push(PieceJob{stream, piece, std::move(buffer), is_cut}, piece,
                    is_cut ? JobQueue::Wake::kNow : JobQueue::Wake::kLater);
      done += piece;
    }
  }
  note_wait_locked(work.serial, total_wait_ns);
  if (is_cut) lose_unqueued_locked(work.serial, work.summary, *work.name, bytes);
}

void HookState::push_small_locked(std::uint64_t serial, const std::string* name, const TensorView& tensor,
                                  double wall_time, SummaryOrder summary) {
  if (config_.dry_run || step_.is_lost || step_.id.serial != serial) return;
  const auto bytes = static_cast<std::size_t>(tensor.size_bytes());
  // The job counts as much as the value, so that a flood of tiny ones meets the limit too.
  const std::size_t charge = bytes + sizeof(Job);
  if (!chunk_ || chunk_used_ + charge > chunk_.capacity()) {
    finish_chunk_locked();
    std::int64_t waited_ns = 0;
    const std::size_t capacity = std::min(kChunkBytes, writer_->queue().pool_limit_bytes() / 4);
    chunk_ = writer_->queue().take_buffer(std::max(capacity, charge), wait_limits_locked(serial), &waited_ns);
    note_wait_locked(serial, waited_ns);
    if (!chunk_) {
      lose_unqueued_locked(serial, summary, *name, bytes);
      return;
    }
  }
  tensor.copy_to(chunk_.data() + chunk_used_);
  const std::string_view content = as_bytes(chunk_, chunk_used_, bytes);
  // Aligned for nobody but the copy: the elements are only ever moved as bytes.
  chunk_used_ += charge;
  writer_->push(ValueJob{serial, name, tensor.dtype(), tensor.shape(), wall_time, content, {}, {}, summary}, bytes);
}

void HookState::finish_chunk_locked() {
  if (chunk_) writer_->push(ChunkDoneJob{std::move(chunk_)});
  chunk_ = Buffer();
  chunk_used_ = 0;
}

void HookState::push_texts_locked(const Work& work, const TensorView& tensor) {
  if (tensor.texts().empty()) return;
  if (!spend_locked(work.serial, *work.name, DType::kString, tensor.shape(),
                    static_cast<std::uint64_t>(tensor.size_bytes()))) {
    return;
  }
  if (config_.dry_run) return;
  // Texts are few and small; what they hold is charged to the queue by a buffer of that size.
  Buffer charge;
  if (tensor.size_bytes() > static_cast<std::int64_t>(kSmallBytes)) {
    std::int64_t waited_ns = 0;
    charge = writer_->queue().take_buffer(static_cast<std::size_t>(tensor.size_bytes()),
                                          wait_limits_locked(work.serial), &waited_ns);
    note_wait_locked(work.serial, waited_ns);
    if (!charge) {
      lose_step_locked(work.serial, "queue_full",
                       queue_full_error(*work.name, static_cast<std::uint64_t>(tensor.size_bytes())));
      return;
    }
  }
  ValueJob job{work.serial, work.name, DType::kString, tensor.shape(), work.wall_time, {}, std::move(charge), {}, {}};
  job.texts.reserve(tensor.texts().size());
  for (const std::string_view text : tensor.texts()) job.texts.push_back(replace_bad_utf8(text));
  writer_->push(std::move(job), static_cast<std::size_t>(tensor.size_bytes()));
}

void HookState::push_shape_locked(std::uint64_t serial, const std::string* name, const Shape& shape) {
  if (config_.dry_run || step_.is_lost || step_.id.serial != serial) return;
  writer_->push(ShapeJob{serial, name, shape});
}

// ---- limits

// Whether the value fits the format and the budgets; counts it if it does.
bool HookState::spend_locked(std::uint64_t serial, const std::string& name, DType dtype, const Shape& shape,
                             std::uint64_t bytes) {
  if (step_.is_lost || step_.id.serial != serial) return false;
  const format::EventHeader header = {name, step_.id.global_step, step_.id.mode, step_.id.mode_step, 1.0};
  const std::uint64_t record =
      dtype == DType::kString ? bytes + name.size() + 128 : format::event_record_bytes(header, dtype, shape, bytes);
  if (record >= format::kMaxRecordBytes) {
    health_->value_dropped(
        "too_large", io_error("'{}' is {} bytes; one value must stay below {}", name, bytes, format::kMaxRecordBytes));
    push_shape_locked(serial, keep_name_locked(name), shape);
    return false;
  }
  const auto cost = static_cast<std::int64_t>(record);
  if (config_.max_bytes_per_step && step_.bytes + cost > *config_.max_bytes_per_step) {
    lose_step_locked(
        serial, "budget_step",
        io_error("step {} would exceed max_bytes_per_step ({})", step_.id.global_step, *config_.max_bytes_per_step));
    return false;
  }
  if (config_.max_bytes_per_run && run_bytes_ + step_.bytes + cost > *config_.max_bytes_per_run) {
    lose_step_locked(
        serial, "budget_run",
        io_error("step {} would exceed max_bytes_per_run ({})", step_.id.global_step, *config_.max_bytes_per_run));
    return false;
  }
  step_.bytes += cost;
  return true;
}

void HookState::lose_step_locked(std::uint64_t serial, std::string_view cause, const Error& why) {
  if (step_.id.serial != serial || step_.is_lost) return;
  step_.is_lost = true;
  health_->step_dropped(cause, why);
  if (writer_) writer_->push(StepDropJob{serial}, 0, JobQueue::Wake::kSoon);
}

void HookState::lose_value_locked(const Work& work, const TensorView& tensor, std::string_view cause,
                                  std::string_view what) {
  health_->value_dropped(cause, io_error("'{}' ({} bytes) was not saved: {}", *work.name, tensor.size_bytes(), what));
  push_shape_locked(work.serial, work.name, tensor.shape());
}

JobQueue::WaitLimits HookState::wait_limits_locked(std::uint64_t serial) const {
  if (config_.when_full == WhenFull::kBlock) return {INT64_MAX, kStalledNs};
  // A due step may wait so long, and all of them together for a twentieth of the run so far.
  const std::int64_t of_step =
      config_.queue_wait_ms * kMillisecondNs - (step_.id.serial == serial ? step_.waited_ns : 0);
  const std::int64_t of_run = (clock_->monotonic_ns() - start_ns_) / 20 - total_wait_ns_;
  return {std::max<std::int64_t>(0, std::min(of_step, of_run)), INT64_MAX};
}

void HookState::note_wait_locked(std::uint64_t serial, std::int64_t waited_ns) {
  if (waited_ns <= 0) return;
  total_wait_ns_ += waited_ns;
  if (step_.id.serial == serial) step_.waited_ns += waited_ns;
  health_->waited(waited_ns);
}

}  // namespace tornasole::capture
