#include <nanobind/nanobind.h>
#include <nanobind/stl/map.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "bindings/bindings.h"
#include "bindings/dict_of.h"
#include "bindings/python_errors.h"
#include "bindings/python_rule.h"
#include "bindings/rule_dicts.h"
#include "bindings/shared_trial.h"
#include "bindings/signal_watch.h"
#include "tornasole/rule.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

const char* type_name(ParameterType type) {
  switch (type) {
    case ParameterType::kText: return "text";
    case ParameterType::kList: return "list";
    case ParameterType::kNumber: return "number";
    case ParameterType::kNumbers: return "numbers";
    case ParameterType::kInteger: return "integer";
    case ParameterType::kFlag: return "flag";
  }
  return "text";
}

nb::dict type_dict(const RuleType& type) {
  nb::list parameters;
  for (const Parameter& parameter : type.parameters) {
    parameters.append(dict_of("name", text(parameter.name), "type", type_name(parameter.type), "default",
                              text(parameter.default_text), "help", text(parameter.help)));
  }
  return dict_of("name", text(type.name), "group", text(type.group), "summary", text(type.summary), "parameters",
                 parameters);
}

const RuleType& rule_named(const std::string& name) {
  const Result<const RuleType*> found = find_rule(name);
  if (found) return **found;
  Error error = found.error();
  error.kind = ErrorKind::kValue;  // a name that is wrong, not a file that is missing
  raise(error);
}

nb::dict need_dict(const Need& need) {
  nb::list stats;
  for (std::size_t i = 0; i < kStatCount; ++i) {
    if (need.stats.has(static_cast<Stat>(i))) stats.append(text(stat_name(static_cast<Stat>(i))));
  }
  return dict_of("collections", need.collections, "regex", need.regex, "names", need.names, "or_everything",
                 need.or_everything, "exclude_regex", need.exclude_regex, "stats", stats, "value", need.value,
                 "reductions_without_value", need.reductions_without_value, "derived", need.derived);
}

// Makes the rule and drops it: what is wrong with its parameters is known before it runs.
nb::list rule_needs(const std::string& name, const std::map<std::string, std::string>& parameters, SharedTrial* base,
                    const std::vector<const SharedTrial*>& others) {
  RuleContext context;
  for (const SharedTrial* other : others) {
    context.others.push_back(other->ask([](const Trial& trial) { return &trial; }));
  }
  const auto make = [&](Trial* trial) {
    context.base = trial;
    return make_rule(name, parameters, context);
  };
  const NamedRule made =
      value_of(base == nullptr ? make(nullptr) : base->change([&](Trial& trial) { return make(&trial); }));
  nb::list needs;
  for (const Need& need : made.rule->needs()) needs.append(need_dict(need));
  return needs;
}

// A runner over a trial of its own, so that rules may ask the trial of Python whatever they like meanwhile.
class PythonRunner {
 public:
  PythonRunner(const SharedTrial& trial, const nb::dict& options, nb::object on_met)
      : on_met_(std::move(on_met)), trial_(open(trial)), runner_(&trial_, options_of(options)) {}

  void add(const std::string& rule, const std::string& name, const std::map<std::string, std::string>& parameters,
           const std::vector<const SharedTrial*>& others) {
    RuleContext context{.base = &trial_};
    for (const SharedTrial* other : others) context.others.push_back(&others_.emplace_back(open(*other)));
    NamedRule made = value_of(make_rule(rule, parameters, context));
    made.name = name;
    runner_.add(std::move(made));
    python_rules_.push_back(nullptr);
  }
  void add_python(nb::object rule, const std::string& name, const std::string& parameters, const nb::list& needs) {
    std::vector<Need> own;
    for (const nb::handle need : needs) own.push_back(need_of(need, &watch_));
    auto made = std::make_unique<PythonRule>(std::move(rule), std::move(own), &watch_);
    python_rules_.push_back(made.get());
    runner_.add({.name = name, .parameters = parameters, .rule = std::move(made)});
  }

  void run() {
    work([&] { return runner_.run(); });
  }
  bool run_step(std::int64_t step) {
    bool is_done = false;
    work([&]() -> Status {
      if (trial_.has_passed_step({Mode::kGlobal, step}) == StepState::kNotYetAvailable) {
        if (Status refreshed = trial_.refresh(); !refreshed) return refreshed;
      }
      const Result<bool> looked = runner_.run_step({step});
      if (!looked) return looked.error();
      is_done = *looked;
      return {};
    });
    return is_done;
  }

