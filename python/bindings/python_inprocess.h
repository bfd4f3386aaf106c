#pragma once

// Rules inside a training, as Python starts and stops them.

#include <nanobind/nanobind.h>

#include <string>
#include <utility>

#include "tornasole/hook.h"
#include "tornasole/inprocess_rules.h"

namespace tornasole::python {

class PythonInProcess {
 public:
  explicit PythonInProcess(InProcessRules rules) : rules_(std::move(rules)) {}
  PythonInProcess(PythonInProcess&&) noexcept = default;
  ~PythonInProcess() { stop(); }

  // Waits, without the interpreter lock: a callback may need it.
  void stop();
  // As RuleRunner.outcome of each.
  nanobind::list outcomes() const;

 private:
  InProcessRules rules_;
};

// `rules`: (rule, name, parameters) each; `on_met` is called with the rule's name and a violation, from the rules'
// thread; `profile`: reference or check. The hook outlives what is returned.
PythonInProcess start_rules(Hook* hook, const nanobind::list& rules, double poll_s, std::int64_t detail_steps,
                            nanobind::object on_met, const std::string& profile);

}  // namespace tornasole::python
