#pragma once

// HookState: what a Hook is made of. Wires plan, reduce, the queue and the writer; format and store are the writer's.
//
//   begin_step   counts, asks the plan what is due; when nothing is, the step costs no more than that
//   save         name -> NameInfo -> SaveOrder -> reductions and a copy -> jobs
//   end_step     scalars, held values of when_nan, flight recorder -> jobs
//   close        what is left -> jobs; waits for the writer
//
// One mutex guards everything but the copying of large tensors, which many threads do at once.

#include <array>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <forward_list>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "base/clock.h"
#include "capture/checkpoint.h"
#include "capture/flight_recorder.h"
#include "capture/health.h"
#include "capture/job.h"
#include "capture/kept_tensors.h"
#include "capture/step_listeners.h"
#include "capture/tensor_roles.h"
#include "capture/writer.h"
#include "config/config.h"
#include "plan/collections.h"
#include "plan/plan.h"
#include "reduce/derived.h"
#include "reduce/reduce.h"
#include "store/store.h"
#include "tornasole/hook.h"

namespace tornasole::capture {

// Replaced in tests: the place to write to, and time.
struct HookDependencies {
  std::unique_ptr<store::Store> store = {};  // null: what the configuration says
  const Clock* clock = nullptr;              // null: the system's
};

ReductionConfig to_reduction_config(const ReductionSpec& spec);
SaveConfigMode to_save_config(const config::Schedule& schedule);

// An owned tensor as a view; `texts` holds what a view of strings refers to.
TensorView view_of(const Tensor& tensor, std::vector<std::string_view>* texts);

// By name; the configuration has checked them.
std::vector<reduce::Statistic> parse_statistics(const std::vector<std::string>& names);
// Whether one of them compares with an earlier step.
bool compare_with_previous(const std::vector<reduce::Statistic>& statistics);
// The name of a derived statistic, of which there are no statistics.
bool is_derived_name(std::string_view name) noexcept;

class HookState {
 public:
  static Result<std::unique_ptr<HookState>> open(config::Config config, LogHook log, HookDependencies dependencies);
  ~HookState();
  HookState(const HookState&) = delete;
  HookState& operator=(const HookState&) = delete;

  struct Begun {
    StepId id = {};
    bool is_due = false;
    std::uint64_t due_set = 0;  // see StepScope::due_set
  };
  Begun begin_step(std::optional<Mode> mode, std::optional<std::int64_t> at) noexcept;
  // See StepScope::make_due; a serial of 0 if the step is open no more.
  Begun make_due(std::uint64_t serial, std::span<const std::string_view> collections) noexcept;
  // See tornasole::repeat_step; a serial of 0 if nothing was done. Of listeners it knows nothing.
  Begun repeat_step(std::uint64_t serial, const StepFacts& facts) noexcept;
  // See tornasole::idle_steps; of listeners it knows nothing.
  std::int64_t idle_steps() noexcept;
  void end_step(std::uint64_t serial, bool is_partial) noexcept;
  void set_mode(Mode mode) noexcept;
  Status prepare();

  void save(std::uint64_t serial, std::string_view name, const TensorView& tensor) noexcept;
  void save_numbered(std::uint64_t serial, std::string_view module, bool is_input, const TensorView& tensor) noexcept;
  void save(std::uint64_t serial, TensorName& name, const TensorView& tensor) noexcept;
  void save_numbered(std::uint64_t serial, ModuleName& module, bool is_input, const TensorView& tensor) noexcept;
  // See tornasole::skip_input.
  bool skip_numbered(ModuleName& module, bool is_input) noexcept;
  bool wants(std::uint64_t serial, std::string_view name) noexcept;
  void save_scalar(std::string_view name, double value, const ScalarOptions& options) noexcept;
  void save_tensor(std::string_view name, const TensorView& tensor,
                   std::span<const std::string_view> collections) noexcept;

