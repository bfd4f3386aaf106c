#pragma once

// Rules of Python, as the engine's pass asks them: an object with `look_at(step, findings)` and what it needs.

#include <nanobind/nanobind.h>

#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "bindings/signal_watch.h"
#include "tornasole/rule.h"

namespace tornasole::python {

// What of a step a rule of Python gets; what it keeps stays as it is.
struct PythonStepTensor {
  nanobind::object name, worker;  // str
  StepTensor tensor;              // its texts are those of the objects above
};

class PythonRule final : public Rule {
 public:
  // `rule` is borrowed if it is a proxy. `watch` outlives this.
  PythonRule(nanobind::object rule, std::vector<Need> needs, SignalWatch* watch)
      : rule_(std::move(rule)), needs_(std::move(needs)), watch_(*watch) {}

  std::vector<Need> needs() const override { return needs_; }
  // Takes the interpreter lock. What the rule raises ends the rule; what is no Exception (KeyboardInterrupt) the pass.
  void look_at(const StepView& step, Findings& findings) override;
  void reset() override {}

  // What the rule raised, or None.
  nanobind::object error() const { return error_.is_valid() ? error_ : nanobind::none(); }

 private:
  nanobind::object rule_;
  std::vector<Need> needs_;
  SignalWatch& watch_;
  nanobind::object error_;
};

// A dict with the fields of Need by name. `watch` outlives the need.
Need need_of(nanobind::handle fields, SignalWatch* watch);

void bind_step_view(nanobind::module_& module);

}  // namespace tornasole::python
