// The last part of a tensor's way on the training thread: reduced or copied into the queue, within the limits of
// waiting and of bytes.

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "capture/copy_elements.h"
#include "capture/hook_state.h"
#include "capture/without_lock.h"
#include "format/event.h"
#include "format/record.h"
#include "reduce/reduce.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kSmallBytes = std::size_t{16} << 10;  // gathered in chunks
constexpr std::size_t kChunkBytes = std::size_t{1} << 20;
constexpr std::size_t kPieceBytes = std::size_t{512} << 10;
constexpr std::int64_t kMillisecondNs = 1'000'000;
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kStalledNs = 30 * kSecondNs;
constexpr std::int64_t kStreamStalledNs = 250 * kMillisecondNs;
constexpr std::int64_t kStreamNs = 10 * kSecondNs;

std::string_view as_bytes(const Buffer& buffer, std::size_t offset, std::size_t length) {
  return {reinterpret_cast<const char*>(buffer.data()) + offset, length};
}

// Takes a chunk back from a job that there was no memory to push: the writer has yet to read what is in it.
class ChunkBack {
 public:
  ChunkBack(Job* job, Buffer* chunk) : job_(*job), chunk_(*chunk) {}
  ~ChunkBack() {
    if (auto* done = std::get_if<ChunkDoneJob>(&job_); done != nullptr && done->chunk) chunk_ = std::move(done->chunk);
  }
  ChunkBack(const ChunkBack&) = delete;
  ChunkBack& operator=(const ChunkBack&) = delete;

 private:
  Job& job_;
  Buffer& chunk_;
};

}  // namespace

void HookState::write_work(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor) {
  if (!start_step_locked()) return;
  if (config_.dry_run) {
    health_->log(LogLevel::kInfo,
                 fmt::format("dry run: would save '{}' ({} {}) in mode {} at step {}{}", *work.name,
                             dtype_name(tensor.dtype()), tensor.shape().to_string(), mode_name(step_.id.mode),
                             step_.id.mode_step, work.save_raw ? "" : ", reduced"));
  }
  if (work.save_shape) push_shape_locked(work.serial, work.name, tensor.shape());
  if (work.numbers != nullptr || (work.is_metric && config_.in_sagemaker)) write_numbers(lock, work, tensor);
  if (work.save_raw) {
    write_raw(lock, work, tensor);
  } else if (work.summary.histogram_tag != nullptr) {
    // The writer counts, so the elements go to it although they are not stored.
    Work alone{.serial = work.serial, .name = work.name, .summary = work.summary, .wall_time = work.wall_time};
    alone.summary.is_alone = true;
    push_copy(lock, alone, tensor);
  }
}

void HookState::write_numbers(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor) {
  const bool is_metric = work.is_metric && config_.in_sagemaker;
  reduce::Reduced reduced;
  double mean = 0;
  {
    // Reducing reads the whole tensor: other threads need not wait for that, if it takes longer than to let them in.
    std::optional<WithoutLock> unlocked;
    if (tensor.size_bytes() > static_cast<std::int64_t>(kSmallBytes)) unlocked.emplace(this, &lock);
    if (work.numbers != nullptr) {
      reduced = reduce::reduce(tensor, work.numbers->reductions, static_cast<int>(config_.reduce_threads));
    }
    if (is_metric) mean = reduce::mean_of(tensor);
  }
  if (!reduced.values.empty()) push_numbers_locked(work, reduced);
  note_non_finite_locked(work, reduced);
  if (!reduced.skipped.empty() && warned_names_.insert(work.name).second) {
    health_->log(health_->gap_level(), fmt::format("'{}' ({} {}): {} is not defined for it and was not saved",
                                                   *work.name, dtype_name(tensor.dtype()), tensor.shape().to_string(),
                                                   reduction_name(reduced.skipped.front())));
  }
  if (is_metric) {
    step_.metrics.push_back({*work.name, step_.id.mode, mean, work.wall_time, step_.id.mode_step});
  }
}

