#pragma once

// What `tornasole config check` found: the effective configuration, what it saves and when, warnings, errors. Made from
// text alone; printed by config_report_text.cc and config_report_json.cc.

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "cli/terminal.h"
#include "config/config.h"
#include "config/environment.h"

namespace tornasole::cli {

struct ReportedOption {
  std::string name, value, origin;  // origin: "default", "line 7", "TORNASOLE_FSYNC"
  std::string note = {};            // the value once more, easier to read: "256 MiB"
};

// The steps of one mode, or of every mode when all are the same.
struct ReportedSteps {
  std::optional<Mode> mode = {};
  std::vector<std::int64_t> first = {};  // at most eight
  bool has_more = false;
  std::int64_t count = 0;  // below the number of steps asked for
  std::string rule = {};
};

struct ReportedCollection {
  std::string name, form;
  std::vector<std::string> patterns = {};
  bool has_histogram = false;
  std::vector<ReportedSteps> steps = {};
};

struct ConfigReport {
  std::string file = {};
  Framework framework = Framework::kPytorch;
  std::optional<std::int64_t> step_limit = {};
  bool has_tensorboard = false;
  std::vector<ReportedOption> options = {};
  std::vector<ReportedCollection> collections = {};
  std::vector<std::string> warnings = {};
  std::vector<config::Problem> errors = {};
};

struct ReportRequest {
  std::string file = {};
  Framework framework = Framework::kPytorch;
  std::optional<std::int64_t> step_limit = {};  // steps of a mode the training will take
};
ConfigReport make_config_report(std::string_view text, const ReportRequest& request,
                                const config::Environment& environment);
std::string to_text(const ConfigReport& report, const Style& style);
// Errors and warnings alone, for a report with errors.
std::string errors_to_text(const ConfigReport& report, const Style& style);
std::string to_json(const ConfigReport& report);

}  // namespace tornasole::cli