  // Runs `change` on the collection (created if need be) and has the plan made anew at the next step.
  Status change_collection(std::string_view name, const std::function<Status(plan::Collection&)>& change);
  plan::Collection collection(std::string_view name);
  // hook_collections.cc
  Status set_collection(const CollectionConfig& config);
  Result<CollectionConfig> collection_config(std::string_view name);
  Status reset_collections();
  void enter_tape();
  void include_collection(std::string_view name);
  Status derive(const std::vector<std::string>& statistics);
  Status set_save_config(const SaveConfig& config);
  Status set_reduction_config(const ReductionConfig& config);
  std::vector<std::string> saved_collections(bool only_due);
  bool should_save(std::string_view tensor, std::string_view collection);
  std::vector<std::string> collection_names();

  void describe_model(const ModelDescription& model) noexcept;
  void export_collections() noexcept;
  void set_facts(const StepFacts& facts) noexcept;
  void save_ready(std::string_view bytes, bool is_graph) noexcept;
  void dump_flight_recorder() noexcept;
  std::vector<std::string> non_finite_tensors();
  void log(LogLevel level, std::string_view message) noexcept { health_->log(level, message); }
  void on_publish(std::function<void()> listener) { health_->on_commit(std::move(listener)); }
  StepListeners& listeners() noexcept { return listeners_; }
  bool stop_requested() const noexcept { return writer_ && writer_->is_stop_requested(); }

  struct Ending {
    bool is_failed = false;
    bool is_open_step_partial = false;
    bool is_superseded = false;
    std::string reason = {};
    double wait_s = 0;
  };
  Status close(const Ending& ending) noexcept;
  // From the signal thread: publishes what is finished, the open step as partial. Bounded.
  void flush_for_signal(int signal_number, double seconds) noexcept;
  // In a forked child: every later call does nothing.
  void become_inert() noexcept;
  // See Hook::go_on_in_child.
  bool go_on_in_child();
  bool is_inert() const noexcept { return is_inert_.load(std::memory_order_relaxed); }

  Mode mode() noexcept;
  std::int64_t step() noexcept;
  std::int64_t mode_step(Mode mode) noexcept;
  std::int64_t last_saved_step() noexcept;
  const config::Config& config() const noexcept { return config_; }
  CaptureReport report();
  // hook_options.cc
  HookOptions options();
  std::int64_t training_run() noexcept;
  std::optional<Error> first_error() const { return health_->first_error(); }
  Status set_worker(std::int64_t rank, std::int64_t world_size);
  int exceptions_at_open() const noexcept { return exceptions_at_open_; }

