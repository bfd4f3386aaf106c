// tornasole rule DIR RULE: looks for a condition, or several, in what a run saved.
//
//   1. --list-rules: what there is, and nothing else.
//   2. The rules: one by name with its parameters, or those of --config.
//   3. One pass over the trial for all of them (rule_job.h), while it is written if it is followed.
//   4. What was found: for people or as JSON, and by the exit code.

#include <algorithm>
#include <map>
#include <memory>
#include <set>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/check_command.h"
#include "cli/command_output.h"
#include "cli/interrupts.h"
#include "cli/rule_commands.h"
#include "cli/rule_job.h"
#include "cli/rule_listing.h"
#include "cli/rule_output.h"
#include "config/environment.h"
#include "config/values.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
constexpr const char* kNotifierVariable = "TORNASOLE_NOTIFIER";

struct RuleArgumentsGiven {
  std::string dir, rule;             // as arguments
  std::string trial_dir, rule_name;  // as options
  std::string other_trials;
  std::int64_t first_step = -1, end_step = -1;
  std::string stops_when_met = "false";
  std::map<std::string, std::string> parameters;
  std::vector<std::string> unknown;  // what the parser did not know
  std::string actions, notifier, report, config;
  std::string workers = "all";
  std::string profile = "reference";
  bool lists_rules = false, follows = false, follows_not = false, as_json = false;
  double poll_s = 1, timeout_s = 300;
};

// One of two spellings; kInvalid for both.
Result<std::string> either(const std::string& argument, const std::string& option, const char* name) {
  if (!argument.empty() && !option.empty() && argument != option) {
    return invalid_error("{} is given twice: \"{}\" and \"{}\"", name, argument, option);
  }
  return argument.empty() ? option : argument;
}

int list_rules(const RuleArgumentsGiven& given) {
  // With nothing else to say, a word after it is a rule.
  auto name = either(given.rule.empty() ? given.dir : given.rule, given.rule_name, "--rule-name");
  if (!name) return fail(name.error(), given.as_json);
  const Terminal terminal = Terminal::of(stdout);
  if (name->empty()) return answer(given.as_json ? rules_json(nullptr) : rules_text(terminal));
  const auto type = find_rule(*name);
  if (!type) return fail(type.error(), given.as_json);
  return answer(given.as_json ? rules_json(*type) : rule_text(**type, terminal));
}

Result<std::vector<RuleConfiguration>> rules_of_file(const RuleArgumentsGiven& given,
                                                     const config::Environment& environment) {
  if (!given.parameters.empty()) {
    return invalid_error("--{}: the parameters of the rules of --config are in the file",
                         given.parameters.begin()->first);
  }
  const auto text = environment.read_file(given.config, kMaxConfigBytes);
  if (!text) return invalid_error("--config {}", text.error().message);
  TORNASOLE_TRY(auto rules, parse_rule_configurations(*text, given.config));
  for (RuleConfiguration& rule : rules) {
    if (rule.actions.empty()) rule.actions = given.actions;
    if (rule.other_trials.empty()) rule.other_trials = config::split_list(given.other_trials);
  }
  return rules;
}

Result<std::vector<RuleConfiguration>> rules_of(const RuleArgumentsGiven& given,
                                                const config::Environment& environment) {
  TORNASOLE_TRY(const std::string name, either(given.rule, given.rule_name, "the rule"));
  if (!given.config.empty()) {
    if (!name.empty()) return invalid_error("rule \"{}\" and --config {}: give one of them", name, given.config);
    return rules_of_file(given, environment);
  }
  if (name.empty()) {
    return invalid_error("no rule: give its name after the directory, or --config FILE; --list-rules shows all");
  }
  TORNASOLE_TRY(const RuleType* type, find_rule(name));
  RuleConfiguration rule{.name = std::string(type->name),
                         .rule = std::string(type->name),
                         .parameters = given.parameters,
                         .other_trials = config::split_list(given.other_trials),
                         .actions = given.actions};
  return std::vector<RuleConfiguration>{std::move(rule)};
}

// The parser leaves what it does not know: most likely a parameter of the rule, mistyped.
Status refuse_unknown(const RuleArgumentsGiven& given) {
  if (given.unknown.empty()) return {};
  for (const std::string& word : given.unknown) {
    if (!word.starts_with("--")) continue;
    const std::string name = word.substr(2, word.find('=') - 2);
    const auto rule = either(given.rule, given.rule_name, "the rule");
    const auto type = find_rule(rule ? *rule : std::string());
    if (!type) return invalid_error("--{} is no option, nor a parameter of a rule", name);
    TORNASOLE_CHECK(RuleArguments::make((*type)->name, (*type)->parameters, {{name, "1"}}));
  }
  return invalid_error("\"{}\" is one argument too many", given.unknown.front());
}

