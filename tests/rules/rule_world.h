#pragma once

// RuleWorld: a run made by hand in memory, and rules run over it. The clock only moves when somebody sleeps.

#include <gtest/gtest.h>

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/memory/memory_store.h"
#include "tools/made_trial.h"
#include "tornasole/rule.h"
#include "trial/trial_world.h"

namespace tornasole::rules {

using trial::ManualClock;
using Values = std::vector<std::pair<std::string, Tensor>>;
using Collections = std::map<std::string, std::vector<std::string>>;  // name -> patterns

// A float32 tensor of one dimension, or of the shape given.
inline Tensor floats(std::vector<float> values) { return tools::tensor_of(std::move(values)); }
inline Tensor floats(std::vector<float> values, Shape shape) { return tools::tensor_of(std::move(values), shape); }
inline Tensor scalar(float value) { return floats({value}); }
inline Tensor filled(float value, Shape shape) {
  return floats(std::vector<float>(static_cast<std::size_t>(shape.element_count()), value), shape);
}
// The name of a stored reduction: "abs_mean" of a tensor.
inline std::string reduced(const std::string& reduction, const std::string& tensor) {
  return "smdebug/reductions/" + reduction + "/" + tensor;
}

class RuleWorld {
 public:
  explicit RuleWorld(Collections collections = {}, std::vector<std::string> workers = {"worker_0"})
      : store_(clock_), made_(store_) {
    format::CollectionsFile file{.num_workers = static_cast<std::int64_t>(workers.size())};
    file.collections.push_back({.name = "all", .include_regex = {".*"}});
    // The collections a hook makes, unless the test says otherwise.
    Collections all = {{"losses", {"loss"}},
                       {"gradients", {"^gradient"}},
                       {"weights", {"^(?!gradient).*weight$"}},
                       {"biases", {"^(?!gradient).*bias$"}}};
    for (auto& [name, patterns] : collections) all[name] = std::move(patterns);
    for (const auto& [name, patterns] : all) {
      file.collections.push_back({.name = name,
                                  .include_regex = patterns,
                                  .exclude_regex = {"^(optimizer_gradient|optimizer_state|derived)/"}});
    }
    for (const std::string& worker : workers) {
      made_.write(format::collections_path(worker), format::encode_collections(file));
    }
  }

  // A training step with the number of the global one, unless `at` says otherwise.
  void save(std::int64_t step, Values values, std::optional<ModeStep> at = {}, const std::string& worker = "worker_0") {
    const ModeStep own = at.value_or(ModeStep{Mode::kTrain, step});
    tools::MadeStep made{.step = step, .mode = own.mode, .mode_step = own.number, .worker = worker};
    for (auto& [name, tensor] : values) made.values.push_back({name, std::move(tensor)});
    made_.step(made);
  }
  // Training steps first, first + stride ... with one scalar each.
  void save_series(const std::string& name, const std::vector<float>& values, std::int64_t first = 0,
                   std::int64_t stride = 1, Mode mode = Mode::kTrain) {
    for (std::size_t i = 0; i < values.size(); ++i) {
      const std::int64_t step = first + static_cast<std::int64_t>(i) * stride;
      save(step, {{name, scalar(values[i])}}, ModeStep{mode, step});
    }
  }
  void end() { made_.end(); }
  tools::MadeTrial& made() { return made_; }
  ManualClock& clock() { return clock_; }

  Trial open(TrialOptions options = {.timeout_s = 0}) {
    if (options.path.empty()) options.path = "/runs/made";
    auto trial = trial::open_trial(options, config::Environment(std::map<std::string, std::string>()),
                                   {.store = store_.share(),
                                    .clock = &clock_,
                                    .sleep = [this](double seconds) { clock_.advance(seconds); },
                                    .probe = [](const ProcessIdentity&) { return std::optional<bool>(); }});
    EXPECT_TRUE(trial.ok()) << (trial.ok() ? "" : trial.error().message);
    return std::move(*trial);
  }

  RuleOutcome run(const std::string& rule, const std::map<std::string, std::string>& parameters = {},
                  RuleRunOptions options = {}, std::vector<const Trial*> others = {}) {
    Trial trial = open();
    auto made = make_rule(rule, parameters, {.base = &trial, .others = std::move(others)});
    EXPECT_TRUE(made.ok()) << (made.ok() ? "" : made.error().message);
    if (!made.ok()) return {};
    if (!options.now_s) options.now_s = [this] { return clock_.now_s(); };
    if (!options.sleep) options.sleep = [this](double seconds) { clock_.advance(seconds); };
    RuleRunner runner(&trial, std::move(options));
    runner.add(std::move(*made));
    const Status done = runner.run();
    EXPECT_TRUE(done.ok()) << (done.ok() ? "" : done.error().message);
    return runner.outcome(0);
  }
  // The global steps at which the rule's condition was met.
  std::vector<std::int64_t> met(const std::string& rule, const std::map<std::string, std::string>& parameters = {},
                                RuleRunOptions options = {}) {
    return run(rule, parameters, std::move(options)).steps_met;
  }

 private:
  ManualClock clock_;
  store::MemoryStore store_;
  tools::MadeTrial made_;
};

using Steps = std::vector<std::int64_t>;

}  // namespace tornasole::rules
