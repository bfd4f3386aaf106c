#pragma once

// StepWriter: the files of one step of one worker, written without a hook.
//
//   auto step = tornasole::StepWriter::open({.trial_dir = "runs/made", .step = {20}});
//   if (!step) return fail(step.error());
//   if (auto written = step->write("loss", value); !written) return fail(written.error());
//   return step->close();                                     // now it can be read
//
// For programs that make trials out of something else, and for tests of what reads them. It decides nothing, claims
// nothing and marks no end. Not for several threads at once.

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole {

struct StepWriterOptions {
  std::string trial_dir = {};
  GlobalStep step = {};
  std::string worker = "worker_0";
  Mode mode = Mode::kGlobal;
  std::optional<std::int64_t> mode_step = {};  // the global step
  // Whether a step that is there already goes. A step of a run never does: of one that a hook wrote, or that has ended.
  bool replace = false;
};

class TORNASOLE_EXPORT StepWriter {
 public:
  // Writes nothing yet. kInvalid for a worker's name that cannot be part of a file name, or a negative step.
  static Result<StepWriter> open(const StepWriterOptions& options);
  StepWriter(StepWriter&&) noexcept;
  StepWriter& operator=(StepWriter&&) noexcept;
  ~StepWriter();  // what was not closed is removed

  Status write(std::string_view name, const TensorView& tensor, std::optional<double> wall_time = {});
  // The shape alone, without elements.
  Status write_shape(std::string_view name, const Shape& shape);
  // Publishes the step; nothing if nothing was written. kInvalid if the step is there and is not to be replaced: it
  // stays as it is.
  Status close();

  // Of the event file, as it will be called.
  const std::string& path() const noexcept;

 private:
  struct State;
  explicit StepWriter(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

// Marks the run in a directory as ended, and whether that was done.
TORNASOLE_EXPORT Status mark_ended(const std::string& trial_dir);
TORNASOLE_EXPORT Result<bool> has_ended(const std::string& trial_dir);

}  // namespace tornasole
