#pragma once

// Hook: captures tensors of a training run into a trial directory.
//
//   auto hook = tornasole::Hook::open({.out_dir = "runs/mnist", .save_config = {.save_interval = 100}});
//   if (!hook) return fail(hook.error());                     // set-up is the one place that may refuse
//   for (auto& batch : batches) {
//     auto step = hook->begin_step(tornasole::Mode::kTrain);  // published when the scope ends
//     step.save("loss", train(batch));
//   }
//
// After open, every call is noexcept, has nothing to check, and waits a bounded time. What goes wrong is counted,
// reported once per cause to the log, and written into the run; `report` returns it. TORNASOLE_STRICT=1 turns the
// first failure into an abort.
//
// Threads: any thread may call any member; save and tap are made for being called from many at once. Steps begin and
// end on one thread at a time. A hook belongs to the process that opened it: in a forked child it does nothing.

#include <cstdint>
#include <functional>
#include <initializer_list>
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
#include "tornasole/options.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole {

namespace capture {
class HookState;
struct HookAccess;
}  // namespace capture

class Hook;

// The name of a tensor for whoever saves it again and again: the hook looks it up once, not at each step. For one hook,
// and must not outlive its use there.
class TensorName {
 public:
  explicit TensorName(std::string name) : text_(std::move(name)) {}
  const std::string& text() const noexcept { return text_; }

 private:
  friend class capture::HookState;
  std::string text_;
  void* known_ = nullptr;  // what the hook knows of it, guarded by the hook
};

// The same for a module, whose inputs and outputs are saved under its name.
class ModuleName {
 public:
  explicit ModuleName(std::string name) : text_(std::move(name)) {}
  const std::string& text() const noexcept { return text_; }

 private:
  friend class capture::HookState;
  std::string text_;
  void* inputs_ = nullptr;  // as above
  void* outputs_ = nullptr;
};

// A step that somebody else holds open: values can be saved in it, and it is not ended. Copied at no cost. What comes
// after the end of the step is ignored. Must not outlive the hook.
class TORNASOLE_EXPORT StepRef {
 public:
  StepRef() = default;  // of no step: takes nothing

  // Offers a tensor; the collections decide whether and in what form it is saved.
  template <Viewable T>
  void save(std::string_view name, const T& value) const noexcept {
    if (anything_due()) save_view(name, ViewOf<T>::view(value));
  }
  template <Viewable T>
  void save(TensorName& name, const T& value) const noexcept {
    if (anything_due()) save_view(name, ViewOf<T>::view(value));
  }
  // The same, and hands the value on: x = step.tap("relu1", relu(x));
  template <typename T>
    requires Viewable<std::remove_cvref_t<T>>
  T&& tap(std::string_view name, T&& value) const noexcept {
    if (anything_due()) save_view(name, ViewOf<std::remove_cvref_t<T>>::view(value));
    return std::forward<T>(value);
  }
  // An input or output of a module, named <module>_input_<i> or <module>_output_<i>: a module called several times in
  // one step is numbered on.
  template <Viewable T>
  void save_input(std::string_view module, const T& value) const noexcept {
    if (anything_due()) save_numbered(module, /*is_input=*/true, ViewOf<T>::view(value));
  }
  template <Viewable T>
  void save_output(std::string_view module, const T& value) const noexcept {
    if (anything_due()) save_numbered(module, /*is_input=*/false, ViewOf<T>::view(value));
  }
  template <Viewable T>
  void save_input(ModuleName& module, const T& value) const noexcept {
    if (anything_due()) save_numbered(module, /*is_input=*/true, ViewOf<T>::view(value));
  }
  template <Viewable T>
  void save_output(ModuleName& module, const T& value) const noexcept {
    if (anything_due()) save_numbered(module, /*is_input=*/false, ViewOf<T>::view(value));
  }
  // Whether anything can be saved in this step. False for most steps; asking costs nothing.
  bool anything_due() const noexcept { return due_; }
  // Whether this tensor would be saved or watched now, so that a caller can skip making it.
  bool wants(std::string_view name) const noexcept;
  // Two steps with the same number want the same tensors, so a caller need ask `wants` only once for each number. 0
  // when nothing is due.
  std::uint64_t due_set() const noexcept { return due_set_; }

  // For adapters, which are told of a step and do not have the hook: what the members of Hook of these names do.
  void save_scalar(std::string_view name, double value) const noexcept;
  void set_facts(const StepFacts& facts) const noexcept;
  void describe_model(const ModelDescription& model) const noexcept;
  void log(LogLevel level, std::string_view message) const noexcept;
  std::vector<std::string> saved_collections() const;