// `reduced` has values.
void HookState::push_numbers_locked(const Work& work, const reduce::Reduced& reduced) {
  std::byte* place = take_small_locked(work.serial, *work.name, reduced.values.size() * sizeof(Number), SummaryOrder());
  if (place == nullptr) return;
  auto* numbers = reinterpret_cast<Number*>(place);
  const Numbers& wanted = *work.numbers;
  std::size_t position = 0;
  for (std::size_t i = 0; i < reduced.values.size(); ++i) {
    const reduce::ReducedValue& value = reduced.values[i];
    while (wanted.reductions[position] != value.reduction) ++position;  // what was skipped
    auto* number = std::construct_at(numbers + i, Number{wanted.names[position], value.value});
    if (!config_.readable_by_smdebug) continue;
    // Sums of unsigned elements are uint64, which smdebug cannot read either.
    bool is_exact_only = false;
    const std::optional<Tensor> wide = reduce::widen_for_smdebug(value.value.view(), &is_exact_only);
    if (wide) number->value = reduce::Scalar(wide->dtype(), wide->bytes().data());
  }
  writer_->push(NumbersJob{work.serial, work.wall_time, {numbers, reduced.values.size()}},
                reduced.values.size() * sizeof(reduce::Scalar));
}

void HookState::note_non_finite_locked(const Work& work, const reduce::Reduced& reduced) {
  constexpr std::size_t kMaxNames = 100;
  if (step_.id.serial != work.serial || step_.non_finite.size() == kMaxNames) return;
  const bool is_finite =
      std::ranges::all_of(reduced.values, [](const reduce::ReducedValue& value) { return value.value.is_finite(); });
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

// Room for a value of so few bytes, aligned for anything; null if there is none, which is told then, or no use for it.
std::byte* HookState::take_small_locked(std::uint64_t serial, const std::string& name, std::size_t bytes,
                                        const SummaryOrder& summary) {
  if (config_.dry_run || step_.is_lost || step_.id.serial != serial) return nullptr;
  // The job counts as much as the value, so that a flood of tiny ones meets the limit too.
  constexpr std::size_t kAlign = alignof(std::max_align_t);
  const std::size_t charge = (bytes + sizeof(Job) + kAlign - 1) / kAlign * kAlign;
  if (!chunk_ || chunk_used_ + charge > chunk_.capacity()) {
    finish_chunk_locked();
    std::int64_t waited_ns = 0;
    const std::size_t capacity = std::min(kChunkBytes, writer_->queue().pool_limit_bytes() / 4);
    chunk_ = writer_->queue().take_buffer(std::max(capacity, charge), wait_limits_locked(serial), &waited_ns);
    note_wait_locked(serial, waited_ns);
    if (!chunk_) {
      lose_unqueued_locked(serial, summary, name, bytes);
      return nullptr;
    }
  }
  std::byte* place = chunk_.data() + chunk_used_;
  chunk_used_ += charge;
  return place;
}

void HookState::push_small_locked(std::uint64_t serial, const std::string* name, const TensorView& tensor,
                                  double wall_time, SummaryOrder summary) {
  const auto bytes = static_cast<std::size_t>(tensor.size_bytes());
  std::byte* place = take_small_locked(serial, *name, bytes, summary);
  if (place == nullptr) return;
  tensor.copy_to(place);
  const std::string_view content = {reinterpret_cast<const char*>(place), bytes};
  writer_->push(ValueJob{serial, name, tensor.dtype(), tensor.shape(), wall_time, content, {}, {}, summary}, bytes);
}

void HookState::finish_chunk_locked() {
  if (chunk_) {
    Job done = ChunkDoneJob{std::move(chunk_)};
    const ChunkBack back(&done, &chunk_);
    writer_->push(std::move(done));
  }
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
