#pragma once

// Trial: what a training run saved, while it runs or after it ended.
//
//   auto trial = tornasole::Trial::open({.path = "runs/mnist"});
//   if (!trial) return fail(trial.error());
//   for (auto step : trial->steps(tornasole::Mode::kTrain)) {
//     auto gradient = trial->tensor("gradient/fc1.weight", step);
//     if (gradient) use(*gradient);
//   }
//
// A trial is a snapshot: members that ask what there is do no I/O and never wait. `refresh` looks for what was written
// since; reading a value reads it from its file; only `open` and the wait_… members sleep. Nothing refreshes behind a
// getter.
//
// Threads: any number may use the const members at once; refresh, the waits and changes of collections need the trial
// for themselves.

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/model.h"
#include "tornasole/reduction.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole {

namespace trial {
class TrialState;
struct TrialAccess;
}  // namespace trial

enum class OnDamage : std::uint8_t {
  kSkip,  // leave the damaged file out, count it, go on
  kFail,  // open and refresh end with the error
};

struct TrialOptions {
  std::string path = {};  // the directory a run was written to; a leading ~ is the home directory
  std::string name = {};  // how messages call it; the last component of the path
  // Only steps with first_step <= global step < end_step.
  std::optional<std::int64_t> first_step = {}, end_step = {};
  OnDamage on_damage = OnDamage::kSkip;
  bool check = false;  // read and verify every value before open returns
  bool cache = false;  // keep values in memory after they were read first
  // A waiting call gives up when the run has shown no sign of life for this long; 0: never wait, nothing: wait for
  // ever.
  std::optional<double> timeout_s = 300;
  double poll_s = 2;
  // How open, refresh and the waits sleep, called by the thread that waits; false ends the wait with kNotYet. Nothing:
  // the thread just sleeps. May let other threads use the trial meanwhile.
  std::function<bool(double seconds)> sleep = {};
  // The step window and delays of live runs; nothing: TORNASOLE_…/SMDEBUG_INCOMPLETE_STEP_WAIT_WINDOW (1000),
  // …_TRAINING_END_DELAY_REFRESH (1), …_MISSING_EVENT_FILE_RETRY_LIMIT (100).
  std::optional<std::int64_t> incomplete_step_window = {};
  std::optional<double> end_delay_s = {};
  std::optional<std::int64_t> missing_file_retries = {};
};

enum class StepState : std::uint8_t { kUnavailable = 0, kAvailable = 1, kNotYetAvailable = 2 };

// Which steps a list shows. Partial steps (cut by an exception, a signal or a repair) are never among the complete
// ones; kIncludingIncomplete shows every known step.
enum class StepFilter : std::uint8_t { kComplete, kIncludingIncomplete, kPartial };

enum class RunState : std::uint8_t {
  kUnknown,       // no end marker, and nothing says who wrote it (runs of smdebug)
  kRunning,       //
  kEnded,         // the end marker is there
  kFailed,        // it said so itself
  kPresumedDead,  // it stopped without a word
};
struct RunStatus {
  RunState state = RunState::kUnknown;
  std::string reason = {};  // of a failed or dead run
};

// A file, or a part of one, that could not be used.
struct Damage {
  std::string path;                          // relative to the trial
  std::optional<std::uint64_t> offset = {};  // in the file
  std::string what;
};

// A collection as the run's files describe it, or one made up for the analysis.
struct TrialCollection {
  std::string name;
  std::vector<std::string> include_regex = {};
  std::vector<std::string> exclude_regex = {};
  std::vector<std::string> tensor_names = {};  // sorted
  std::string reduction_config = {};           // as JSON text; empty if there is none
  std::string save_config = {};                // as JSON text; empty if there is none
  bool save_histogram = true;
};

struct NameQuery {
  std::optional<ModeStep> step = {};    // saved at this step
  Mode mode = Mode::kGlobal;            // saved in this mode; kGlobal: in any
  std::vector<std::string> regex = {};  // any is found anywhere in the name (Python's re.search)
  std::optional<std::string> collection = {};
  // A match that takes too many steps counts as none, and a pattern that met several of those is not tried on further
  // names. Where this is set it gets a line for each such pattern, with the name; without it, one in `regex` makes the
  // query fail.
  std::vector<std::string>* limit_reports = nullptr;
};

// In which forms files hold a tensor.
struct StoredForms {
  bool value = false;
  std::vector<Reduction> reductions = {};  // sorted
};

