#pragma once

// Run: a hook together with what it is expected to leave behind.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "interop/expectations.h"
#include "interop/samples.h"
#include "tornasole/hook.h"

namespace interop {

[[noreturn]] void die(const std::string& what);

class Run {
 public:
  Run(const std::string& root, const std::string& directory, tornasole::HookOptions options);

  tornasole::Hook& hook() { return *hook_; }
  std::string path() const { return root_ + "/" + trial.directory; }
  void expect_step(std::int64_t global_step, const char* mode, std::int64_t mode_step) {
    trial.steps.push_back({global_step, mode, mode_step});
  }
  void expect(const std::string& name, std::int64_t step, const Sample& read, const std::string& worker = "worker_0");
  void expect_texts(const std::string& name, std::int64_t step, const std::vector<std::string>& texts);
  void expect_reductions(const std::string& name, std::int64_t step, const Sample& of, bool is_exact,
                         std::vector<std::string> operations);
  // A scalar is a float64 of shape [1].
  void expect_scalar(const std::string& name, std::int64_t step, double value) {
    expect(name, step, sample_of<double>({value}, {1}));
  }

  // A run in which anything was lost proves nothing.
  Trial finish(bool is_failed = false);

  Trial trial;

 private:
  std::string root_;
  std::optional<tornasole::Hook> hook_;
};

// Every tensor whole, at every step.
tornasole::HookOptions save_everything();
// The names of all twenty reductions, as they are stored.
std::vector<std::string> every_operation();
// All of them, and the shape.
tornasole::ReductionConfig everything_reduced();

}  // namespace interop
