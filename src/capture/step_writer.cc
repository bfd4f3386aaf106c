#include "tornasole/step_writer.h"

#include <deque>
#include <utility>

#include "base/clock.h"
#include "base/errors.h"
#include "capture/copy_elements.h"
#include "capture/step_files.h"
#include "config/environment.h"
#include "config/locations.h"
#include "format/paths.h"
#include "store/open_store.h"

namespace tornasole {
namespace {

Result<std::string> location_of(const std::string& trial_dir) {
  const std::string given = config::expand_home(trial_dir, config::Environment::from_process());
  return config::absolute_location(given);
}

Result<std::unique_ptr<store::Store>> open_writable(const std::string& location) {
  return store::open_store(location, {.environment = store::s3_environment(config::Environment::from_process())});
}

Result<bool> is_there(store::Store& store, std::string_view path) {
  const auto status = store.status(path);
  if (status) return true;
  if (status.error().code == ErrorCode::kNotFound) return false;
  return status.error();
}

// Whether the steps in a directory are those of a training: a hook wrote them, or somebody marked their end.
Result<bool> holds_run(store::Store& store) {
  TORNASOLE_TRY(const bool has_ended, is_there(store, format::kEndMarkerPath));
  if (has_ended) return true;
  TORNASOLE_TRY(const auto own, store.list(format::kHealthDirectory, /*recursive=*/false));
  return !own.empty();
}

// Makes room for a step. One that is there is told from its index, without which the event file belongs to none.
Status clear_step(store::Store& store, const std::string& index_path, bool replace) {
  TORNASOLE_TRY(const bool is_taken, is_there(store, index_path));
  if (!is_taken) return {};
  if (!replace) {
    return invalid_error("publish {}/{}: the step is there already, and it is not replaced", store.description(),
                         index_path);
  }
  TORNASOLE_TRY(const bool is_of_run, holds_run(store));
  if (is_of_run) {
    return invalid_error("publish {}/{}: the step is there already, and steps of a run are not replaced",
                         store.description(), index_path);
  }
  return store.remove(index_path);
}

}  // namespace

struct StepWriter::State {
  std::unique_ptr<store::Store> store;
  std::string path;
  std::string index_path;
  bool replace;
  capture::StepFiles files;
  std::deque<std::string> names = {};  // stable addresses, which the files refer to until they are closed
};

Result<StepWriter> StepWriter::open(const StepWriterOptions& options) {
  const std::string worker = format::encode_worker(options.worker);
  if (!format::is_safe_worker(worker)) {
    return invalid_error("worker: '{}' is not allowed; allowed: up to 200 letters, digits, . _ -", options.worker);
  }
  const std::int64_t step = options.step.number;
  if (step < 0) return invalid_error("step {} is negative; steps count from 0", step);
  TORNASOLE_TRY(const std::string location, location_of(options.trial_dir));
  TORNASOLE_TRY(auto store, open_writable(location));
  const capture::StepId id{1, step, options.mode, options.mode_step.value_or(step)};
  store::Store* borrowed = store.get();
  return StepWriter(std::make_unique<State>(State{.store = std::move(store),
                                                  .path = location + "/" + format::event_path(step, worker),
                                                  .index_path = format::index_path(step, worker),
                                                  .replace = options.replace,
                                                  .files = capture::StepFiles(borrowed, id, worker)}));
}

StepWriter::StepWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
StepWriter::StepWriter(StepWriter&&) noexcept = default;
StepWriter& StepWriter::operator=(StepWriter&&) noexcept = default;
StepWriter::~StepWriter() {
  if (state_) state_->files.abandon();
}

Status StepWriter::write(std::string_view name, const TensorView& tensor, std::optional<double> wall_time) {
  if (!state_) return runtime_error("the step is closed");
  capture::ValueJob value{.name = &state_->names.emplace_back(name),
                          .dtype = tensor.dtype(),
                          .shape = tensor.shape(),
                          .wall_time = wall_time.value_or(system_clock().wall_seconds())};
  if (tensor.dtype() == DType::kString) {
    value.texts.assign(tensor.texts().begin(), tensor.texts().end());
    return state_->files.add_value(value);
  }
  // Whole 16-byte units, so that the memory is aligned as the copy wants it.
  const auto bytes = static_cast<std::size_t>(tensor.size_bytes());
  struct alignas(16) Unit {
    std::byte bytes[16];
  };
  std::vector<Unit> copy((bytes + sizeof(Unit) - 1) / sizeof(Unit));
  if (bytes > 0) capture::copy_elements(tensor, copy.front().bytes);
  value.content = {reinterpret_cast<const char*>(copy.data()), bytes};
  return state_->files.add_value(value);
}

Status StepWriter::write_shape(std::string_view name, const Shape& shape) {
  if (!state_) return runtime_error("the step is closed");
  state_->files.add_shape({.name = &state_->names.emplace_back(name), .shape = shape});
  return {};
}

Status StepWriter::close() {
  if (!state_) return {};
  const std::unique_ptr<State> state = std::move(state_);
  if (state->files.is_empty()) return {};
  Status published = clear_step(*state->store, state->index_path, state->replace);
  if (published) published = state->files.publish({});
  if (!published) state->files.abandon();
  return published;
}

const std::string& StepWriter::path() const noexcept {
  static const std::string kNone;
  return state_ ? state_->path : kNone;
}

Status mark_ended(const std::string& trial_dir) {
  TORNASOLE_TRY(const std::string location, location_of(trial_dir));
  TORNASOLE_TRY(const auto store, open_writable(location));
  if (store->status(format::kEndMarkerPath).ok()) return {};
  return store->create_exclusive(format::kEndMarkerPath, "");
}

Result<bool> has_ended(const std::string& trial_dir) {
  TORNASOLE_TRY(const std::string location, location_of(trial_dir));
  TORNASOLE_TRY(const auto store, open_writable(location));
  return is_there(*store, format::kEndMarkerPath);
}

}  // namespace tornasole
