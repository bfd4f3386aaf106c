#include "capture/flight_recorder.h"

#include <utility>

namespace tornasole::capture {

void FlightRecorder::begin(const StepId& id) {
  steps_.push_back({.id = id});
  is_open_ = true;
  shrink();
}

void FlightRecorder::add(RecordedValue value) {
  if (!is_open_) return;
  std::size_t bytes = sizeof value + value.tensor.bytes().size();
  for (const std::string& text : value.tensor.texts()) bytes += text.size();
  steps_.back().values.push_back(std::move(value));
  steps_.back().bytes += bytes;
  bytes_ += bytes;
  shrink();
}

void FlightRecorder::end(const StepFacts& facts, bool was_saved) {
  if (!is_open_) return;
  is_open_ = false;
  steps_.back().facts = facts;
  steps_.back().was_saved = was_saved;
}

std::vector<RecordedStep> FlightRecorder::take() {
  std::vector<RecordedStep> taken;
  for (RecordedStep& step : steps_) {
    if (!step.was_saved && !step.values.empty()) taken.push_back(std::move(step));
  }
  steps_.clear();
  bytes_ = 0;
  is_open_ = false;
  return taken;
}

void FlightRecorder::shrink() {
  // The step that is open is given up last: half a step is of no use.
  while (!steps_.empty() &&
         (static_cast<std::int64_t>(steps_.size()) > max_steps_ || static_cast<std::int64_t>(bytes_) > max_bytes_)) {
    bytes_ -= steps_.front().bytes;
    if (steps_.size() == 1) is_open_ = false;
    steps_.pop_front();
  }
}

}  // namespace tornasole::capture
