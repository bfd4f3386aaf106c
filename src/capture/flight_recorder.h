#pragma once

// FlightRecorder: the last steps kept in memory, so that what led to an event can be written after it happened.
// Guarded by the hook's mutex.

#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "capture/job.h"
#include "tornasole/tensor.h"

namespace tornasole::capture {

struct RecordedValue {
  const std::string* name = nullptr;
  Tensor tensor = {};
  double wall_time = 0;
};
struct RecordedStep {
  StepId id = {};
  StepFacts facts = {};
  std::vector<RecordedValue> values = {};
  std::size_t bytes = 0;
  bool was_saved = false;  // it is in the trial already
};

class FlightRecorder {
 public:
  FlightRecorder(std::int64_t max_steps, std::int64_t max_bytes) : max_steps_(max_steps), max_bytes_(max_bytes) {}

  bool is_on() const noexcept { return max_steps_ > 0; }
  void begin(const StepId& id);
  void add(RecordedValue value);
  void end(const StepFacts& facts, bool was_saved);
  // The steps that are not in the trial yet, oldest first. The ring is empty afterwards.
  std::vector<RecordedStep> take();
  std::size_t bytes() const noexcept { return bytes_; }

 private:
  void shrink();

  std::int64_t max_steps_;
  std::int64_t max_bytes_;
  std::deque<RecordedStep> steps_;
  std::size_t bytes_ = 0;
  bool is_open_ = false;
};

}  // namespace tornasole::capture