  Mode mode() const noexcept { return mode_; }
  std::int64_t number() const noexcept { return mode_step_; }
  std::int64_t global_step() const noexcept { return global_step_; }

 protected:
  void save_view(std::string_view name, const TensorView& tensor) const noexcept;
  void save_view(TensorName& name, const TensorView& tensor) const noexcept;
  void save_numbered(std::string_view module, bool is_input, const TensorView& tensor) const noexcept;
  void save_numbered(ModuleName& module, bool is_input, const TensorView& tensor) const noexcept;

  capture::HookState* state_ = nullptr;
  std::uint64_t due_set_ = 0;
  std::uint64_t serial_ = 0;  // which step of the hook this is; a step that was ended meanwhile takes nothing more
  std::int64_t mode_step_ = 0;
  std::int64_t global_step_ = 0;
  Mode mode_ = Mode::kGlobal;
  bool due_ = false;  // something is due, watched or recorded in this step
};

// One step of a mode. Ends, and so is published, when it goes out of scope; when an exception unwinds it, it is
// published marked partial.
class TORNASOLE_EXPORT StepScope : public StepRef {
 public:
  StepScope(StepScope&& other) noexcept;
  StepScope& operator=(StepScope&&) = delete;
  ~StepScope();

  // These collections are due in this step whatever their schedules say, as results of an epoch are; but not one that
  // is not saved, or is switched off by end_step 0.
  void make_due(std::span<const std::string_view> collections) noexcept;
  void end() noexcept;
  // The same for a step that was interrupted: it is published marked partial.
  void end_partial() noexcept;

 private:
  friend class Hook;
  friend TORNASOLE_EXPORT bool repeat_step(const Hook& hook, StepScope& step, const StepFacts& facts) noexcept;
  StepScope() = default;
  void end_as(bool is_partial) noexcept;
  int exceptions_ = 0;
};

// What a hook tells an adapter, which saves by itself what a framework keeps: parameters, their gradients. Called on
// the thread that begins or ends steps, with no lock held; of steps in which nothing is due it hears nothing.
class TORNASOLE_EXPORT StepListener {
 public:
  virtual ~StepListener();
  // The mode of a step that is begun without one, as a model knows whether it is being trained. Asked at each of those.
  virtual std::optional<Mode> mode() noexcept { return std::nullopt; }
  virtual void step_began(const StepRef& step) noexcept = 0;
  // The step is about to end: the last moment to save in it.
  virtual void step_ends(const StepRef& /*step*/) noexcept {}
  // The hook is closed: there will be no more steps.
  virtual void hook_closed() noexcept {}
};

struct ScalarOptions {
  bool sm_metric = false;                // also a line in the SageMaker metrics file
  std::optional<double> timestamp = {};  // seconds since 1970; now
};

// A view on one collection of a hook, by name; valid as long as the hook. Changes made after the first step take
// effect at the next step.
class TORNASOLE_EXPORT Collection {
 public:
  const std::string& name() const noexcept { return name_; }
  Status include(std::string_view pattern);
  Status include(std::span<const std::string> patterns);
  Status exclude(std::string_view pattern);
  Status add(std::string_view tensor_name);
  Status set_save_config(const SaveConfig& config);
  Status set_reduction_config(const ReductionConfig& config);
  Status set_save_histogram(bool on);
  std::vector<std::string> include_regex() const;
  std::vector<std::string> exclude_regex() const;
  std::vector<std::string> tensor_names() const;

 private:
  friend class Hook;
  Collection(capture::HookState* state, std::string name) : state_(state), name_(std::move(name)) {}
  capture::HookState* state_;
  std::string name_;
};

// The collections there are from the start, in creation order, and those of them that are always saved.
TORNASOLE_EXPORT std::vector<CollectionConfig> collections_of(Framework framework,
                                                              std::string_view framework_version = {});
TORNASOLE_EXPORT std::vector<std::string> saved_collections_of(Framework framework);
// What a collection of that name starts with when it is first asked for: mostly nothing.
TORNASOLE_EXPORT CollectionConfig new_collection(Framework framework, std::string_view name);
// What a configuration file says, without a hook: complete options, as Hook::options has them, and the collections it
// names, in its order. kInvalid names file, line, key and what is allowed.
struct ConfigFile {
  HookOptions options = {};
  std::vector<CollectionConfig> collections = {};
  std::vector<std::string> warnings = {};
};
TORNASOLE_EXPORT Result<ConfigFile> parse_config_file(std::string_view text, const std::string& file_name,
                                                      Framework framework = Framework::kCpp);