 private:
  struct NameHash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const noexcept { return std::hash<std::string_view>{}(name); }
  };
  // The numbers that an order wants of a tensor, and what they are called.
  struct Numbers {
    std::vector<Reduction> reductions = {};
    std::vector<const std::string*> names = {};  // by position in `reductions`
  };
  // What is known of a name.
  struct NameInfo {
    plan::NameId id = {};
    const std::string* name = nullptr;
    bool is_bad = false;
    bool is_seen_due = false;       // offered at a step at which something was due
    std::uint64_t unwanted_in = 0;  // a due_set in which nobody wants it
    std::vector<std::pair<Reduction, const std::string*>> reduction_names = {};
    std::forward_list<Numbers> numbers = {};  // one for each order so far; they stay where they are
    std::vector<std::pair<std::string, const std::string*>> histogram_tags = {};  // by collection
    const std::string* scalar_tag = nullptr;
    std::vector<NameInfo*> derived = {};  // by position in statistics_; null until it is first wanted
  };
  // The inputs or outputs of a module: <stem>0, <stem>1, ... in the order in which they come in a step.
  struct Numbered {
    std::string stem = {};
    std::vector<NameInfo*> infos = {};
    std::uint64_t serial = 0;  // of the step that was counted last
    std::size_t next = 0;
  };
  // One statistic of a tensor, and the name it is saved under.
  struct Derived {
    reduce::Statistic statistic = {};
    NameInfo* info = nullptr;
  };
  // The classes of labels and predictions that belong together, as far as they have come.
  struct ClassSides {
    std::optional<Tensor> labels = {};
    std::optional<Tensor> predictions = {};
  };
  // The part of a SaveOrder that is needed after the lock is given up.
  struct Work {
    std::uint64_t serial = 0;
    const std::string* name = nullptr;
    bool save_raw = false;
    bool save_shape = false;
    bool is_metric = false;
    const Numbers* numbers = nullptr;  // null: none
    SummaryOrder summary = {};
    double wall_time = 0;
    bool is_empty() const noexcept {
      return !save_raw && !save_shape && numbers == nullptr && summary.histogram_tag == nullptr;
    }
  };
  struct Held {
    NameInfo* info = nullptr;
    Tensor tensor = {};
    double wall_time = 0;
    bool is_trigger = false;  // watched, and not finite
  };
  struct PendingScalar {
    const std::string* name = nullptr;
    const std::string* tag = nullptr;
    double value = 0;
    double timestamp = 0;
    Mode mode = Mode::kGlobal;
    bool is_metric = false;
  };
  struct PendingTensor {
    std::string name = {};
    Tensor tensor = {};
  };
  struct OpenStep {
    StepId id = {};
    bool is_open = false;
    bool is_started = false;      // its first job was pushed
    bool is_lost = false;         // dropped and counted; takes nothing more
    bool is_handed_over = false;  // its last job was pushed: the writer counts it
    plan::CollectionBits due = {};
    plan::CollectionBits watching = {};
    plan::CollectionBits triggered = {};
    bool has_due = false;
    bool has_watch = false;
    bool is_recording = false;
    plan::CollectionBits due_next = {};  // at the next step of the mode
    std::uint64_t due_set = 0;
    bool has_keep = false;        // something may have to be kept for that step
    std::int64_t same_until = 0;  // up to this step of the mode the same collections are due
    std::map<std::pair<std::string, std::string>, ClassSides> classes = {};  // by names of labels and predictions
    std::int64_t bytes = 0;
    std::int64_t waited_ns = 0;
    StepFacts facts = {};
    std::vector<Held> held = {};
    std::size_t held_bytes = 0;
    std::vector<const std::string*> non_finite = {};  // names of tensors with such a statistic
    std::vector<format::MetricRecord> metrics = {};
  };

  HookState(config::Config config, std::shared_ptr<Health> health, plan::Collections collections, const Clock* clock);

  // hook_steps.cc; all with mutex_ held
  Status prepare_locked();
  void end_step_locked(std::unique_lock<std::mutex>& lock, bool is_partial);
  void hand_over_locked(bool is_partial);
  bool is_repeatable_locked(std::uint64_t serial) const;
  bool start_step_locked();
  void count_step_locked(Mode mode, std::optional<std::int64_t> at);
  void open_step_locked(Mode mode, bool is_jump);
  void precompute_locked();
  std::uint64_t find_due_set_locked();
  void flush_scalars_locked();
  void flush_late_scalars_locked(std::unique_lock<std::mutex>& lock);
  void write_held_locked(std::unique_lock<std::mutex>& lock);
  void write_recorded_locked();
  void report_coverage_locked(bool is_final);
  std::shared_ptr<const format::CollectionsFile> export_collections_locked();
  bool needs_export_locked() const;

  // hook_save.cc
  class WithoutLock;
  bool is_wanted_locked(const NameInfo& info);
  void lose_unsaved_locked(std::uint64_t serial, const Error& why);
  template <typename Find>
  void save_found(std::uint64_t serial, std::string_view name, const TensorView& tensor, const Find& find) noexcept;
  Numbered* numbered_locked(std::string_view module, bool is_input);
  NameInfo* next_locked(Numbered& numbered);
  void save_locked(std::unique_lock<std::mutex>& lock, NameInfo& info, const TensorView& tensor);
  void save_due(std::unique_lock<std::mutex>& lock, NameInfo& info, const TensorView& tensor);
  NameInfo* name_info_locked(std::string_view name);
  const std::string* keep_name_locked(std::string name);
  Work make_work_locked(NameInfo& info, const plan::CollectionBits& due, const TensorView& tensor);
  void watch_locked(NameInfo& info, const TensorView& tensor);
  void record_locked(NameInfo& info, const TensorView& tensor);
  const std::string* reduction_name_locked(NameInfo& info, Reduction reduction);
  const Numbers* numbers_locked(NameInfo& info, const std::vector<Reduction>& reductions);
  SummaryOrder summary_locked(NameInfo& info, const plan::SaveOrder& order, const TensorView& tensor);