Result<RuleJobOptions> job_options(const RuleArgumentsGiven& given) {
  TORNASOLE_CHECK(refuse_unknown(given));
  const auto environment = config::Environment::from_process();
  RuleJobOptions options;
  TORNASOLE_TRY(options.rules, rules_of(given, environment));
  TORNASOLE_TRY(options.dir, either(given.dir, given.trial_dir, "the trial"));
  if (options.dir.empty()) return invalid_error("no trial: give the directory of a run, or --trial-dir DIR");
  if (given.first_step >= 0) options.first_step = given.first_step;
  if (given.end_step >= 0) options.end_step = given.end_step;
  if (options.first_step && options.end_step && *options.end_step <= *options.first_step) {
    return invalid_error("--end-step {} is not after --start-step {}; it is the first step not looked at",
                         *options.end_step, *options.first_step);
  }
  options.first_worker_only = given.workers == "first";
  if (given.workers != "first" && given.workers != "all") options.workers = config::split_list(given.workers);
  options.stop_when_met = given.stops_when_met != "False" && given.stops_when_met != "false";
  if (given.follows) options.follow = true;
  if (given.follows_not) options.follow = false;
  options.poll_s = given.poll_s;
  options.timeout_s = given.timeout_s;
  options.report = given.report;
  options.notifier = given.notifier.empty() ? environment.get_nonempty(kNotifierVariable).value_or("") : given.notifier;
  options.shows_progress = !given.as_json;
  options.warn = [](const std::string& message) { warn(message); };
  options.is_interrupted = was_interrupted;
  if (!given.as_json) {
    options.on_met = [](const Trial& trial, const RuleOutcome& rule, const Violation& newest) {
      print(stdout, met_line(trial, rule, newest));
    };
  }
  return options;
}

// The question of the check that has the rule's name: it has no parameters, and looks at the run as it is.
Result<CheckArguments> check_arguments(const RuleArgumentsGiven& given) {
  const std::pair<const char*, bool> unfit[] = {
      {"--config", !given.config.empty()}, {"--actions", !given.actions.empty()},
      {"--report", !given.report.empty()}, {"--other-trials", !given.other_trials.empty()},
      {"--follow", given.follows},         {"a parameter", !given.parameters.empty() || !given.unknown.empty()}};
  for (const auto& [what, is_given] : unfit) {
    if (is_given) return invalid_error("{} does not go with --profile check; tornasole watch follows a run", what);
  }
  CheckArguments arguments;
  TORNASOLE_TRY(const std::string name, either(given.rule, given.rule_name, "the rule"));
  if (name.empty()) return invalid_error("no rule: give its name after the directory");
  const auto type = find_rule(name);  // a few questions of the check are no rules
  arguments.rules = {type ? std::string((*type)->name) : name};
  TORNASOLE_TRY(arguments.dir, either(given.dir, given.trial_dir, "the trial"));
  if (arguments.dir.empty()) return invalid_error("no trial: give the directory of a run, or --trial-dir DIR");
  arguments.as_json = given.as_json;
  arguments.range = {.first = given.first_step, .end = given.end_step};
  return arguments;
}

int run_rules(const RuleArgumentsGiven& given) {
  if (given.lists_rules) return list_rules(given);
  if (given.profile == "check") {
    const auto arguments = check_arguments(given);
    return arguments ? check_run(*arguments) : fail(arguments.error(), given.as_json);
  }
  auto options = job_options(given);
  if (!options) return fail(options.error(), given.as_json);
  heed_interrupts();  // a run ends in order, with reports
  RuleJob job(std::move(*options));
  if (const Status prepared = job.prepare(); !prepared) return fail(prepared.error(), given.as_json);
  if (!given.as_json) warn_of_damage(job.trial());
  if (const Status done = job.run(); !done) return fail(done.error(), given.as_json);
  bool is_met = false;
  for (std::size_t i = 0; i < job.runner().size(); ++i) is_met |= job.runner().outcome(i).report.triggered > 0;
  const int code = is_met ? kFound : job.was_cut_short() ? kFailed : kSound;
  if (given.as_json) {
    return answer(outcome_json(job.runner(), job.trial(), job.evaluation(), job.undelivered()), code);
  }
  return answer(outcome_text(job.runner(), job.trial(), Terminal::of(stdout)), code);
}

// Every parameter of every rule is an option; which belong to the rule is told when it is known.
void add_parameters(CLI::App* command, const std::shared_ptr<RuleArgumentsGiven>& given) {
  std::set<std::string> seen;
  for (const RuleType& type : builtin_rules()) {
    for (const Parameter& parameter : type.parameters) {
      const std::string name(parameter.name);
      if (!seen.insert(name).second || command->get_option_no_throw("--" + name) != nullptr) continue;
      std::string dashed = name;
      std::ranges::replace(dashed, '_', '-');
      std::string flags = "--" + name;
      if (dashed != name && command->get_option_no_throw("--" + dashed) == nullptr) flags += ",--" + dashed;
      command
          ->add_option_function<std::string>(
              flags, [given, name](const std::string& text) { given->parameters[name] = text; },
              std::string(parameter.help))
          ->group("");
    }
  }
}