// One value of a sweep; borrowed for the call.
struct SweptValue {
  std::string_view name;
  GlobalStep global_step;
  ModeStep step;
  std::string_view worker;
  std::optional<Reduction> reduction;  // set for a stored reduction of `name`
  // The value, or why it cannot be had. Neither, where the query's `digest` wanted it so.
  const TensorView* value = nullptr;
  const Error* error = nullptr;
  Tensor* tensor = nullptr;  // the value again, owned: the callee may move from it; `value` ends with where it went
  std::shared_ptr<void> digest = {};  // what the query's `digest` made of the value
};
struct SweepQuery {
  std::vector<std::string> names = {};  // empty: all
  Mode mode = Mode::kGlobal;
  StepFilter steps = StepFilter::kIncludingIncomplete;
  std::optional<std::int64_t> first_step = {}, end_step = {};  // global
  std::string worker = {};                                     // empty: all
  bool values = true;                                          // full values
  bool reductions = false;                                     // stored reductions
  std::vector<Reduction> reduction_kinds = {};                 // only these; empty: all
  // If set, decides for each tensor what is read, by what was stored of it, instead of values, reductions and
  // reduction_kinds: it takes away from what it is given. Asked once for each tensor of each set of names that files
  // have in common.
  std::function<void(std::string_view name, StoredForms* forms)> select = {};
  // If set, called with each full value that is not text, by the threads that read, several at once and in any order:
  // what it returns goes along in SweptValue::digest, and the value itself unless *keep becomes false. For who wants
  // numbers of many values and not the values.
  std::function<std::shared_ptr<void>(std::string_view name, const TensorView& value, bool* keep)> digest = {};
};

// One value to be read: of a tensor at a step, or a stored reduction of it.
struct ValueQuery {
  std::string name = {};
  ModeStep step = {};
  std::string worker = {};                  // empty: the first in sorted order that saved the tensor at the step
  std::optional<Reduction> reduction = {};  // as stored, never computed
};

// One tensor of a trial, by name; valid as long as the trial. Every step may be a mode's or global (ModeStep with
// Mode::kGlobal). Without a worker, the first in sorted order that saved the tensor at that step.
class TORNASOLE_EXPORT TrialTensor {
 public:
  const std::string& name() const noexcept;
  // The framework's own name, if a saved shape carries one; else empty.
  const std::string& original_name() const noexcept;

  std::vector<ModeStep> steps(Mode mode = Mode::kGlobal, StepFilter filter = StepFilter::kComplete) const;
  // The last n steps that are complete and not after `step`, ascending; all of them for n = 0.
  std::vector<ModeStep> prev_steps(ModeStep step, std::size_t n = 0) const;
  // Sorted. kNotFound if nobody saved it then.
  Result<std::vector<std::string>> workers(ModeStep step) const;

  bool has_value(ModeStep step, std::string_view worker = {}) const;
  Result<Tensor> value(ModeStep step, std::string_view worker = {}) const;
  // Over all complete steps of the mode, read in file order. Steps whose value cannot be had are left out of the map
  // and listed in `missing` if that is given.
  Result<std::map<std::int64_t, Tensor>> values(Mode mode = Mode::kGlobal, std::string_view worker = {},
                                                std::vector<std::pair<ModeStep, Error>>* missing = nullptr) const;
  // The saved shape, else that of the value.
  Result<Shape> shape(ModeStep step, std::string_view worker = {}) const;
  Result<std::map<std::int64_t, Shape>> shapes(Mode mode = Mode::kGlobal, std::string_view worker = {}) const;

  // The saved reduction, else computed from the value.
  Result<Tensor> reduction_tensor(ModeStep step, Reduction reduction, std::string_view worker = {}) const;
  Result<double> reduction_value(ModeStep step, Reduction reduction, std::string_view worker = {}) const;
  // Which reductions were saved, sorted; reads nothing.
  Result<std::vector<Reduction>> stored_reductions(ModeStep step, std::string_view worker = {}) const;
  // Only what was saved, never computed.
  Result<std::map<Reduction, Tensor>> reduction_values(ModeStep step, std::string_view worker = {}) const;

 private:
  friend class Trial;
  TrialTensor(const trial::TrialState* state, std::uint32_t id) : state_(state), id_(id) {}
  const trial::TrialState* state_;
  std::uint32_t id_;
};

