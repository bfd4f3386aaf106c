#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "base/json.h"
#include "base/utf8.h"
#include "cli/number_text.h"
#include "cli/run_state_text.h"
#include "cli/table_text.h"
#include "cli/trial_summary.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kNamedWorkers = 8;
using Align = TableText::Align;

Tone tone_of(RunState state) noexcept {
  if (state == RunState::kFailed) return Tone::kError;
  return state == RunState::kPresumedDead ? Tone::kWarning : Tone::kPlain;
}

std::string workers_text(const std::vector<std::string>& workers) {
  const std::size_t count = std::min(workers.size(), kNamedWorkers);
  std::string text =
      fmt::format("{}", fmt::join(workers.begin(), workers.begin() + static_cast<std::ptrdiff_t>(count), ", "));
  if (workers.size() > count) text += fmt::format(", ... ({})", workers.size());
  return text;
}

std::string range_text(std::int64_t count, std::int64_t first, std::int64_t last) {
  if (count == 0) return "none";
  return count == 1 ? fmt::format("{}", first) : fmt::format("{} to {}", first, last);
}

std::string steps_text(const StepsSummary& steps) {
  std::string text = fmt::format("{}", steps.count);
  if (steps.count > 0) text += fmt::format(" ({})", range_text(steps.count, steps.first, steps.last));
  if (steps.incomplete > 0) text += fmt::format(", {} incomplete", steps.incomplete);
  if (steps.partial > 0) text += fmt::format(", {} partial", steps.partial);
  return text;
}

std::string facts_text(const TrialSummary& summary, const Terminal& terminal) {
  std::vector<std::vector<std::string>> rows = {{"path", summary.path}, {"workers", workers_text(summary.workers)}};
  for (const StepsSummary& steps : summary.steps) {
    const std::string name(steps.mode == Mode::kGlobal ? "steps" : mode_name(steps.mode));
    rows.push_back({name, steps_text(steps)});
  }
  rows.push_back(
      {"size", fmt::format("{} in {}", bytes_text(summary.disk.bytes), counted(summary.disk.files, "file"))});
  if (!summary.requests.empty()) rows.push_back({"requests", requests_text(summary.requests) + " by its writers"});
  std::string text = terminal.style.heading(printable(summary.name)) + ": " +
                     terminal.style.paint(tone_of(summary.status.state), printable(run_status_text(summary.status))) +
                     "\n" + align(rows, "  ");
  if (summary.damaged_files > 0) {
    text += terminal.style.error(fmt::format("  {} damaged; tornasole verify says where",
                                             counted(summary.damaged_files, "file is", "files are"))) +
            "\n";
  }
  return text;
}

std::string collections_text(const TrialSummary& summary, const Terminal& terminal) {
  TableText table({{"collection"}, {"tensors", Align::kRight}, {"patterns", Align::kLeft, true}});
  for (const auto& collection : summary.collections) {
    table.add({{collection.name},
               {fmt::format("{}", collection.tensors), collection.tensors == 0 ? Tone::kFaint : Tone::kPlain},
               {fmt::format("{}", fmt::join(collection.patterns, "  ")), Tone::kFaint}});
  }
  return table.empty() ? "" : "\n" + table.text(terminal);
}

std::string tensors_text(const TrialSummary& summary, const Terminal& terminal) {
  const bool has_details = !summary.tensors.empty() && summary.tensors.front().form.has_value();
  std::vector<TableText::Column> columns = {
      {"tensor", Align::kLeft, true}, {"steps", Align::kRight}, {"first", Align::kRight}, {"last", Align::kRight}};
  if (has_details) columns.insert(columns.end(), {{"saved"}, {"dtype"}, {"shape"}});
  TableText table(columns);
  for (const TensorSummary& tensor : summary.tensors) {
    std::vector<Cell> row = {{tensor.name},
                             {fmt::format("{}", tensor.steps)},
                             {fmt::format("{}", tensor.first)},
                             {fmt::format("{}", tensor.last)}};
    if (has_details) {
      const std::string form = tensor.form.value_or("");
      row.push_back({form, form == "damaged" ? Tone::kError : Tone::kPlain});
      row.push_back({tensor.dtype});
      row.push_back({tensor.shape});
    }
    table.add(std::move(row));
  }
  return table.empty() ? "\nno tensors\n" : "\n" + table.text(terminal);
}

