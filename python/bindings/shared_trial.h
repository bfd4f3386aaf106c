#pragma once

// SharedTrial: a trial that threads of Python ask at once, and how they share it.

#include <nanobind/nanobind.h>

#include <memory>
#include <mutex>
#include <optional>
#include <shared_mutex>
#include <utility>

#include "bindings/exclusive_use.h"
#include "bindings/python_errors.h"
#include "tornasole/trial.h"

namespace tornasole::python {

class SharedTrial {
 public:
  SharedTrial(TrialOptions options, nanobind::object tick)
      : use_(std::make_unique<ExclusiveUse>(std::move(tick))), options_(std::move(options)) {
    options_.sleep = [use = use_.get()](double seconds) { return use->sleep(seconds); };
    std::optional<Result<Trial>> opened;
    {
      const nanobind::gil_scoped_release unlocked;
      opened = Trial::open(options_);
    }
    ExclusiveUse::rethrow();
    trial_ = value_of(std::move(*opened));
    use_->forget_tick();
    use_->share();
  }

  // Questions, any number at once.
  template <typename Ask>
  auto ask(const Ask& ask) const {
    const nanobind::gil_scoped_release unlocked;
    const std::shared_lock lock(use_->mutex());
    return ask(*trial_);
  }
  // What needs the trial for itself.
  template <typename Change>
  auto change(const Change& change) {
    std::optional<decltype(change(*trial_))> result;
    {
      const nanobind::gil_scoped_release unlocked;
      const std::lock_guard lock(use_->mutex());
      result = change(*trial_);
    }
    ExclusiveUse::rethrow();
    return std::move(*result);
  }

  // The same run once more, for somebody who needs a trial for himself: the same steps and collections, and as he
  // waits.
  Result<Trial> open_again(std::function<bool(double seconds)> sleep) const {
    TrialOptions options = options_;
    options.sleep = std::move(sleep);
    options.check = false;
    const nanobind::gil_scoped_release unlocked;
    Result<Trial> trial = Trial::open(options);
    if (!trial) return trial;
    const std::shared_lock lock(use_->mutex());
    for (const auto& [name, collection] : trial_->collections()) trial->collection(name) = collection;
    return trial;
  }

 private:
  std::unique_ptr<ExclusiveUse> use_;  // outlives the trial, whose sleep uses it
  TrialOptions options_;
  std::optional<Trial> trial_;
};

}  // namespace tornasole::python
