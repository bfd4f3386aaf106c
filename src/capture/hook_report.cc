// What capture tells its user: coverage in the log, and the report.

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "base/utf8.h"
#include "capture/hook_state.h"
#include "plan/collections.h"

namespace tornasole::capture {
namespace {

std::string join(const std::vector<std::string>& items) {
  std::string text;
  for (const std::string& item : items) {
    if (!text.empty()) text += ", ";
    text += "'" + printable(item) + "'";
  }
  return text;
}

}  // namespace

// At the first saved step and at the end: what matched nothing is said loudly.
void HookState::report_coverage_locked(bool is_final) {
  is_coverage_reported_ = true;
  if (!plan_) return;
  const std::vector<std::string> defaults = plan::default_collections(config_.framework);
  for (const plan::Plan::Coverage& coverage : plan_->coverage()) {
    const bool is_default = std::find(defaults.begin(), defaults.end(), coverage.collection) != defaults.end();
    const auto saved = values_by_collection_.find(coverage.collection);
    health_->log(LogLevel::kInfo,
                 fmt::format("collection '{}': {} names matched, {} values saved", printable(coverage.collection),
                             coverage.matched_names, saved == values_by_collection_.end() ? 0 : saved->second));
    // Only what somebody asked for by name: the rest is there because of save_all or the framework.
    const bool is_asked_for = collections_.included().contains(coverage.collection) && !is_default;
    if (coverage.unmatched_patterns.empty() || !is_asked_for) continue;
    // What compares with an earlier step cannot be there at the first one.
    if (!is_final && keeps_previous_ && coverage.collection == "derived") continue;
    std::string text = fmt::format("collection '{}': no tensor {}matches {}", printable(coverage.collection),
                                   is_final ? "" : "so far ", join(coverage.unmatched_patterns));
    if (!coverage.near_misses.empty()) text += "; nearly: " + join(coverage.near_misses);
    health_->log(health_->gap_level(), text);
  }
  if (is_final && health_->counts().due == 0 && !infos_.empty()) {
    health_->log(LogLevel::kWarning,
                 unclaimed_.empty()
                     ? fmt::format("nothing was saved: of {} names none came at a step that is due", infos_.size())
                     : fmt::format("nothing was saved: {} names were offered at due steps and no saved collection "
                                   "contains them ({})",
                                   infos_.size(), join(unclaimed_)));
  }
}

CaptureReport HookState::report() {
  if (is_inert()) return {};
  const std::lock_guard lock(mutex_);
  const Health::Counts counts = health_->counts();
  CaptureReport report;
  report.due_steps = counts.due;
  report.committed_steps = counts.committed;
  report.dropped_steps = counts.dropped_steps;
  report.dropped_values = counts.dropped_values;
  report.last_committed_step = counts.last_committed;
  report.queue_peak_bytes = writer_ ? static_cast<std::int64_t>(writer_->queue().pool_peak_bytes()) : 0;
  report.wait_ms = counts.wait_ns / 1'000'000;
  report.errors = counts.errors;
  if (writer_) report.requests = writer_->store().traffic().by_name();
  report.names_observed = static_cast<std::int64_t>(infos_.size());
  report.unclaimed_names = unclaimed_;
  report.bytes_written = counts.bytes_written;
  report.largest_step_bytes = counts.largest_step_bytes;
  report.bytes_by_collection = bytes_by_collection_;
  if (!plan_) return report;
  for (plan::Plan::Coverage& coverage : plan_->coverage()) {
    const auto saved = values_by_collection_.find(coverage.collection);
    report.collections.push_back({.name = coverage.collection,
                                  .saved = true,
                                  .matched = coverage.matched_names,
                                  .saved_values = saved == values_by_collection_.end() ? 0 : saved->second,
                                  .unmatched_patterns = std::move(coverage.unmatched_patterns),
                                  .near_misses = std::move(coverage.near_misses)});
  }
  return report;
}

}  // namespace tornasole::capture
