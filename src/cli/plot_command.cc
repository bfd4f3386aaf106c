// tornasole plot DIR PATTERN... -o FILE: a statistic over the steps as a picture.

#include <fmt/format.h>

#include <memory>

#include "base/errors.h"
#include "base/utf8.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/plot_drawing.h"
#include "cli/stat_series.h"
#include "cli/terminal.h"
#include "cli/trial_arguments.h"

namespace tornasole::cli {
namespace {

struct PlotArguments : TrialArguments {
  std::vector<std::string> patterns;
  std::string output;
  std::string stat = "mean";
  bool is_log = false;
  StepRange range;
};

Result<Plot> make_plot(const Trial& trial, const PlotArguments& arguments) {
  TORNASOLE_CHECK(check_worker(trial, arguments.worker));
  TORNASOLE_TRY(std::vector<std::string> names, names_matching(trial, arguments.patterns, arguments.mode()));
  TORNASOLE_TRY(StatSeries series, series_of(trial, {.names = std::move(names),
                                                     .stat = *parse_stat(arguments.stat),
                                                     .mode = arguments.mode(),
                                                     .worker = arguments.worker,
                                                     .first_step = arguments.range.first_step(),
                                                     .end_step = arguments.range.end_step()}));
  if (series.lines.empty()) {
    return not_found_error("nothing to plot: no step of the matching tensors has a {}{}{}", arguments.stat,
                           series.unreadable > 0 ? "; first problem: " : "", series.first_error);
  }
  Plot plot{.title = fmt::format("{}: {}", trial.name(), arguments.stat),
            .x_label = arguments.mode() == Mode::kGlobal ? "global step"
                                                         : fmt::format("step of {}", mode_name(arguments.mode())),
            .y_label = arguments.stat,
            .is_log = arguments.is_log};
  const bool has_workers = trial.workers().size() > 1 && arguments.worker.empty();
  bool is_thinned = false;
  const std::size_t all = series.lines.size();
  for (auto& [key, points] : series.lines) {
    if (plot.series.size() == kMaxPlotSeries) break;
    is_thinned |= thin_out(&points, kMaxPlotPoints);
    plot.series.push_back({has_workers ? fmt::format("{} [{}]", key.first, key.second) : key.first, std::move(points)});
  }
  if (all > plot.series.size()) plot.note = fmt::format("the first {} of {} series", plot.series.size(), all);
  if (is_thinned) plot.note += (plot.note.empty() ? "" : "; ") + std::string("thinned, keeping lowest and highest");
  if (series.unreadable > 0) {
    plot.note +=
        fmt::format("{}{} could not be read", plot.note.empty() ? "" : "; ", counted(series.unreadable, "value"));
  }
  return plot;
}

int plot_file(const PlotArguments& arguments) {
  const bool is_png = arguments.output.ends_with(".png");
  if (!is_png && !arguments.output.ends_with(".svg")) {
    return fail(invalid_error("-o {}: allowed: a name that ends in .svg or .png", arguments.output), arguments.as_json);
  }
  const auto trial = open_trial(arguments.dir);
  if (!trial) return fail(trial.error(), arguments.as_json);
  if (!arguments.as_json) warn_of_damage(*trial);
  const auto plot = make_plot(*trial, arguments);
  if (!plot) return fail(plot.error(), arguments.as_json);
  const std::string bytes = is_png ? png_of(*plot) : svg_of(*plot);
  if (const Status written = write_output_file(arguments.output, bytes); !written) {
    return fail(written.error(), arguments.as_json);
  }
  if (arguments.as_json) {
    std::string text;
    JsonWriter json(&text);
    json.begin_object().key("file").value(arguments.output).key("bytes").value(static_cast<std::int64_t>(bytes.size()));
    json.key("series").begin_array();
    for (const PlotSeries& series : plot->series) {
      json.begin_object().key("name").value(series.name);
      json.key("points").value(static_cast<std::int64_t>(series.points.size())).end_object();
    }
    json.end_array().key("note").value(plot->note).end_object();
    return answer(text + "\n");
  }
  if (!plot->note.empty()) warn(plot->note);
  return answer(fmt::format("{}: {} of {}\n", printable(arguments.output),
                            counted(static_cast<std::int64_t>(plot->series.size()), "series", "series"),
                            arguments.stat));
}

}  // namespace

void add_plot_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "plot",
      "Lines of a statistic over the steps, as a picture: SVG or PNG. NaN and infinities are marked at the edge. At "
      "most 24 series; thinned lines keep their lowest and highest points, and the picture says so.");
  const auto arguments = std::make_shared<PlotArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("PATTERN", arguments->patterns, "Tensors with any of these in their name (as Python's re.search)")
      ->required()
      ->type_name("");
  command->add_option("-o,--output", arguments->output, "The picture: a name that ends in .svg or .png")
      ->required()
      ->type_name("FILE");
  add_stat(command, "--stat", &arguments->stat, "What is plotted");
  command->add_flag("--log", arguments->is_log, "A logarithmic scale");
  add_mode(command, arguments.get());
  add_worker(command, arguments.get());
  add_step_range(command, &arguments->range);
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole plot runs/mnist '^gradient/' -o gradients.svg --stat l2 --log --mode train\n"
      "\n"
      "Exit codes: 0; 1 the trial cannot be read or the picture not written; 2 no such directory or tensor.");
  command->callback([arguments, exit_code] { *exit_code = plot_file(*arguments); });
}

}  // namespace tornasole::cli
