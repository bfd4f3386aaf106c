#include "capture/summary_writer.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "base/errors.h"
#include "base/process.h"
#include "config/environment.h"
#include "reduce/reduce.h"
#include "store/open_store.h"
#include "tensorboard/summary_event.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kGatherBytes = std::size_t{4} << 20;
constexpr std::string_view kCause = "tensorboard";

std::string root_inside(const std::string& root, const std::string& location) {
  return root.size() == location.size() ? "" : root.substr(location.size() + 1);
}
// Summaries may be missed: the steps of the run do not wait long for them.
constexpr double kBudget_s = 5;

Result<std::unique_ptr<store::Store>> open_root(const std::string& root, bool is_shared) {
  return store::open_store(root, {.shared = is_shared,
                                  .environment = store::s3_environment(config::Environment::from_process()),
                                  .retry_budget_s = kBudget_s});
}

bool is_inside(std::string_view root, std::string_view location) {
  return root.starts_with(location) && (root.size() == location.size() || root[location.size()] == '/') &&
         location != "/" && root.find("/../") == root.npos && !root.ends_with("/..");
}

}  // namespace

Status check_summary_root(const std::string& root) {
  if (!store::is_s3_location(root)) return {};
  const auto opened = open_root(root, /*is_shared=*/false);
  return opened.ok() ? Status() : Status(opened.error());
}

SummaryWriter::SummaryWriter(const config::Config& config, store::Store* store, Health* health)
    : root_(config.tensorboard_dir.value_or("")), is_shared_(config.shared), run_store_(store), health_(health) {
  const ProcessIdentity process = this_process();
  place_.process = process.pid;
  place_.host = process.host;
  if (is_inside(root_, config.location)) {
    place_.store = store;
    place_.directory = root_inside(root_, config.location);
  }
}

template <typename Call>
void SummaryWriter::guarded(Call&& call) noexcept {
  try {
    if (const Status done = call(); !done.ok()) lose(1, done.error());
  } catch (...) {
    lose(1, error_from_current_exception());
  }
}

void SummaryWriter::lose(std::int64_t count, const Error& why) noexcept {
  for (std::int64_t i = 0; i < count; ++i) {
    health_->value_dropped(
        kCause, make_error(why.code, why.kind, "step {}: its summaries are not in {}: {}", step_, root_, why.message));
  }
}

void SummaryWriter::begin(const StepId& id) noexcept {
  if (root_.empty()) return;
  drop();
  step_ = id.global_step;
  summaries_.emplace(id.mode, id.global_step);
  write_ready();
}

void SummaryWriter::add_ready(ReadySummaryJob job) noexcept {
  if (root_.empty()) return;
  guarded([&]() -> Status {
    ready_.push_back(std::move(job));
    return {};
  });
  if (summaries_) write_ready();
}

void SummaryWriter::write_ready() noexcept {
  guarded([&]() -> Status {
    for (const ReadySummaryJob& job : std::exchange(ready_, {})) {
      summaries_->add(job.wall_time,
                      job.is_graph ? tensorboard::encode_graph(job.wall_time, job.content)
                                   : tensorboard::encode_summary({job.wall_time, job.id.global_step}, job.content));
    }
    return flush_if_large();
  });
}

void SummaryWriter::finish() noexcept {
  if (ready_.empty()) return;
  // In a file after the last one: a step that was shown is never replaced.
  StepId after = ready_.back().id;
  ++after.global_step;
  begin(after);
  publish();
}

void SummaryWriter::drop() noexcept {
  summaries_.reset();  // a file that was begun goes with it
  stream_.reset();
}

void SummaryWriter::add(const ValueJob& value) noexcept {
  if (!summaries_ || value.summary.is_empty()) return;
  guarded([&] { return try_add(value); });
}

