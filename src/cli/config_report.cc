#include "cli/config_report.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <limits>

#include "cli/schedule_words.h"
#include "plan/collections.h"
#include "plan/config_patterns.h"
#include "plan/plan.h"
#include "plan/schedule.h"

namespace tornasole::cli {
namespace {

using config::Config;
using config::Schedule;

constexpr std::size_t kShownSteps = 8;
constexpr std::array<std::string_view, 4> kModePrefixes = {"train.", "eval.", "predict.", "global."};

// "256 MiB"; nothing where the number says it best.
std::string in_units(std::int64_t bytes) {
  constexpr std::array<const char*, 4> kUnits = {"KiB", "MiB", "GiB", "TiB"};
  const char* unit = nullptr;
  for (std::size_t i = 0; i < kUnits.size() && bytes >= 1024 && bytes % 1024 == 0; ++i) {
    bytes /= 1024;
    unit = kUnits[i];
  }
  return unit == nullptr ? "" : fmt::format("{} {}", bytes, unit);
}
std::string yes_no(bool truth) { return truth ? "true" : "false"; }
template <typename T>
std::string list_text(const std::vector<T>& items) {
  return items.empty() ? "none" : fmt::format("{}", fmt::join(items, ", "));
}
std::string fsync_text(const Config& config) {
  if (config.fsync == config::FsyncPolicy::kInterval) return fmt::format("{}s", config.fsync_interval_s);
  return config.fsync == config::FsyncPolicy::kStep ? "step" : "none";
}
std::string log_text(const Config& config) {
  constexpr std::array<const char*, 4> kNames = {"debug", "info", "warning", "error"};
  return config.log_off ? "off" : kNames[static_cast<std::size_t>(config.log_level)];
}

class OptionLister {
 public:
  explicit OptionLister(const Config& config) : config_(config) {}

  std::vector<ReportedOption> list() {
    add("out_dir", config_.out_dir);
    if (config_.location != config_.out_dir) add("out_dir, absolute", config_.location, origin("out_dir"));
    add("tensorboard_dir", config_.tensorboard_dir.value_or("none"),
        origin(config_.origins.contains("tensorboard_dir") ? "tensorboard_dir" : "export_tensorboard"));
    add("dry_run", yes_no(config_.dry_run));
    add("save_all", yes_no(config_.save_all));
    add("include_regex", list_text(config_.include_regex));
    add("include_workers", config_.include_workers == IncludeWorkers::kAll ? "all" : "one");
    const bool has_reductions = config_.origins.contains("reductions");
    add("form of tensors", in_words(config_.reductions),
        origin(has_reductions                                ? "reductions"
               : config_.origins.contains("save_raw_tensor") ? "save_raw_tensor"
                                                             : "save_shape"));
    add_schedule("save_interval", [](const Schedule& s) { return fmt::format("{}", s.save_interval); });
    add_schedule("start_step", [](const Schedule& s) { return fmt::format("{}", s.start_step); });
    add_schedule("end_step", [](const Schedule& s) { return s.end_step ? fmt::format("{}", *s.end_step) : "none"; });
    add_schedule("save_steps", [](const Schedule& s) { return list_text(s.save_steps); });
    add_schedule("when_nan", [](const Schedule& s) { return list_text(s.when_nan); });
    add_engine_options();
    add("strict", yes_no(config_.strict), config_.strict ? "TORNASOLE_STRICT" : "default");
    add("log level", log_text(config_),
        config_.log_off || config_.log_level != LogLevel::kWarning ? "environment" : "default");
    add("checkpoint_dir", config_.checkpoint_dir.value_or("none"));
    return std::move(options_);
  }

 private:
  void add_engine_options() {
    add("fsync", fsync_text(config_));
    add("when_full", config_.when_full == WhenFull::kBlock ? "block" : "drop");
    add_bytes("queue_bytes", config_.queue_bytes);
    add("queue_wait_ms", fmt::format("{}", config_.queue_wait_ms));
    add("close_wait_s", fmt::format("{}", config_.close_wait_s));
    add("spool_dir", config_.spool_dir.value_or("none"));
    add_bytes("spool_bytes", config_.spool_bytes);
    add("readable_by_smdebug", yes_no(config_.readable_by_smdebug));
    add("resume", yes_no(config_.resume));
    add("shared", yes_no(config_.shared));
    add("flush_on_signal", yes_no(config_.flush_on_signal));
    add("honour_stop", yes_no(config_.honour_stop));
    add("reduce_threads", fmt::format("{}", config_.reduce_threads));
    add_bytes("max_bytes_per_step", config_.max_bytes_per_step);
    add_bytes("max_bytes_per_run", config_.max_bytes_per_run);
    add("keep_steps", config_.keep_steps ? fmt::format("{}", *config_.keep_steps) : "all");
    add("flight_recorder_steps", fmt::format("{}", config_.flight_recorder_steps));
    add_bytes("flight_recorder_bytes", config_.flight_recorder_bytes);
    add("flight_recorder_raw", yes_no(config_.flight_recorder_raw));
    add("derived", list_text(config_.derived));
    add("capture_functional", yes_no(config_.capture_functional));
    add("stable_names", yes_no(config_.stable_names));
    add("warn_unmatched", yes_no(config_.warn_unmatched));
    add("rules", list_text(config_.rules));
  }

