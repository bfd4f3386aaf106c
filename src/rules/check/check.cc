// check: reads the run once, asks every detector, and puts causes before symptoms.

#include "tornasole/check.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <span>

#include "base/errors.h"
#include "base/utf8.h"
#include "rules/check/detector.h"
#include "rules/check/reference_profile.h"
#include "rules/pass.h"

namespace tornasole {
namespace rules {
namespace {

// In the order in which they are asked and listed.
std::span<const Detector* const> detectors() {
  static const Detector* const all[] = {
      &kCheckInputRange,        &kCheckClassImbalance,
      &kCheckLossInput,         &kCheckPoorStart,
      &kCheckInitialLoss,       &kCheckTrainEval,
      &kCheckReplicas,          &kCheckShards,
      &kCheckNonFinite,         &kCheckLearningRate,
      &kCheckSilentOptimizer,   &kCheckMissingZeroGrad,
      &kCheckVanishingGradient, &kCheckDeadRelu,
      &kCheckSaturation,        &kCheckFrozenLayers,
      &kCheckConstantOutput,    &kCheckLossTrend,
      &kCheckLossSpike,         &kCheckOscillation,
      &kCheckOverfit,           &kCheckConfusion,
      &kCheckFeatures,          &kCheckTreeDepth,
      &kCheckOvertraining,      &kCheckSuspiciousValidation,
      &kCheckGradNormSpike,     &kCheckRank,
      &kCheckLossScale,         &kCheckWorkerOutlier,
      &kCheckDataRepeat,
  };
  return all;
}

struct Found {
  Verdict verdict;
  const Detector* detector = nullptr;
  int depth = 0;
};

// Whether one may be the reason of the other: nearer to the root, not later, and a verdict itself.
bool may_cause(const Found& cause, const Found& symptom) {
  if (cause.verdict.severity == Severity::kInfo || cause.depth >= symptom.depth) return false;
  const auto explains = cause.detector->explains;
  if (!explains.empty() && std::ranges::find(explains, symptom.verdict.rule) == explains.end()) return false;
  // A model that learns all too well does so for no other reason than that it can.
  if (symptom.verdict.rule == "Overfit") return cause.verdict.rule == "TreeDepth";
  constexpr std::int64_t kSlack = 2;  // steps may be noticed late by some
  return cause.verdict.first_step <= symptom.verdict.first_step + kSlack ||
         (!symptom.detector->is_event && cause.verdict.first_step <= symptom.verdict.last_step);
}

std::vector<Verdict> chain(std::vector<Found> found) {
  std::ranges::stable_sort(found, [](const Found& a, const Found& b) {
    if (a.verdict.severity != b.verdict.severity) return a.verdict.severity > b.verdict.severity;
    if (a.depth != b.depth) return a.depth < b.depth;
    return a.verdict.first_step < b.verdict.first_step;
  });
  for (std::size_t i = 0; i < found.size(); ++i) {
    std::optional<std::size_t> cause;
    for (std::size_t k = 0; k < found.size(); ++k) {
      if (k == i || !may_cause(found[k], found[i])) continue;
      if (!cause || found[k].depth < found[*cause].depth) cause = k;
    }
    found[i].verdict.symptom_of = cause;
  }
  // Each cause, then what follows from it.
  std::vector<std::size_t> order;
  const std::function<void(std::optional<std::size_t>)> list = [&](std::optional<std::size_t> cause) {
    for (std::size_t i = 0; i < found.size(); ++i) {
      if (found[i].verdict.symptom_of != cause) continue;
      order.push_back(i);
      list(i);
    }
  };
  list(std::nullopt);
  std::vector<std::size_t> place(found.size());
  for (std::size_t i = 0; i < order.size(); ++i) place[order[i]] = i;
  std::vector<Verdict> verdicts;
  verdicts.reserve(found.size());
  for (const std::size_t i : order) {
    verdicts.push_back(std::move(found[i].verdict));
    if (auto& cause = verdicts.back().symptom_of) cause = place[*cause];
  }
  return verdicts;
}

std::string summary_of(const CheckReport& report) {
  std::size_t causes = 0;
  std::size_t symptoms = 0;
  for (const Verdict& verdict : report.verdicts) {
    if (verdict.severity == Severity::kInfo) continue;
    ++(verdict.symptom_of ? symptoms : causes);
  }
  if (causes + symptoms == 0) {
    return fmt::format("Nothing wrong found: {} {} asked of {} {}.", report.checked.size(),
                       report.checked.size() == 1 ? "question" : "questions", report.steps,
                       report.steps == 1 ? "step" : "steps");
  }
  return fmt::format(
      "{} {}{} in {} steps.", causes, causes == 1 ? "problem" : "problems",
      symptoms == 0 ? std::string() : fmt::format(" with {} {}", symptoms, symptoms == 1 ? "symptom" : "symptoms"),
      report.steps);
}

}  // namespace

std::string names_text(const std::vector<std::string>& names, std::size_t shown) {
  std::string text;
  for (std::size_t i = 0; i < std::min(shown, names.size()); ++i) text += (i == 0 ? "" : ", ") + names[i];
  if (names.size() > shown) text += fmt::format(" and {} more", names.size() - shown);
  return text;
}

Evidence evidence_of(std::string what, const Series& series, std::size_t most) {
  Evidence evidence{.what = std::move(what)};
  const std::size_t stride = std::max<std::size_t>(1, (series.size() + most - 1) / most);
  for (std::size_t i = 0; i < series.size(); i += stride)
    evidence.points.emplace_back(series.steps[i], series.values[i]);
  return evidence;
}

}  // namespace rules

std::string_view severity_name(Severity severity) noexcept {
  switch (severity) {
    case Severity::kInfo: return "info";
    case Severity::kWarning: return "warning";
    case Severity::kError: return "error";
  }
  return "unknown";
}

bool CheckReport::has_findings() const noexcept {
  return std::ranges::any_of(verdicts, [](const Verdict& verdict) { return verdict.severity != Severity::kInfo; });
}

Result<CheckReport> check(Trial& trial, const CheckOptions& options) {
  if (options.profile == Profile::kReference) {
    TORNASOLE_TRY(CheckReport report, rules::check_by_reference(trial, options));
    report.summary = rules::summary_of(report);
    return report;
  }
  for (const std::string& name : options.rules) {
    if (std::ranges::none_of(rules::detectors(), [&](const auto* detector) { return detector->name == name; })) {
      return invalid_error("no rule \"{}\" for check", printable(name));
    }
  }
  rules::Pass pass(&trial,
                   {.first_step = options.first_step, .end_step = options.end_step, .on_step = options.on_step});
  pass.include_partial();  // a program that stops at the first NaN cuts the step short that tells why
  auto recorder = std::make_unique<rules::Recorder>(trial);
  const rules::RunRecord& record = recorder->record();
  pass.add({.name = "check", .rule = std::move(recorder)});
  TORNASOLE_CHECK(pass.run());

  CheckReport report{.steps = static_cast<std::int64_t>(record.steps.size())};
  std::vector<rules::Found> found;
  for (const rules::Detector* detector : rules::detectors()) {
    if (!options.rules.empty() && std::ranges::find(options.rules, detector->name) == options.rules.end()) continue;
    rules::Judgement judgement(detector->name);
    if (record.steps.empty()) {
      judgement.cannot("no step was saved");
    } else {
      detector->look(record, judgement);
    }
    if (!judgement.not_checked().empty()) {
      report.not_checked.push_back({std::string(detector->name), judgement.not_checked()});
      continue;
    }
    report.checked.emplace_back(detector->name);
    for (std::size_t i = 0; i < judgement.verdicts().size(); ++i) {
      found.push_back({std::move(judgement.verdicts()[i]), detector, detector->depth + judgement.deeper(i)});
    }
  }
  report.verdicts = rules::chain(std::move(found));
  report.summary = rules::summary_of(report);
  return report;
}

}  // namespace tornasole