class TORNASOLE_EXPORT Trial {
 public:
  // Waits for the collections files of all workers, then loads the index. Reads no values.
  static Result<Trial> open(const TrialOptions& options);
  Trial(Trial&&) noexcept;
  Trial& operator=(Trial&&) noexcept;
  ~Trial();

  // Loads what was written since. With the end marker there: waits end_delay_s, loads once more, and is then done for
  // ever.
  Status refresh();
  // Waits, refreshing, until each step is available; kNotFound for one that was passed over, kEnded if the run is over
  // or presumed dead before it came, kNotYet after timeout_s without a sign of life.
  Status wait_for_steps(std::span<const ModeStep> steps);
  // The value, waiting for its step as above and then for its event file, at most missing_file_retries polls.
  Result<Tensor> wait_for_value(std::string_view name, ModeStep step, std::string_view worker = {});
  // For a step that is known: waits until what it holds of the tensor can be read or its event file is known not to
  // come, at most missing_file_retries polls. Loads nothing new, so the same steps are known before and after.
  Status wait_for_file(std::string_view name, ModeStep step, std::string_view worker = {});
  // timeout_s and poll_s of the options, for the waits that follow.
  Status set_waiting(std::optional<double> timeout_s, double poll_s);

  const std::string& name() const noexcept;
  const std::string& path() const noexcept;
  std::vector<std::string> workers() const;  // sorted; from the collections files
  std::int64_t num_workers() const noexcept;
  std::vector<Mode> modes() const;  // with at least one step; never kGlobal
  std::vector<ModeStep> steps(Mode mode = Mode::kGlobal, StepFilter filter = StepFilter::kComplete) const;
  std::optional<ModeStep> mode_step(GlobalStep step) const;    // kGlobal if it was saved without a mode
  std::optional<GlobalStep> global_step(ModeStep step) const;  // a global step is returned unchecked
  StepState has_passed_step(ModeStep step) const;
  std::vector<std::string> workers_at(GlobalStep step) const;  // sorted

  // Sorted. kInvalid for both a regex and a collection, for a pattern Python would refuse, and for one that takes too
  // many steps.
  Result<std::vector<std::string>> tensor_names(const NameQuery& query = {}) const;
  bool has_tensor(std::string_view name) const;
  // kNotFound, with the names that come near.
  Result<TrialTensor> tensor(std::string_view name) const;
  // Its value at a step.
  Result<Tensor> tensor(std::string_view name, ModeStep step, std::string_view worker = {}) const;
  // Values of the collection `inputs`, of names that match labels* and predictions*, ordered by the number after the
  // last underscore.
  Result<std::vector<Tensor>> inputs(ModeStep step) const;
  Result<std::vector<Tensor>> labels(ModeStep step) const;
  Result<std::vector<Tensor>> predictions(ModeStep step) const;

  const std::map<std::string, TrialCollection, std::less<>>& collections() const;
  // The collection of that name, created empty if there is none; what is added to it holds for this trial object.
  TrialCollection& collection(std::string_view name);

  // What each worker said of its model, by worker; without those that said nothing. As of open and refresh.
  const std::map<std::string, StoredModel, std::less<>>& models() const noexcept;
  // What the step's index file says besides where values lie; empty where nothing is known. Without a worker, of the
  // first in sorted order that has the step.
  StepFacts step_facts(GlobalStep step, std::string_view worker = {}) const;

  // Reads each event file once, in step order, on several threads; calls back from the calling thread, in the order of
  // global step, worker and position in the file, until the callback returns false.
  Status sweep(const SweepQuery& query, const std::function<bool(const SweptValue&)>& callback) const;

  // The same for a list of values, each answered as TrialTensor::value does: calls back once for each, with its place
  // in the list, in the order in which they lie in the files.
  Status read(std::span<const ValueQuery> queries,
              const std::function<bool(std::size_t place, Result<Tensor> value)>& callback) const;

  bool loaded_all_steps() const noexcept;
  std::int64_t last_complete_step() const noexcept;  // -1 if none
  const std::string& last_index_token() const noexcept;
  RunStatus run_status() const;
  const std::vector<Damage>& damage() const noexcept;  // what was left out so far, at most the first 10,000
  std::int64_t damage_count() const noexcept;          // all of it
  std::int64_t index_bytes() const noexcept;           // of memory, for all that is known of values

 private:
  friend struct trial::TrialAccess;
  explicit Trial(std::unique_ptr<trial::TrialState> state);
  std::unique_ptr<trial::TrialState> state_;
};

}  // namespace tornasole