void write_steps(JsonWriter& json, const StepsSummary& steps) {
  json.begin_object();
  json.key("mode").value(mode_name(steps.mode)).key("count").value(steps.count);
  if (steps.count > 0) json.key("first").value(steps.first).key("last").value(steps.last);
  json.key("incomplete").value(steps.incomplete).key("partial").value(steps.partial);
  json.end_object();
}

void write_tensor(JsonWriter& json, const TensorSummary& tensor) {
  json.begin_object();
  json.key("name").value(tensor.name).key("steps").value(tensor.steps);
  json.key("first").value(tensor.first).key("last").value(tensor.last);
  if (tensor.form) json.key("saved").value(*tensor.form).key("dtype").value(tensor.dtype);
  if (tensor.form) json.key("shape").value(tensor.shape);
  json.end_object();
}

}  // namespace

std::string summary_text(const TrialSummary& summary, const Terminal& terminal) {
  return facts_text(summary, terminal) + collections_text(summary, terminal) + tensors_text(summary, terminal);
}

std::string summary_json(const TrialSummary& summary) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object();
  json.key("path").value(summary.path).key("name").value(summary.name);
  json.key("state").value(run_state_name(summary.status.state)).key("reason").value(summary.status.reason);
  json.key("workers").begin_array();
  for (const std::string& worker : summary.workers) json.value(worker);
  json.end_array();
  json.key("steps").begin_array();
  for (const StepsSummary& steps : summary.steps) write_steps(json, steps);
  json.end_array();
  json.key("collections").begin_array();
  for (const auto& collection : summary.collections) {
    json.begin_object().key("name").value(collection.name).key("tensors").value(collection.tensors);
    json.key("patterns").begin_array();
    for (const std::string& pattern : collection.patterns) json.value(pattern);
    json.end_array().end_object();
  }
  json.end_array();
  json.key("tensors").begin_array();
  for (const TensorSummary& tensor : summary.tensors) write_tensor(json, tensor);
  json.end_array();
  json.key("damaged_files").value(summary.damaged_files);
  json.key("files").value(summary.disk.files).key("bytes").value(static_cast<std::int64_t>(summary.disk.bytes));
  if (!summary.requests.empty()) {
    json.key("requests").begin_object();
    for (const auto& [kind, count] : summary.requests) json.key(kind).value(count);
    json.end_object();
  }
  json.end_object();
  return text;
}

std::string overview_text(const std::vector<TrialSummary>& summaries, const Terminal& terminal) {
  TableText table({{"trial", Align::kLeft, true},
                   {"state"},
                   {"workers", Align::kRight, false, 4},
                   {"modes", Align::kLeft, false, 3},
                   {"steps", Align::kRight},
                   {"last", Align::kRight, false, 1},
                   {"tensors", Align::kRight, false, 2},
                   {"size", Align::kRight}});
  for (const TrialSummary& summary : summaries) {
    std::vector<std::string_view> modes;
    for (std::size_t i = 1; i < summary.steps.size(); ++i) modes.push_back(mode_name(summary.steps[i].mode));
    const StepsSummary all = summary.steps.empty() ? StepsSummary{} : summary.steps.front();
    table.add({{summary.path},
               {std::string(run_state_name(summary.status.state)), tone_of(summary.status.state)},
               {fmt::format("{}", summary.workers.size())},
               {fmt::format("{}", fmt::join(modes, " "))},
               {fmt::format("{}", all.count)},
               {all.count > 0 ? fmt::format("{}", all.last) : "-"},
               {fmt::format("{}", summary.tensors.size())},
               {bytes_text(summary.disk.bytes)}});
  }
  return table.text(terminal);
}

}  // namespace tornasole::cli