Status SummaryWriter::try_add(const ValueJob& value) {
  // Small values lie in their chunk as bytes.
  const char* elements = value.content.data();
  if (reinterpret_cast<std::uintptr_t>(elements) % sizeof(std::uint64_t) != 0) {
    aligned_.resize((value.content.size() + 7) / 8);
    std::memcpy(aligned_.data(), elements, value.content.size());
    elements = reinterpret_cast<const char*>(aligned_.data());
  }
  const TensorView tensor(value.dtype, reinterpret_cast<const std::byte*>(elements), value.shape);
  if (value.summary.histogram_tag != nullptr) {
    TORNASOLE_TRY(const reduce::Histogram histogram, reduce::tensorboard_histogram(tensor));
    TORNASOLE_CHECK(add_histogram(*value.summary.histogram_tag, value.wall_time, histogram));
  }
  if (value.summary.scalar_tag != nullptr) {
    const auto number = static_cast<float>(reduce::mean_of(tensor));
    summaries_->add(value.wall_time,
                    tensorboard::encode_scalar({value.wall_time, step_}, *value.summary.scalar_tag, number));
  }
  return flush_if_large();
}

Status SummaryWriter::add_histogram(const std::string& tag, double wall_time, const reduce::Histogram& histogram) {
  if (histogram.bucket.empty()) return {};  // nothing but NaN and infinity: there is nothing to draw
  summaries_->add(wall_time, tensorboard::encode_histogram({wall_time, step_}, tag, histogram));
  return {};
}

void SummaryWriter::begin_stream(const StreamJob& stream) noexcept {
  stream_.reset();
  if (!summaries_ || stream.summary.histogram_tag == nullptr) return;
  guarded([&]() -> Status {
    stream_.emplace(stream, stream.content_bytes);
    return {};
  });
}

void SummaryWriter::add_piece(std::string_view piece) noexcept {
  if (!stream_) return;
  guarded([&] { return try_add_piece(piece); });
}

Status SummaryWriter::try_add_piece(std::string_view piece) {
  const auto elements = static_cast<std::int64_t>(piece.size() / dtype_size(stream_->job.dtype));
  stream_->rest_bytes -= std::min<std::uint64_t>(stream_->rest_bytes, piece.size());
  Status added =
      stream_->histogram.add({stream_->job.dtype, reinterpret_cast<const std::byte*>(piece.data()), Shape{elements}});
  if (stream_->rest_bytes > 0 && added.ok()) return {};
  Stream stream = std::move(*stream_);
  stream_.reset();
  TORNASOLE_CHECK(std::move(added));

  return add_histogram(*stream.job.summary.histogram_tag, stream.job.wall_time, stream.histogram.finish());
}

// The root outside the run is looked at when there is something to write, not before.
Status SummaryWriter::find_place() {
  if (place_.store != nullptr) return {};
  TORNASOLE_TRY(auto opened, open_root(root_, is_shared_));
  const std::lock_guard lock(mutex_);
  if (is_cancelled_) opened->cancel();
  own_store_ = std::move(opened);
  place_.store = own_store_.get();
  return {};
}

void SummaryWriter::cancel() noexcept {
  const std::lock_guard lock(mutex_);
  is_cancelled_ = true;
  if (own_store_) own_store_->cancel();
}

Status SummaryWriter::flush_if_large() {
  if (summaries_->gathered_bytes() < kGatherBytes) return {};
  TORNASOLE_CHECK(find_place());
  return summaries_->flush(place_);
}

void SummaryWriter::publish() noexcept {
  if (!summaries_) return;
  const std::int64_t count = summaries_->count();
  try {
    Status published = count == 0 ? Status() : find_place();
    if (published.ok() && count > 0) {
      published = summaries_->publish(place_);
      // A directory that was removed is made again for the next step.
      if (!published.ok() && own_store_) own_store_->renew_root();
    }
    if (!published.ok()) lose(count, published.error());
  } catch (...) {
    lose(count, error_from_current_exception());
  }
  summaries_.reset();
}

}  // namespace tornasole::capture
