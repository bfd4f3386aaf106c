#pragma once

// A trial made by hand in memory, with a clock that only moves when somebody sleeps.

#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/crc32c.h"
#include "config/environment.h"
#include "format/collections_file.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "format/run_files.h"
#include "store/memory/memory_store.h"
#include "tornasole/trial.h"
#include "trial/open_trial.h"

namespace tornasole::trial {

class ManualClock final : public Clock {
 public:
  double wall_seconds() const noexcept override { return 1'000'000 + now_s_; }
  std::int64_t monotonic_ns() const noexcept override { return static_cast<std::int64_t>(now_s_ * 1e9); }
  void advance(double seconds) { now_s_ += seconds; }
  double now_s() const { return now_s_; }

 private:
  double now_s_ = 1000;
};

struct WrittenTensor {
  std::string name;
  std::vector<float> values = {1, 2, 3};
};

struct WrittenFile {
  std::int64_t step = 0;
  std::string worker = "worker_0";
  std::optional<ModeStep> mode_step = {};  // without: GLOBAL, the step itself
  std::vector<WrittenTensor> tensors = {{"a"}};
  std::vector<format::ShapeEntry> shapes = {};
  bool is_partial = false;
  bool has_event_file = true;
  bool has_crc = true;
};

// One record as it lies in an event file.
inline Bytes encode_record(const WrittenTensor& tensor, std::int64_t step) {
  const format::EventHeader header{.name = tensor.name, .global_step = step, .wall_time = 1.5};
  const Shape shape{static_cast<std::int64_t>(tensor.values.size())};
  const auto event = format::encode_event(header, DType::kFloat32, shape, tensor.values.size() * sizeof(float));
  const Bytes payload =
      event->before + Bytes(reinterpret_cast<const char*>(tensor.values.data()), event->content_bytes) + event->after;
  const auto head = format::encode_record_header(payload.size());
  const auto trailer = format::encode_trailer(format::kConstantTrailer);
  return Bytes(head.data(), head.size()) + payload + Bytes(trailer.data(), trailer.size());
}

struct EncodedFiles {
  Bytes events;
  Bytes index;
};
inline EncodedFiles encode_files(const WrittenFile& file) {
  const ModeStep at = file.mode_step.value_or(ModeStep{Mode::kGlobal, file.step});
  format::Index index{.mode = at.mode, .mode_step = at.number, .is_partial = file.is_partial, .shapes = file.shapes};
  if (!file.tensors.empty()) index.event_file = format::event_path(file.step, format::encode_worker(file.worker));
  EncodedFiles encoded;
  for (const WrittenTensor& tensor : file.tensors) {
    const Bytes record = encode_record(tensor, file.step);
    format::IndexEntry entry{.name = tensor.name, .offset = encoded.events.size(), .length = record.size()};
    const ByteView payload =
        ByteView(record).substr(format::kRecordHeaderBytes, record.size() - format::kRecordFrameBytes);
    if (file.has_crc) entry.crc = masked_crc32c(payload);
    index.tensors.push_back(std::move(entry));
    encoded.events += record;
  }
  encoded.index = format::encode_index(index, file.has_crc);
  return encoded;
}

class TrialWorld {
 public:
  TrialWorld() : store_(clock_) {}

  void put(const std::string& path, const Bytes& content) {
    (void)store_.remove(path);
    const Status made = store_.create_exclusive(path, content);
    EXPECT_TRUE(made.ok()) << path << ": " << (made.ok() ? "" : made.error().message);
  }
  void remove(const std::string& path) { EXPECT_TRUE(store_.remove(path).ok()) << path; }

  void write(const WrittenFile& file) {
    const std::string worker = format::encode_worker(file.worker);
    const EncodedFiles encoded = encode_files(file);
    if (file.has_event_file && !file.tensors.empty()) put(format::event_path(file.step, worker), encoded.events);
    put(format::index_path(file.step, worker), encoded.index);
  }
  void write_steps(std::int64_t first, std::int64_t last, const std::vector<std::string>& workers) {
    for (std::int64_t step = first; step <= last; ++step) {
      for (const std::string& worker : workers) write({.step = step, .worker = worker});
    }
  }
  void write_collections(const std::vector<std::string>& workers, std::vector<format::StoredCollection> all = {}) {
    for (const std::string& worker : workers) {
      const format::CollectionsFile file{.collections = all, .num_workers = static_cast<std::int64_t>(workers.size())};
      put(format::collections_path(format::encode_worker(worker)), format::encode_collections(file));
    }
  }
  void write_health(const format::Health& health, const std::string& worker = "worker_0") {
    put(format::health_path(worker), format::encode_health(health));
  }
  void end() { put(std::string(format::kEndMarkerPath), ""); }

  Result<Trial> open(TrialOptions options = {.timeout_s = 0}) {
    if (options.path.empty()) options.path = "/trials/world";
    return open_trial(options, config::Environment(std::map<std::string, std::string>()), dependencies());
  }
  TrialDependencies dependencies() {
    return {.store = store_.share(),
            .clock = &clock_,
            .sleep =
                [this](double seconds) {
                  clock_.advance(seconds);
                  slept_s_ += seconds;
                  // A wait that never ends becomes an error.
                  if (slept_s_ > 1e4) throw std::runtime_error("slept for hours");
                  if (on_sleep) on_sleep();
                },
            .probe = [this](const ProcessIdentity& process) { return probe ? probe(process) : std::nullopt; }};
  }

  store::MemoryStore& store() { return store_; }
  ManualClock& clock() { return clock_; }
  double slept_s() const { return slept_s_; }

  std::function<void()> on_sleep;
  std::function<std::optional<bool>(const ProcessIdentity&)> probe;

 private:
  ManualClock clock_;
  store::MemoryStore store_;
  double slept_s_ = 0;
};

inline std::vector<std::int64_t> numbers(const std::vector<ModeStep>& steps) {
  std::vector<std::int64_t> found;
  for (const ModeStep step : steps) found.push_back(step.number);
  return found;
}
inline std::vector<std::int64_t> range(std::int64_t first, std::int64_t last) {
  std::vector<std::int64_t> found;
  for (; first <= last; ++first) found.push_back(first);
  return found;
}
constexpr ModeStep global(std::int64_t number) { return {Mode::kGlobal, number}; }
constexpr ModeStep train(std::int64_t number) { return {Mode::kTrain, number}; }
constexpr ModeStep eval(std::int64_t number) { return {Mode::kEval, number}; }

// Opens, or fails the test.
inline Trial must_open(TrialWorld& world, const TrialOptions& options = {.timeout_s = 0}) {
  auto trial = world.open(options);
  EXPECT_TRUE(trial.ok()) << (trial.ok() ? "" : trial.error().message);
  return std::move(*trial);
}

}  // namespace tornasole::trial
