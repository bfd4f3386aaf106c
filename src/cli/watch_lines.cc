// Watching through a pipe: a line, or a JSON object a line, for each change of state and each piece of news.

#include <fmt/format.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/run_state_text.h"
#include "cli/verdict_output.h"
#include "cli/watch_view.h"
#include "rules/verdict_json.h"

namespace tornasole::cli {
namespace {

std::string finding_line(const FindingNews& news, const Style& style) {
  const Verdict& verdict = news.verdict;
  const std::string cause = news.cause.empty() ? "" : fmt::format(" (likely a symptom of {})", news.cause);
  const std::string text =
      printable(fmt::format("{}, {}: {}{}", verdict.rule, steps_text(verdict), verdict.message, cause));
  if (news.change == FindingChange::kWithdrawn) return style.faint("withdrawn: " + text) + "\n";
  const std::string head = fmt::format("{}: ", severity_name(verdict.severity));
  return style.paint(tone_of(verdict.severity), head) + text + "\n";
}

class WatchLines final : public WatchView {
 public:
  explicit WatchLines(Style style) : style_(style) {}

  void wait_for(const std::string& dir) override { print(stdout, "waiting for a run in " + printable(dir) + "\n"); }

  bool show(const LiveState& state, const std::vector<FindingNews>& news, bool /*is_checked*/) override {
    std::string text;
    if (const std::string now = run_status_text(state.status); now != last_state_) {
      text += printable(now) + ", " + counted(state.steps, "step");
      if (state.last_step >= 0) text += fmt::format(", the last is {}", state.last_step);
      text += "\n";
      last_state_ = now;
    }
    for (const FindingNews& one : news) text += finding_line(one, style_);
    return text.empty() || print(stdout, text);
  }

  bool end(const LiveState& state, const std::string& how, int /*exit_code*/) override {
    std::string text = printable(how) + ", " + counted(state.steps, "step");
    if (const std::string capture = capture_text(state.health); !capture.empty()) text += "; " + capture;
    return print(stdout, text + "\n" + printable(state.report.summary) + "\n");
  }

 private:
  Style style_;
  std::string last_state_;
};

std::string_view change_name(FindingChange change) {
  switch (change) {
    case FindingChange::kFound: return "finding";
    case FindingChange::kWorse: return "worse";
    case FindingChange::kWithdrawn: return "withdrawn";
  }
  return "finding";
}

class Event {
 public:
  explicit Event(std::string_view name) : json_(&text_) {
    json_.begin_object().key("event").value(name).key("time").value(system_clock().wall_seconds());
  }
  JsonWriter& json() { return json_; }
  std::string text() {
    json_.end_object();
    return without_delete(text_) + "\n";
  }

 private:
  std::string text_;
  JsonWriter json_;
};

void write_progress(JsonWriter& json, const LiveState& state) {
  json.key("steps").value(state.steps).key("last_step").value(state.last_step).key("steps_per_s");
  state.steps_per_s ? write_number(json, *state.steps_per_s) : static_cast<void>(json.null());
  json.key("losses").begin_array();
  for (const LossLine& loss : state.losses) {
    json.begin_object().key("name").value(loss.name).key("mode").value(mode_name(loss.mode));
    json.key("step").value(static_cast<std::int64_t>(loss.points.back().x)).key("value");
    write_number(json, loss.points.back().y);
    json.end_object();
  }
  json.end_array().key("capture");
  const tools::RunHealth& health = state.health;
  if (health.workers == 0) {
    json.null();
    return;
  }
  json.begin_object().key("due").value(health.due).key("committed").value(health.committed);
  json.key("dropped").begin_object();
  for (const auto& [cause, count] : health.dropped) json.key(cause).value(count);
  json.end_object().key("wait_s").value(health.wait_s).key("wait_share").value(health.wait_share());
  json.key("queue_peak_bytes").value(health.queue_peak_bytes).end_object();
}

class WatchJson final : public WatchView {
 public:
  void wait_for(const std::string& dir) override {
    Event event("waiting");
    event.json().key("path").value(dir);
    print(stdout, event.text());
  }

  bool show(const LiveState& state, const std::vector<FindingNews>& news, bool is_checked) override {
    std::string text;
    if (const std::string now = run_status_text(state.status); now != last_state_) {
      Event event("state");
      write_state(event.json(), state);
      text += event.text();
      last_state_ = now;
    }
    for (const FindingNews& one : news) text += finding(one);
    if (is_checked) {
      Event event("progress");
      write_progress(event.json(), state);
      event.json().key("checked_step").value(state.checked_step).key("check_s").value(state.check_s);
      text += event.text();
    }
    return text.empty() || print(stdout, text);
  }

  bool end(const LiveState& state, const std::string& how, int exit_code) override {
    Event event("end");
    write_state(event.json(), state);
    event.json().key("how").value(how).key("summary").value(state.report.summary);
    event.json().key("exit_code").value(static_cast<std::int64_t>(exit_code));
    return print(stdout, event.text());
  }

 private:
  static void write_state(JsonWriter& json, const LiveState& state) {
    json.key("state").value(run_state_name(state.status.state)).key("reason").value(state.status.reason);
    json.key("steps").value(state.steps).key("last_step").value(state.last_step);
  }
  static std::string finding(const FindingNews& news) {
    Event event(change_name(news.change));
    rules::write_verdict_members(event.json(), news.verdict);
    event.json().key("symptom_of");
    news.cause.empty() ? event.json().null() : event.json().value(news.cause);
    return event.text();
  }

  std::string last_state_;
};

}  // namespace

std::unique_ptr<WatchView> make_watch_lines(const Terminal& terminal) {
  return std::make_unique<WatchLines>(terminal.style);
}

std::unique_ptr<WatchView> make_watch_json() { return std::make_unique<WatchJson>(); }

}  // namespace tornasole::cli
