// tornasole show DIR NAME: one tensor: its numbers, their distribution, and how a statistic went over the steps.

#include <fmt/format.h>

#include <cmath>
#include <memory>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/array_text.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/stat_cells.h"
#include "cli/stat_series.h"
#include "cli/tensor_slice.h"
#include "cli/terminal_chart.h"
#include "cli/trial_arguments.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kHistogramBins = 12;
constexpr std::int64_t kHistogramFrom = 10;  // elements; fewer are read at a glance

struct ShowArguments : TrialArguments {
  std::string name;
  std::string slice;
  std::string stat = "mean";
  std::vector<std::string> parts;
  bool is_log = false;
  bool is_full = false;

  bool wants(std::string_view part) const {
    return parts.empty() || std::find(parts.begin(), parts.end(), part) != parts.end();
  }
};

// Everything that is shown, read once.
struct ShownTensor {
  std::string name = {}, original_name = {}, worker = {};
  GlobalStep global_step = {};
  ModeStep step = {};
  std::optional<Tensor> value = {};
  std::string no_value = {};  // why there is none
  Stats numbers = {};
  std::vector<PlotPoint> points = {};
  std::int64_t unreadable = 0;
};

Result<ModeStep> chosen_step(const TrialTensor& tensor, const ShowArguments& arguments) {
  if (const auto step = arguments.mode_step()) return *step;
  auto steps = tensor.steps(arguments.mode());
  if (steps.empty()) steps = tensor.steps(arguments.mode(), StepFilter::kIncludingIncomplete);
  if (!steps.empty()) return steps.back();
  return not_found_error("tensor \"{}\" was not saved in mode {}", tensor.name(), mode_name(arguments.mode()));
}

// The value, or what was stored of it; an error only if there is neither.
Status read_value(const TrialTensor& tensor, const ShowArguments& arguments, ShownTensor* shown) {
  const ModeStep step = shown->step;
  auto value = tensor.value(step, shown->worker);
  if (!value) {
    const auto stored = tensor.reduction_values(step, shown->worker);
    if (!stored || stored->empty()) return value.error();
    shown->no_value = "only reductions were saved";
    shown->numbers = stats_of(*stored);
    return {};
  }
  if (!arguments.slice.empty()) {
    TORNASOLE_TRY(value, slice_of(*value, arguments.slice));
  }
  if (value->dtype() != DType::kString) {
    TORNASOLE_TRY(shown->numbers, stats(view_of(*value), StatSet::all()));
  }
  shown->value = std::move(*value);
  return {};
}

Result<ShownTensor> read(const Trial& trial, const ShowArguments& arguments) {
  TORNASOLE_CHECK(check_worker(trial, arguments.worker));
  TORNASOLE_TRY(const TrialTensor tensor, trial.tensor(arguments.name));
  ShownTensor shown{.name = tensor.name(), .original_name = tensor.original_name()};
  TORNASOLE_TRY(shown.step, chosen_step(tensor, arguments));
  TORNASOLE_TRY(const std::vector<std::string> workers, tensor.workers(shown.step));
  shown.worker = arguments.worker.empty() ? workers.front() : arguments.worker;
  shown.global_step = trial.global_step(shown.step).value_or(GlobalStep{shown.step.number});
  TORNASOLE_CHECK(read_value(tensor, arguments, &shown));
  if (arguments.wants("plot") && arguments.slice.empty()) {
    TORNASOLE_TRY(StatSeries series, series_of(trial, {.names = {shown.name},
                                                       .stat = *parse_stat(arguments.stat),
                                                       .mode = arguments.mode(),
                                                       .worker = shown.worker}));
    if (!series.lines.empty()) shown.points = std::move(series.lines.begin()->second);
    shown.unreadable = series.unreadable;
  }
  return shown;
}

std::string heading_text(const ShownTensor& shown, const Trial& trial, const Terminal& terminal) {
  std::string text = terminal.style.heading(printable(shown.name)) + "\n";
  if (!shown.original_name.empty() && shown.original_name != shown.name) {
    text += "  called " + printable(shown.original_name) + " by the framework\n";
  }
  std::string what = fmt::format("  step {}, {}", step_text(trial, shown.global_step), shown.worker);
  if (shown.value) what += fmt::format(": {} {}", dtype_name(shown.value->dtype()), shown.value->shape().to_string());
  if (!shown.no_value.empty()) what += ": " + shown.no_value;
  return text + printable(what) + "\n";
}

// In one row, or one below the other where the terminal is too narrow for that.
std::string numbers_table(const Stats& numbers, const Terminal& terminal) {
  std::vector<Cell> cells;
  std::vector<TableText::Column> columns;
  std::size_t width = 0;
  for (const Stat stat : kShownStats) {
    const auto value = numbers[stat];
    if (!value) continue;
    columns.push_back({std::string(stat_name(stat)), TableText::Align::kRight});
    cells.push_back(stat_cell(stat, value));
    width += 2 + std::max(columns.back().heading.size(), cells.back().text.size());
  }
  if (columns.empty()) return "";
  if (width > terminal.table_width()) {
    TableText table({{"statistic"}, {"", TableText::Align::kRight}});
    for (std::size_t i = 0; i < cells.size(); ++i) table.add({{columns[i].heading}, cells[i]});
    return "\n" + table.text(terminal, "  ");
  }
  TableText table(columns);
  table.add(cells);
  return "\n" + table.text(terminal, "  ");
}