void add_options(CLI::App* command, const std::shared_ptr<RuleArgumentsGiven>& given) {
  command->add_option("DIR", given->dir, "The directory a run was written to")->type_name("");
  command->add_option("RULE", given->rule, "The rule; its name is compared without case and underscores")
      ->type_name("");
  command->add_option("--trial-dir", given->trial_dir, "The same as DIR")->type_name("DIR");
  command->add_option("--rule-name", given->rule_name, "The same as RULE")->type_name("RULE");
  command->add_option("--config", given->config, "Rules and their parameters in a JSON file, for one pass over the run")
      ->type_name("FILE");
  command->add_flag("--list-rules", given->lists_rules, "Show all rules; with a rule, its parameters");
  command->add_option("--other-trials", given->other_trials, "Other runs, for rules that compare; separated by commas")
      ->type_name("DIRS");
  command->add_option("--start-step", given->first_step, "The first global step that is loaded and looked at")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_option("--end-step", given->end_step, "The first global step that is not")
      ->check(CLI::NonNegativeNumber)
      ->type_name("N");
  command->add_option("--workers", given->workers, "all, first (in sorted order, at each step), or names with commas")
      ->type_name("WHICH")
      ->capture_default_str();
  command
      ->add_option("--raise-rule-eval-cond-exception", given->stops_when_met,
                   "End at the first condition that is met; alone, or with true or false")
      ->expected(0, 1)
      ->type_name("[true|false]")
      ->check([](const std::string& text) {
        const bool is_known = text.empty() || text == "True" || text == "true" || text == "False" || text == "false";
        return is_known ? std::string() : "\"" + text + "\" is none of True, true, False and false";
      });
  command
      ->add_option("--profile", given->profile,
                   "reference: as documented; check: the question of tornasole check that has the rule's name")
      ->check(CLI::IsMember({"check", "reference"}))
      ->type_name("NAME")
      ->capture_default_str();
  command->add_option("--actions", given->actions, "What is done when a condition is met, as JSON")->type_name("JSON");
  command->add_option("--notifier", given->notifier, "The program of email and sms (else TORNASOLE_NOTIFIER)")
      ->type_name("PROGRAM");
  command
      ->add_option("--report", given->report,
                   "Write RULE.json and status.json there, every 10 s and at the end; FILE.json for one rule's report")
      ->type_name("DIR");
  CLI::Option* follow = command->add_flag(
      "--follow", given->follows, "Wait for the run, and for its steps, until it is over (default: if it is running)");
  command->add_flag("--no-follow", given->follows_not, "Look at the steps that are there")->excludes(follow);
  command->add_option("--poll", given->poll_s, "Seconds between two looks at a run that is followed")
      ->check(CLI::Range(0.001, 3600.0))
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_option("--timeout", given->timeout_s, "Give up after so long without a sign of life")
      ->check(CLI::NonNegativeNumber)
      ->type_name("SECONDS")
      ->capture_default_str();
  command->add_flag("--json", given->as_json, "Print JSON on standard output, errors included");
}

}  // namespace

void add_rule_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "rule",
      "Look for a condition in what a run saved: gradients that vanish, values that are not finite and so on. Says at "
      "which steps it is met and for which tensors, writes reports, and can stop the training or tell somebody.");
  const auto given = std::make_shared<RuleArgumentsGiven>();  // shared: the parser keeps the callback
  add_options(command, given);
  add_parameters(command, given);
  command->allow_extras();
  command->footer(
      "Parameters of the rule are options too: --threshold 1e-6; those of another rule are refused.\n"
      "A run that is running is followed until it is over; one that is not is looked at as it is.\n"
      "\n"
      "Example:\n"
      "  tornasole rule --list-rules VanishingGradient\n"
      "  tornasole rule runs/mnist VanishingGradient --threshold 1e-6\n"
      "  tornasole rule runs/mnist --config rules.json --report reports\n"
      "  tornasole rule runs/mnist ExplodingTensor --follow \\\n"
      "    --actions '{\"name\": \"stoptraining\", \"training_job_prefix\": \"\"}'\n"
      "\n"
      "Exit codes: 0 no condition met; 10 some condition met; 2 wrong use; 1 anything else: the run cannot be\n"
      "read, gave no sign of life, or the command was interrupted.");
  command->callback([command, given, exit_code] {
    given->unknown = command->remaining();
    *exit_code = run_rules(*given);
  });
}

}  // namespace tornasole::cli