  // hook_queue.cc
  void write_work(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor);
  void write_numbers(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor);
  void note_non_finite_locked(const Work& work, const reduce::Reduced& reduced);
  void push_numbers_locked(const Work& work, const reduce::Reduced& reduced);
  std::byte* take_small_locked(std::uint64_t serial, const std::string& name, std::size_t bytes,
                               const SummaryOrder& summary);
  void write_raw(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor);
  void push_small_locked(std::uint64_t serial, const std::string* name, const TensorView& tensor, double wall_time,
                         SummaryOrder summary = {});
  void push_copy(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor);
  void push_stream(std::unique_lock<std::mutex>& lock, const Work& work, const TensorView& tensor);
  void push_texts_locked(const Work& work, const TensorView& tensor);
  void push_shape_locked(std::uint64_t serial, const std::string* name, const Shape& shape);
  bool spend_locked(std::uint64_t serial, const std::string& name, DType dtype, const Shape& shape,
                    std::uint64_t bytes);
  void lose_step_locked(std::uint64_t serial, std::string_view cause, const Error& why);
  void lose_value_locked(const Work& work, const TensorView& tensor, std::string_view cause, std::string_view what);
  void finish_chunk_locked();
  void note_wait_locked(std::uint64_t serial, std::int64_t waited_ns);
  Error queue_full_error(const std::string& name, std::uint64_t bytes) const;
  // No room for the elements: that costs the step, unless they were for TensorBoard alone.
  void lose_unqueued_locked(std::uint64_t serial, const SummaryOrder& summary, const std::string& name,
                            std::uint64_t bytes);
  JobQueue::WaitLimits wait_limits_locked(std::uint64_t serial) const;

  // hook_derived.cc
  bool keeps_before(Mode mode, std::int64_t next_due, std::int64_t mode_step) const noexcept;
  void find_derived_collection_locked();
  plan::CollectionBits with_derived_locked(plan::CollectionBits due) const;
  bool is_derived_source_locked(const NameInfo& info, const plan::CollectionBits& due);
  bool applies_locked(const NameInfo& info, reduce::Statistic statistic);
  NameInfo& derived_info_locked(NameInfo& info, std::size_t statistic);
  std::vector<Derived> wanted_statistics_locked(NameInfo& info, const plan::CollectionBits& due);
  bool is_kept_locked(NameInfo& info, const std::vector<Derived>& wanted, const TensorView& tensor);
  void derive(std::unique_lock<std::mutex>& lock, NameInfo& info, const TensorView& tensor,
              const plan::CollectionBits& due, double wall_time);
  static Result<Tensor> compute(reduce::Statistic statistic, const TensorView& tensor,
                                const std::optional<reduce::ValueRange>& bounds);
  void write_derived(std::unique_lock<std::mutex>& lock, const std::string& source, const Derived& derived,
                     Result<Tensor> value, const plan::CollectionBits& due, double wall_time);
  Result<Tensor> read_classes(const TensorView& tensor, bool is_prediction) const;
  void pair_classes(std::unique_lock<std::mutex>& lock, NameInfo& info, Result<Tensor> classes,
                    const plan::CollectionBits& due, double wall_time);

  void count_unfinished(bool is_finished, double wait_s) noexcept;
  bool takes_calls(const char* call) noexcept;
  template <typename Call>
  void guarded(const char* call, Call&& run) noexcept;

  RunIdentity make_identity() const;

  // Constant once steps have begun; what can change until then, and the schedules and the form that collections are
  // prepared with, are guarded by mutex_.
  config::Config config_;
  // constant
  const std::shared_ptr<Health> health_;  // shared with the writer, which may outlive the hook
  const Clock* const clock_;
  const int exceptions_at_open_;
  const std::int64_t start_ns_;
  bool is_writer_ = true;  // this worker writes at all