std::string numbers_text(const ShownTensor& shown, const Terminal& terminal) {
  std::string text = numbers_table(shown.numbers, terminal);
  const auto first = shown.numbers[Stat::kFirstNonFinite];
  if (first && *first >= 0 && shown.value) {
    text += terminal.style.error(fmt::format("  first NaN or Inf at {}",
                                             index_text(shown.value->shape(), static_cast<std::int64_t>(*first)))) +
            "\n";
  }
  return text;
}

std::string show_text(const ShownTensor& shown, const Trial& trial, const ShowArguments& arguments,
                      const Terminal& terminal) {
  std::string text = heading_text(shown, trial, terminal);
  if (arguments.wants("stats")) text += numbers_text(shown, terminal);
  if (shown.value && arguments.wants("values")) {
    ArrayTextOptions options{.line_width = std::min<std::size_t>(75, terminal.width)};
    if (arguments.is_full) options.threshold = std::numeric_limits<std::int64_t>::max();
    text += "\n" + array_text(*shown.value, options) + "\n";
  }
  if (shown.value && shown.value->dtype() != DType::kString && shown.value->element_count() >= kHistogramFrom &&
      arguments.wants("histogram")) {
    text += "\n" + histogram_text(histogram_of(ElementReader(*shown.value), kHistogramBins), terminal);
  }
  if (shown.points.size() > 1) {
    text += fmt::format(
        "\n{} over {}\n", arguments.stat,
        arguments.mode() == Mode::kGlobal ? "global steps" : fmt::format("steps of {}", mode_name(arguments.mode())));
    text += chart_text({.points = shown.points, .is_log = arguments.is_log}, terminal);
  }
  if (shown.unreadable > 0) {
    text += terminal.style.warning(fmt::format("{} could not be read", counted(shown.unreadable, "value"))) + "\n";
  }
  return text;
}

void write_elements(JsonWriter& json, const Tensor& value) {
  const ElementReader reader(value);
  json.begin_array();
  for (std::int64_t i = 0; i < reader.count(); ++i) {
    switch (reader.kind()) {
      case ElementKind::kText: json.value(reader.text(i)); break;
      case ElementKind::kBool: json.value(reader.real(i) != 0); break;
      case ElementKind::kInteger: json.raw(reader.integer_text(i)); break;
      case ElementKind::kReal: write_number(json, reader.real(i)); break;
      case ElementKind::kComplex:
        json.begin_array();
        write_number(json, reader.real(i));
        write_number(json, reader.imaginary(i));
        json.end_array();
        break;
    }
  }
  json.end_array();
}

std::string show_json(const ShownTensor& shown, const ShowArguments& arguments) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object();
  json.key("name").value(shown.name).key("global_step").value(shown.global_step.number);
  json.key("mode").value(mode_name(shown.step.mode)).key("mode_step").value(shown.step.number);
  json.key("worker").value(shown.worker);
  json.key("stats");
  write_stats(json, shown.numbers);
  if (shown.value) {
    json.key("dtype").value(dtype_name(shown.value->dtype())).key("shape").begin_array();
    for (const std::int64_t dim : shown.value->shape().dims()) json.value(dim);
    json.end_array();
    if (arguments.wants("values")) {
      json.key("values");  // flat, row-major
      write_elements(json, *shown.value);
    }
  }
  if (!shown.points.empty()) {
    json.key("over_steps").begin_object().key("stat").value(arguments.stat).key("points").begin_array();
    for (const PlotPoint& point : shown.points) {
      json.begin_array().value(static_cast<std::int64_t>(point.x));
      write_number(json, point.y);
      json.end_array();
    }
    json.end_array().end_object();
  }
  json.key("unreadable").value(shown.unreadable);
  json.end_object();
  return text + "\n";
}

int show(const ShowArguments& arguments) {
  const auto trial = open_trial(arguments.dir);
  if (!trial) return fail(trial.error(), arguments.as_json);
  if (!arguments.as_json) warn_of_damage(*trial);
  const auto shown = read(*trial, arguments);
  if (!shown) return fail(shown.error(), arguments.as_json);
  return answer(arguments.as_json ? show_json(*shown, arguments)
                                  : show_text(*shown, *trial, arguments, Terminal::of(stdout)));
}

}  // namespace

void add_show_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "show",
      "One tensor at one step, the last one unless --step says else: statistics, values as NumPy prints them, a "
      "histogram, and a plot of a statistic over the steps.");
  const auto arguments = std::make_shared<ShowArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("NAME", arguments->name, "The tensor, as ls prints it")->required()->type_name("");
  add_step(command, arguments.get());
  add_mode(command, arguments.get());
  add_worker(command, arguments.get());
  command->add_option("--slice", arguments->slice, "A part of the value, in Python's words: 0:3,:,1")
      ->type_name("PART");
  add_stat(command, "--stat", &arguments->stat, "What is plotted over the steps");
  command->add_flag("--log", arguments->is_log, "Plot on a logarithmic scale");
  command->add_option("--only", arguments->parts, "Only these parts of the answer")
      ->check(CLI::IsMember({"stats", "values", "histogram", "plot"}))
      ->allow_extra_args(false);
  command->add_flag("--full", arguments->is_full, "Print every value, however many");
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole show runs/mnist gradient/fc1.weight --mode train --step 100 --slice 0:3,:\n"
      "\n"
      "Exit codes: 0; 1 the value cannot be read; 2 no such directory, tensor, step or worker.");
  command->callback([arguments, exit_code] { *exit_code = show(*arguments); });
}

}  // namespace tornasole::cli
