#pragma once

// check: what is wrong with a training, asked of everything its trial holds.
//
//   auto report = tornasole::check(*trial);
//   if (!report) return fail(report.error());
//   for (const auto& verdict : report->verdicts) std::puts(verdict.message.c_str());
//
// A verdict is a claim that something is wrong, made for use without a person: about windows of steps rather than
// single ones, about tensors by their role in the model rather than by name, and not about what healthy trainings show
// too. What is merely noteworthy has severity kInfo. Reads the trial in one pass and never changes it.

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/trial.h"

namespace tornasole {

enum class Severity : std::uint8_t { kInfo, kWarning, kError };
// "info", "warning", "error".
TORNASOLE_EXPORT std::string_view severity_name(Severity severity) noexcept;

// Numbers that show what a verdict is about, to be drawn.
struct Evidence {
  std::string what = {};                                     // "loss", "l2 of gradient/fc1.weight"
  std::vector<std::pair<std::int64_t, double>> points = {};  // global step, value; ascending
};

struct Verdict {
  std::string rule = {};
  Severity severity = Severity::kWarning;
  std::int64_t first_step = 0, last_step = 0;  // global: from where on, and up to where, it held
  Mode mode = Mode::kGlobal;
  std::vector<std::string> tensors = {};  // that prove it, the most telling first
  std::optional<double> value = {}, threshold = {};
  std::string message = {};              // one sentence: what, where, since when
  std::vector<std::string> causes = {};  // likely ones, the likeliest first
  std::vector<std::string> advice = {};  // what to try
  Evidence evidence = {};
  std::optional<std::size_t> symptom_of = {};  // place of its cause among the verdicts
};

// A rule that could not be asked, and what would be needed.
struct NotChecked {
  std::string rule = {};
  std::string reason = {};
};

struct CheckReport {
  std::vector<Verdict> verdicts = {};  // causes first, by severity and step; symptoms after their cause
  std::vector<NotChecked> not_checked = {};
  std::vector<std::string> checked = {};  // names of the rules that were asked
  std::int64_t steps = 0;                 // that were looked at
  std::string summary = {};

  // Whether there is a verdict that is more than noteworthy.
  bool has_findings() const noexcept;
  // verdicts (without their evidence), not_checked, checked, steps, summary. Numbers that are not finite are texts.
  TORNASOLE_EXPORT std::string to_json() const;
};

enum class Profile : std::uint8_t {
  kCheck,      // questions made for use without a person
  kReference,  // the built-in rules as they are documented, whose defaults are met by most healthy trainings too
};

struct CheckOptions {
  Profile profile = Profile::kCheck;
  std::vector<std::string> rules = {};                         // only these; empty: all
  std::optional<std::int64_t> first_step = {}, end_step = {};  // first_step <= global step < end_step
  std::function<bool(GlobalStep step)> on_step = {};           // progress; false ends the reading
};

// kInvalid for a rule that does not exist.
TORNASOLE_EXPORT Result<CheckReport> check(Trial& trial, const CheckOptions& options = {});

}  // namespace tornasole