  nb::dict outcome(std::size_t place) const {
    nb::dict dict = outcome_dict(runner_.outcome(place));
    dict["raised"] = python_rules_[place] == nullptr ? nb::none() : python_rules_[place]->error();
    dict["ended_because"] = runner_.ended_because();
    dict["action"] = runner_.rule(place).action();
    dict["files"] = file_dict(runner_.rule(place));
    return dict;
  }

 private:
  static nb::dict file_dict(const Rule& rule) {
    nb::dict files;
    for (const auto& [name, content] : rule.files()) files[text(name)] = nb::bytes(content.data(), content.size());
    return files;
  }

  Trial open(const SharedTrial& trial) {
    auto opened = trial.open_again([this](double seconds) { return watch_.sleep(seconds); });
    watch_.rethrow();
    return value_of(std::move(opened));
  }

  RuleRunOptions options_of(const nb::dict& given) {
    RuleRunOptions options{.first_step = nb::cast<std::optional<std::int64_t>>(given["first_step"]),
                           .end_step = nb::cast<std::optional<std::int64_t>>(given["end_step"]),
                           .workers = nb::cast<std::vector<std::string>>(given["workers"]),
                           .first_worker_only = nb::cast<bool>(given["first_worker_only"]),
                           .stop_when_met = nb::cast<bool>(given["stop_when_met"]),
                           .follow = nb::cast<bool>(given["follow"]),
                           .poll_s = nb::cast<double>(given["poll_s"]),
                           .timeout_s = nb::cast<std::optional<double>>(given["timeout_s"])};
    options.sleep = [this](double seconds) { watch_.sleep(seconds); };
    options.on_step = [this](GlobalStep) { return watch_.goes_on(); };
    options.on_pause = [this] { return watch_.goes_on(); };
    if (!on_met_.is_none()) {
      options.on_met = [this](const RuleOutcome& rule, const Violation& newest) { note_met(rule, newest); };
    }
    return options;
  }

  void note_met(const RuleOutcome& rule, const Violation& newest) {
    const nb::gil_scoped_acquire locked;
    std::size_t place = 0;
    while (&runner_.outcome(place) != &rule) ++place;
    try {
      on_met_(place, violation_dict(newest));
    } catch (nb::python_error&) {
      watch_.keep(std::current_exception());
    }
  }

  template <typename Work>
  void work(const Work& work) {
    Status done;
    {
      const nb::gil_scoped_release unlocked;
      done = work();
    }
    watch_.rethrow();
    check(done);
  }

  SignalWatch watch_;
  nb::object on_met_;
  Trial trial_;
  std::deque<Trial> others_;  // stay where they are
  RuleRunner runner_;
  std::vector<const PythonRule*> python_rules_;  // by place; null: built in
};

}  // namespace

void bind_rule(nb::module_& module) {
  bind_step_view(module);
  nb::class_<PythonRunner>(module, "RuleRunner")
      .def(nb::init<const SharedTrial&, const nb::dict&, nb::object>(), nb::arg("trial"), nb::arg("options"),
           nb::arg("on_met").none())
      .def("add", &PythonRunner::add)
      .def("add_python", &PythonRunner::add_python)
      .def("run", &PythonRunner::run)
      .def("run_step", &PythonRunner::run_step)
      .def("outcome", &PythonRunner::outcome);
  module.def("builtin_rules", [] {
    nb::list types;
    for (const RuleType& type : builtin_rules()) types.append(type_dict(type));
    return types;
  });
  module.def("rule_needs", &rule_needs, nb::arg("name"), nb::arg("parameters"), nb::arg("trial").none(),
             nb::arg("others"));
  module.def("check_rule_parameters", [](const std::string& name, const std::map<std::string, std::string>& given) {
    const RuleType& type = rule_named(name);
    static_cast<void>(value_of(RuleArguments::make(type.name, type.parameters, given)));
  });
  module.def("find_rule", [](const std::string& name) { return type_dict(rule_named(name)); });
}

}  // namespace tornasole::python