  std::string origin(const std::string& key) const {
    const auto found = config_.origins.find(key);
    return found == config_.origins.end() ? "default" : found->second;
  }
  void add(const std::string& name, std::string value) { add(name, std::move(value), origin(name)); }
  void add(const std::string& name, std::string value, std::string from) {
    options_.push_back({name, std::move(value), std::move(from)});
  }
  void add_bytes(const std::string& name, const std::optional<std::int64_t>& bytes) {
    add(name, bytes ? fmt::format("{}", *bytes) : "no limit");
    if (bytes) options_.back().note = in_units(*bytes);
  }
  // One row, or one for each mode where a mode has a value of its own.
  template <typename Text>
  void add_schedule(const std::string& field, Text text) {
    const bool is_common = std::none_of(kModePrefixes.begin(), kModePrefixes.end(), [&](std::string_view prefix) {
      return config_.origins.contains(std::string(prefix) + field);
    });
    if (is_common) {
      add(field, text(config_.schedules[0]));
      return;
    }
    for (const Mode mode : kAllModes) {
      const std::string key = std::string(kModePrefixes[mode_index(mode)]) + field;
      add(key, text(config_.schedules[mode_index(mode)]), origin(config_.origins.contains(key) ? key : field));
    }
  }

  const Config& config_;
  std::vector<ReportedOption> options_;
};

class ReportMaker {
 public:
  ReportMaker(const ReportRequest& request, ConfigReport* report) : request_(request), report_(*report) {}

  void describe(Config config) {
    problems_ = plan::pattern_problems(config);  // all of them: a plan stops at the first
    const bool is_sound = report_.errors.empty() && problems_.errors().empty();
    if (is_sound) describe_collections(std::move(config));
    report_.errors.insert(report_.errors.end(), problems_.errors().begin(), problems_.errors().end());
  }

 private:
  void describe_collections(Config config) {
    drop_unfilled(&config);
    auto collections = plan::Collections::make(config);
    if (!collections) return problems_.add({config.source, 0, ""}, collections.error());
    const auto plan = plan::Plan::prepare(config, &*collections);
    if (!plan) return problems_.add({config.source, 0, ""}, plan.error());
    report_.warnings.insert(report_.warnings.end(), plan->warnings().begin(), plan->warnings().end());
    for (std::size_t i = 0; i < plan->saved().size(); ++i) describe_collection(*plan, i);
  }

  // A collection the script must fill is no error of the file, but nothing can be planned for it either.
  void drop_unfilled(Config* config) {
    const auto collections = plan::Collections::make(*config);
    if (!collections) return;
    const auto is_unfilled = [&](const std::string& name) {
      const plan::Collection* collection = collections->find(name);
      return collection != nullptr && !collection->is_builtin && collection->include_regex.empty() &&
             collection->tensor_names.empty();
    };
    for (const auto& settings : config->collections) {
      if (!is_unfilled(settings.name)) continue;
      report_.warnings.push_back(
          fmt::format("collection \"{}\" has neither a pattern nor a name: the script must add one before the first "
                      "step, which fails otherwise",
                      settings.name));
    }
    std::erase_if(config->include_collections, is_unfilled);
    std::erase_if(config->collections, [&](const auto& settings) { return is_unfilled(settings.name); });
  }

  void describe_collection(const plan::Plan& plan, std::size_t position) {
    const plan::Collection& collection = *plan.saved()[position];
    ReportedCollection reported{.name = collection.name,
                                .form = in_words(*collection.reductions),
                                .patterns = collection.include_regex,
                                .has_histogram = collection.save_histogram};
    for (const Mode mode : kAllModes) reported.steps.push_back(steps_of(plan, position, mode));
    const ReportedSteps& first = reported.steps.front();
    const bool are_equal = std::all_of(reported.steps.begin(), reported.steps.end(), [&](const ReportedSteps& steps) {
      return steps.rule == first.rule && steps.first == first.first;
    });
    if (are_equal) {
      reported.steps.resize(1);
      reported.steps.front().mode.reset();
    }
    report_.collections.push_back(std::move(reported));
  }

  ReportedSteps steps_of(const plan::Plan& plan, std::size_t position, Mode mode) const {
    const Schedule& schedule = *plan.saved()[position]->schedules[mode_index(mode)];
    ReportedSteps steps{.mode = mode, .rule = in_words(schedule)};
    const std::int64_t end = request_.step_limit.value_or(std::numeric_limits<std::int64_t>::max());
    std::int64_t step = plan::next_due(schedule, 0);
    // The plan has the last word: it keeps gradients out of the modes that have none.
    if (step < std::numeric_limits<std::int64_t>::max() && !is_due(plan.due(mode, step), position)) {
      steps.rule = "never: there are none in this mode";
      return steps;
    }
    for (; step < end; step = plan::next_due(schedule, step + 1)) {
      ++steps.count;
      if (steps.first.size() < kShownSteps) {
        steps.first.push_back(step);
      } else {
        steps.has_more = true;
        if (!request_.step_limit) break;
      }
    }
    return steps;
  }
  static bool is_due(const plan::CollectionBits& due, std::size_t position) noexcept {
    return position / 64 < due.size() && ((due[position / 64] >> (position % 64)) & 1U) != 0;
  }

  const ReportRequest& request_;
  ConfigReport& report_;
  config::Problems problems_;
};

}  // namespace

ConfigReport make_config_report(std::string_view text, const ReportRequest& request,
                                const config::Environment& environment) {
  ConfigReport report{.file = request.file, .framework = request.framework, .step_limit = request.step_limit};
  const HookOptions options{.framework = request.framework, .log = nullptr};
  config::Inspection inspection = config::inspect_config(text, request.file, options, environment);
  report.warnings = std::move(inspection.warnings);
  report.errors = std::move(inspection.errors);
  if (inspection.config) {
    report.options = OptionLister(*inspection.config).list();
    report.has_tensorboard = inspection.config->tensorboard_dir.has_value();
    ReportMaker(request, &report).describe(std::move(*inspection.config));
  }
  return report;
}

}  // namespace tornasole::cli