// Whether a schedule saves this step of its mode.
TORNASOLE_EXPORT bool should_save_step(const SaveConfigMode& config, std::int64_t mode_step,
                                       Framework framework = Framework::kCpp);
// Whether a pattern, in the syntax of Python's re, finds a match anywhere in the text. kInvalid for a bad pattern.
TORNASOLE_EXPORT Result<bool> finds_match(std::string_view pattern, std::string_view text);

// What capture did so far. due_steps = committed_steps + sum of dropped_steps, once the hook is closed.
struct CaptureReport {
  std::int64_t due_steps = 0;
  std::int64_t committed_steps = 0;
  std::map<std::string, std::int64_t> dropped_steps = {};   // cause -> steps
  std::map<std::string, std::int64_t> dropped_values = {};  // cause -> values left out of committed steps
  std::int64_t last_committed_step = -1;
  std::int64_t queue_peak_bytes = 0;
  std::int64_t wait_ms = 0;
  std::vector<std::string> errors = {};  // at most 20, each cause once
  // Of an object store, else empty: requests by kind (get, put, list, other), retries among them, bytes_read,
  // bytes_written; spooled: files that waited in spool_dir, waiting: those that still do.
  std::map<std::string, std::int64_t> requests = {};

  // Coverage: what the collections asked for and what they got.
  struct CollectionCoverage {
    std::string name;
    bool saved = false;             // in the saved set
    std::int64_t matched = 0;       // distinct names that belong to it
    std::int64_t saved_values = 0;  // values, reductions and shapes written through it
    std::vector<std::string> unmatched_patterns = {};
    std::vector<std::string> near_misses = {};  // names that nearly match those
  };
  std::vector<CollectionCoverage> collections = {};
  std::int64_t names_observed = 0;
  std::vector<std::string> unclaimed_names = {};  // at most 20: observed at a due step, in no saved collection

  // Bytes that were (or in a dry run would be) written.
  std::int64_t bytes_written = 0;
  std::int64_t largest_step_bytes = 0;
  std::map<std::string, std::int64_t> bytes_by_collection = {};
};

class TORNASOLE_EXPORT Hook {
 public:
  // Checks everything that can be checked before the first write. Writes nothing.
  static Result<Hook> open(HookOptions options);
  // From a JSON configuration: `path`, else TORNASOLE_CONFIG_FILE_PATH or SMDEBUG_CONFIG_FILE_PATH, else
  // /opt/ml/input/config/debughookconfig.json. `options` gives what a file cannot: framework, rank, log.
  static Result<Hook> open_file(const std::string& path = {}, HookOptions options = {});

  Hook(Hook&&) noexcept;
  Hook& operator=(Hook&&) noexcept;
  ~Hook();  // closes; during stack unwinding the run is recorded as failed

  // Starts the next step of the mode (of the current one, if none is given), ending the step that is open.
  StepScope begin_step(Mode mode) noexcept;
  StepScope begin_step() noexcept;
  // The same with a number chosen by the caller, as boosting rounds have one.
  StepScope begin_step(Mode mode, GlobalStep at) noexcept;
  // Ends the step that is open and changes the mode, without starting a step.
  void set_mode(Mode mode) noexcept;
  // Checks and compiles what the collections ask for. The first step does it otherwise, and can only report an error.
  Status prepare();

  // Kept until a step is saved, then stored in it as scalar/<name>, whatever the schedules say.
  void save_scalar(std::string_view name, double value, const ScalarOptions& options = {}) noexcept;
  // Saved in the open step if one of these collections is due; they are created and included if need be.
  template <Viewable T>
  void save_tensor(std::string_view name, const T& value,
                   std::initializer_list<std::string_view> collections = {"default"}) noexcept {
    save_tensor_view(name, ViewOf<T>::view(value), {collections.begin(), collections.size()});
  }
  template <Viewable T>
  void save_tensor(std::string_view name, const T& value, std::span<const std::string_view> collections) noexcept {
    save_tensor_view(name, ViewOf<T>::view(value), collections);
  }

