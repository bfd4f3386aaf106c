#pragma once

// TrialState: what a Trial holds. Wires the read half: store -> discover -> index -> steps, and the run's health beside
// it. Queries are in trial_query.cc and trial_values.cc, waiting in trial_waits.cc.

#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "config/environment.h"
#include "store/store.h"
#include "tornasole/trial.h"
#include "trial/bulk_reader.h"
#include "trial/discover.h"
#include "trial/index_columns.h"
#include "trial/lookup.h"
#include "trial/run_watch.h"
#include "trial/step_states.h"
#include "trial/tensor_parts.h"
#include "trial/trial_collections.h"
#include "trial/trial_models.h"

namespace tornasole::trial {

struct TrialDependencies {
  std::unique_ptr<store::Store> store = {};        // null: the directory of the options
  const Clock* clock = nullptr;                    // null: the system's
  std::function<void(double seconds)> sleep = {};  // null: really
  ProcessProbe probe = {};                         // null: this machine's processes
  unsigned threads = 0;                            // 0: as many as the machine has
};

// Options, checked and complete.
struct TrialSettings {
  std::string name = {};
  std::string path = {};
  StepRange range = {};
  OnDamage on_damage = OnDamage::kSkip;
  bool check = false;
  bool cache = false;
  std::optional<double> timeout_s = {};
  double poll_s = 2;
  std::function<bool(double seconds)> sleep = {};  // null: the sleep of the dependencies
  std::int64_t incomplete_step_window = 1000;
  double end_delay_s = 1;
  std::int64_t missing_file_retries = 100;
};
Result<TrialSettings> make_settings(const TrialOptions& options, const config::Environment& environment);
Status check_waiting(std::optional<double> timeout_s, double poll_s);

class TrialState {
 public:
  static Result<std::unique_ptr<TrialState>> open(TrialSettings settings, TrialDependencies dependencies);
  TrialState(const TrialState&) = delete;
  TrialState& operator=(const TrialState&) = delete;

  Status refresh();

  // trial_waits.cc
  Status wait_for_collections();
  Status wait_for_steps(std::span<const ModeStep> steps);
  Result<Tensor> wait_for_value(std::string_view name, ModeStep step, std::string_view worker);
  Status wait_for_file(std::string_view name, ModeStep step, std::string_view worker);
  Status set_waiting(std::optional<double> timeout_s, double poll_s);

  // trial_query.cc
  std::vector<std::string> workers() const;
  std::vector<std::string> workers_at(GlobalStep step) const;
  StepFacts step_facts(GlobalStep step, std::string_view worker) const;
  Result<std::vector<std::string>> tensor_names(const NameQuery& query) const;
  Result<std::uint32_t> find_tensor(std::string_view name) const;
  std::vector<ModeStep> tensor_steps(std::uint32_t tensor, Mode mode, StepFilter filter) const;
  // The worker whose data a question about this tensor, step and worker is about.
  Result<std::uint32_t> choose_worker(std::uint32_t tensor, ModeStep step, std::string_view worker) const;

  // trial_values.cc
  Result<Tensor> value(std::uint32_t tensor, ModeStep step, std::string_view worker) const;
  Result<Tensor> series_value(Series series, ModeStep step, const Place& place) const;
  Result<Shape> shape(std::uint32_t tensor, ModeStep step, std::string_view worker) const;
  Result<Tensor> reduction(std::uint32_t tensor, ModeStep step, Reduction reduction, std::string_view worker) const;
  Result<std::map<std::int64_t, Tensor>> values(std::uint32_t tensor, Mode mode, std::string_view worker,
                                                std::vector<std::pair<ModeStep, Error>>* missing) const;
  // trial_sweep.cc
  Status sweep(const SweepQuery& query, const std::function<bool(const SweptValue&)>& callback) const;
  Status read(std::span<const ValueQuery> queries,
              const std::function<bool(std::size_t place, Result<Tensor> value)>& callback) const;
  Status check_all_values();

  const TrialSettings& settings() const noexcept { return settings_; }
  const IndexColumns& columns() const noexcept { return columns_; }
  const Progress& progress() const noexcept { return progress_; }
  const RunWatch& watch() const noexcept { return watch_; }
  const Discoverer& discoverer() const noexcept { return discoverer_; }
  TrialCollections& collections() noexcept { return collections_; }
  const TrialCollections& collections() const noexcept { return collections_; }
  const TrialModels& models() const noexcept { return models_; }
  const std::vector<Damage>& damage() const noexcept { return damage_; }
  std::int64_t damage_count() const noexcept { return damage_count_; }
  std::int64_t last_step(Mode mode) const { return columns_.last_step(mode).value_or(-1); }

 private:
  TrialState(TrialSettings settings, TrialDependencies dependencies);

  void note_damage(Damage damage);
  // Notes it, or with kFail returns it as the error.
  Status meet_damage(Damage damage);
  Status load_collections();
  // With `is_final` nothing is retried later.
  Status load_index(bool is_final);
  Status load_models(bool is_final);
  Status sort_out_failures(const std::vector<IndexFile>& files, const std::vector<FailedFile>& failed, bool is_final);
  void update_progress(bool has_new_files);

  // trial_waits.cc
  Status pause(double seconds);
  bool is_out_of_patience() const noexcept;
  Result<bool> has_index_files() const;
  Status give_up_on_collections(bool is_over);
  Status wait_for_step(ModeStep step);

  // trial_query.cc
  Result<std::vector<bool>> names_to_search(const NameQuery& query) const;
  Error step_error(std::uint32_t tensor, ModeStep step) const;
  std::shared_ptr<const TensorParts> tensor_parts() const;

  // trial_values.cc
  // Of a value that could not be read. May look at the store.
  Error explain(const Error& error, Series series, ModeStep step, const Part& part) const;
  // The same, when it is known whether a missing file may still come.
  Error explain(const Error& error, Series series, ModeStep step, const Part& part, bool may_come) const;
  bool may_file_come(const Part& part) const;
  // Whether an event file with something of the tensor is missing and may still come.
  bool is_file_to_come(std::uint32_t tensor, ModeStep step, std::uint32_t worker) const;
  // A reduction that was asked for and not stored.
  Error not_stored_error(std::uint32_t tensor, ModeStep step, std::uint32_t worker, Reduction reduction) const;
  // The last missing file that was asked about: one question for all its values.
  struct MissingFile {
    std::uint32_t part = kNoPart;
    bool may_come = false;
  };
  Error explain_wanted(const Error& error, const WantedValue& wanted, ModeStep step, MissingFile* missing) const;
  std::vector<WantedValue> wanted_of_tensor(std::uint32_t tensor, Mode mode, std::string_view worker,
                                            std::vector<ModeStep>* steps,
                                            std::vector<std::pair<ModeStep, Error>>* missing) const;

  TrialSettings settings_;  // constant but for how to wait
  // constant
  const std::unique_ptr<store::Store> store_;
  const Clock& clock_;
  const std::function<void(double)> sleep_;
  const unsigned threads_;

  RunWatch watch_;
  Discoverer discoverer_;
  TrialCollections collections_;
  TrialModels models_;
  IndexColumns columns_;
  Progress progress_;
  std::vector<Damage> damage_;  // the first ones
  std::int64_t damage_count_ = 0;

  mutable std::mutex cache_mutex_;
  mutable std::map<const Location*, Tensor> cache_;  // guarded by cache_mutex_
  // Guarded by cache_mutex_; shared with the questions that are being answered.
  mutable std::shared_ptr<const TensorParts> tensor_parts_;
};

}  // namespace tornasole::trial