  StepListeners listeners_;  // thread of the steps only

  std::atomic<bool> is_inert_ = false;
  // In a forked child: nothing was written before the fork, so that it could go on; and it does.
  bool is_untouched_ = false;
  std::atomic<bool> is_inherited_ = false;
  std::atomic<bool> is_closed_ = false;
  std::atomic<bool> is_late_call_reported_ = false;
  std::shared_ptr<Writer> writer_;             // null in a dry run; shared with its thread, see writer.h
  std::shared_ptr<Writer> retired_;            // the one before set_worker: it wrote nothing, but names were kept in it
  std::unique_ptr<store::Store> spare_store_;  // of a worker that does not write, should it turn out that it does
  bool is_resumed_ = false;                    // a checkpoint state was found

  std::mutex mutex_;
  // everything below is guarded by mutex_
  std::vector<reduce::Statistic> statistics_;  // constant once steps have begun
  bool keeps_previous_ = false;                // one of them compares with an earlier step
  std::condition_variable copies_done_;
  int in_flight_ = 0;  // threads that copy or reduce a value without the lock
  plan::Collections collections_;
  std::optional<plan::Plan> plan_;
  std::uint64_t plan_version_ = 0;
  bool has_old_ids_ = false;  // names know their ids in a plan that was lost
  bool has_bad_plan_ = false;
  plan::CollectionBits all_bits_;
  std::array<std::int64_t, 4> next_due_{};  // by mode_index: nothing is due before this mode step
  std::unordered_map<std::string, NameInfo, NameHash, std::equal_to<>> infos_;     // by the name as it was given
  std::unordered_map<std::string, Numbered, NameHash, std::equal_to<>> numbered_;  // by stem
  struct ScalarName {
    const std::string* name = nullptr;
    const std::string* tag = nullptr;  // null without TensorBoard
  };
  std::unordered_map<std::string, ScalarName, NameHash, std::equal_to<>> scalar_names_;
  std::set<const std::string*> warned_names_;  // told once that not everything of them could be saved
  std::deque<std::string> own_names_;          // in a dry run there is no writer to keep them

  Mode mode_ = Mode::kGlobal;
  std::int64_t global_step_ = -1;
  std::array<std::int64_t, 4> mode_steps_ = {-1, -1, -1, -1};
  std::uint64_t serial_ = 0;
  std::map<plan::CollectionBits, std::uint64_t> due_sets_;  // under this plan
  plan::CollectionBits due_set_key_;                        // its memory is used again
  std::uint64_t last_due_set_ = 0;
  std::uint64_t stream_ = 0;
  std::int64_t last_saved_ = -1;
  OpenStep step_;
  Buffer chunk_;
  std::size_t chunk_used_ = 0;
  std::vector<PendingScalar> scalars_;
  std::vector<PendingTensor> tensors_;
  FlightRecorder recorder_;
  TensorRoles roles_;
  KeptTensors kept_;
  std::optional<std::size_t> derived_position_;  // of the collection in plan_->saved()
  std::array<bool, 4> derived_follows_{};        // by mode_index: it has no schedule of its own
  bool is_dump_wanted_ = false;
  std::string model_text_;
  std::optional<CheckpointWatch> checkpoints_;

  std::uint64_t exported_version_ = 0;
  std::size_t exported_names_ = 0;
  bool is_exported_ = false;
  bool is_coverage_reported_ = false;
  std::int64_t run_bytes_ = 0;
  std::int64_t total_wait_ns_ = 0;
  std::map<std::string, std::int64_t> bytes_by_collection_;
  std::map<std::string, std::int64_t> values_by_collection_;
  struct Saved {  // in these maps; null until the first value
    std::int64_t* bytes = nullptr;
    std::int64_t* values = nullptr;
  };
  std::vector<Saved> saved_by_position_;  // of the collection in plan_->saved()
  std::vector<std::string> unclaimed_;
};

}  // namespace tornasole::capture