  // The collection of that name, created empty if there is none.
  Collection collection(std::string_view name);
  std::vector<std::string> collection_names() const;
  // Makes the collection what `config` says, created if need be; from the next step on.
  Status set_collection(const CollectionConfig& config);
  // What a collection was told; once prepared, completed with the hook's settings. kNotFound if there is none.
  Result<CollectionConfig> collection_config(std::string_view name) const;
  // The names that belong to it: those given, and those its patterns have matched.
  std::vector<std::string> tensor_names(std::string_view collection) const;
  // Back to the built-in collections. kInvalid once steps have begun.
  Status reset_collections();
  // The collection is among those saved, from the next step on.
  void include_collection(std::string_view name);
  // These statistics are derived, too (HookOptions::derived). kInvalid for a name that is none, and once steps have
  // begun.
  Status derive(const std::vector<std::string>& statistics);
  // What collections have that are prepared from now on and say nothing themselves.
  Status set_save_config(const SaveConfig& config);
  Status set_reduction_config(const ReductionConfig& config);
  // For code that could skip work: whether a tensor would be saved in the open step through the collection or any
  // other that is due. False before the first step.
  bool should_save(std::string_view tensor, std::string_view collection) const noexcept;
  // The saved collections, and those of them that are due in the open step. Empty before the first step.
  std::vector<std::string> saved_collections() const;
  std::vector<std::string> due_collections() const;

  // The first gradient tape of TensorFlow is entered: its weights, gradients and losses are told by name, so those
  // collections get patterns for them.
  void enter_tape();
  // Writes the collections now, if they changed. The first step that is saved does it, and the end; who opens the trial
  // earlier waits for them.
  void export_collections() noexcept;
  void describe_model(const ModelDescription& model) noexcept;
  void set_facts(const StepFacts& facts) noexcept;

  // For TensorBoard, if it is written: the graph of the model, a serialized GraphDef; and a Summary that is serialized
  // already, shown at the current step. Each goes into the file of the next step that is saved.
  void save_graph(std::string_view graph_def) noexcept;
  void save_summary(std::string_view summary) noexcept;

  // Writes what the flight recorder holds, as steps of their own.
  void dump_flight_recorder() noexcept;
  // Tensors of the open step of which a statistic that is saved is NaN or infinite, in the order they came, at most 100
  // of them. Empty between steps. For a program that wants to look closer while what they came from is in memory.
  std::vector<std::string> non_finite_tensors() const;
  // Somebody asked the training to stop (stop_request.json), seen at a saved step.
  bool stop_requested() const noexcept;
  // Calls back from the writer thread after each step that is published, from now on; one listener, which is quick,
  // calls no member of the hook, and may be called until the writer ends, which may be after `close`.
  void on_publish(std::function<void()> listener);
  // Tells an adapter about steps, from the next one on. Kept until the hook is destroyed, so that whoever registers
  // something need not hold on to it. Called on the thread of the steps, or before them.
  void add_listener(std::shared_ptr<StepListener> listener);  // shared: callbacks that hang on a model use it, too
  // To the log of the hook, for what works beside it. A text repeated more than three times is left out.
  void log(LogLevel level, std::string_view message) const noexcept;

  Mode mode() const noexcept;
  std::int64_t step() const noexcept;                // global; -1 before the first
  std::int64_t mode_step(Mode mode) const noexcept;  // -1 before the first
  std::int64_t last_saved_step() const noexcept;     // -1 if none
  // The options in effect, whatever they came from: defaults filled in, include_collections with the framework's own.
  HookOptions options() const;
  // Which run with these checkpoints this is; 0 for the first.
  std::int64_t training_run() const noexcept;
  // The first failure of the run, if there was one.
  std::optional<Error> first_error() const;
  // Who this process is, if that was not known when the hook was opened. kInvalid once something was written.
  Status set_worker(std::int64_t rank, std::int64_t world_size);
  // In a forked child, where a hook does nothing: lets it go on, if its parent had written nothing yet, on a disk and
  // as the only worker. Of several processes that do so the first to write wins the directory; the others write
  // nothing. False: it still does nothing. Called before any other member, on the only thread of the child.
  bool go_on_in_child();
  const std::string& out_dir() const noexcept;
  const std::string& worker() const noexcept;
  CaptureReport report() const;

  // Ends the open step, waits up to close_wait_s for the queue, writes the end marker. Calls after it are ignored with
  // one warning. The first failure of the run, if any; training can ignore it.
  Status close() noexcept;
  // The same for a run that ended by an error: the open step is marked partial, the run recorded as failed.
  Status fail(std::string_view reason) noexcept;

 private:
  friend struct capture::HookAccess;
  explicit Hook(std::unique_ptr<capture::HookState> state);
  StepScope make_scope(std::optional<Mode> mode, std::optional<std::int64_t> at) noexcept;
  void save_tensor_view(std::string_view name, const TensorView& tensor,
                        std::span<const std::string_view> collections) noexcept;
  std::unique_ptr<capture::HookState> state_;
};

}  // namespace tornasole
