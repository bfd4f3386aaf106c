// tornasole stats DIR [PATTERN]: a table of statistics, one row for each tensor.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>

#include "base/errors.h"
#include "cli/command_output.h"
#include "cli/number_text.h"
#include "cli/progress_bar.h"
#include "cli/stat_cells.h"
#include "cli/trial_arguments.h"

namespace tornasole::cli {
namespace {

struct StatsArguments : TrialArguments {
  std::vector<std::string> patterns;
  std::string sort;
  bool ascending = false;
};

struct StatsRow {
  std::string name = {}, worker = {};
  GlobalStep step = {};
  ModeStep at = {};  // the step as it was asked for
  std::string dtype = {}, shape = {};
  Stats numbers = {};
  std::string problem = {};
  Status filled = {};
};

// The row of a tensor, without what has to be read from its value.
Result<StatsRow> row_of(const Trial& trial, const std::string& name, const StatsArguments& arguments) {
  TORNASOLE_TRY(const TrialTensor tensor, trial.tensor(name));
  StatsRow row{.name = name};
  if (const auto given = arguments.mode_step()) {
    row.at = *given;
  } else {
    auto steps = tensor.steps(arguments.mode());
    if (steps.empty()) steps = tensor.steps(arguments.mode(), StepFilter::kIncludingIncomplete);
    if (steps.empty()) return not_found_error("{} has no steps in that mode", name);
    row.at = steps.back();
  }
  TORNASOLE_TRY(const std::vector<std::string> workers, tensor.workers(row.at));
  row.worker = arguments.worker.empty() ? workers.front() : arguments.worker;
  row.step = trial.global_step(row.at).value_or(GlobalStep{row.at.number});
  return row;
}

Status fill(StatsRow* row, const Tensor& value, StatSet wanted) {
  row->dtype = dtype_name(value.dtype());
  row->shape = value.shape().to_string();
  if (value.dtype() == DType::kString) return {};
  TORNASOLE_TRY(row->numbers, stats(view_of(value), wanted));
  return {};
}

struct WithoutValue {
  Error why = {};
  std::map<Reduction, Tensor> reductions = {};
  bool is_damaged = false;  // one of its reductions cannot be read
};

// Of a row whose value is not to be had: the stored reductions, else the shape, else why.
Status fill_without_value(StatsRow* row, const Trial& trial, const WithoutValue& have) {
  TORNASOLE_TRY(const TrialTensor tensor, trial.tensor(row->name));
  const auto shape = tensor.shape(row->at, row->worker);
  if (shape) row->shape = shape->to_string();
  if (!have.reductions.empty() && !have.is_damaged) {
    row->dtype = "reductions";
    row->numbers = stats_of(have.reductions);
  } else if (shape) {
    row->dtype = "shape";
  } else {
    row->problem = have.why.message;
  }
  return {};
}

// The largest first, and what is not a number before all; rows without the statistic last.
void sort_rows(std::vector<StatsRow>* rows, Stat stat, bool ascending) {
  const auto rank = [&](const StatsRow& row) {
    const auto value = row.numbers[stat];
    return !value ? 2 : std::isnan(*value) ? 0 : 1;
  };
  std::stable_sort(rows->begin(), rows->end(), [&](const StatsRow& a, const StatsRow& b) {
    if (rank(a) != rank(b)) return rank(a) < rank(b);
    if (rank(a) != 1) return false;
    return ascending ? *a.numbers[stat] < *b.numbers[stat] : *a.numbers[stat] > *b.numbers[stat];
  });
}

// Which columns a narrow terminal loses first; NaN and Inf are always there.
int expendable(Stat stat) noexcept {
  switch (stat) {
    case Stat::kCount: return 8;
    case Stat::kZeros: return 7;
    case Stat::kL2: return 5;
    case Stat::kStd: return 4;
    case Stat::kMin: return 3;
    case Stat::kMax: return 2;
    default: return 0;
  }
}

std::string rows_text(const std::vector<StatsRow>& rows, std::optional<Stat> sort, const Terminal& terminal) {
  std::vector<Stat> shown(kShownStats.begin(), kShownStats.end());
  if (sort && std::find(shown.begin(), shown.end(), *sort) == shown.end()) shown.push_back(*sort);
  const bool has_workers =
      std::any_of(rows.begin(), rows.end(), [&](const StatsRow& row) { return row.worker != rows.front().worker; });
  using Align = TableText::Align;
  std::vector<TableText::Column> columns = {{" "},
                                            {"tensor", Align::kLeft, true},
                                            {"step", Align::kRight, false, 1},
                                            {"dtype", Align::kLeft, false, 9},
                                            {"shape", Align::kLeft, false, 6}};
  if (has_workers) columns.push_back({"worker"});
  for (const Stat stat : shown) {
    const bool is_asked_for = sort == stat;
    columns.push_back({std::string(stat_name(stat)), Align::kRight, false, is_asked_for ? 0 : expendable(stat)});
  }
  TableText table(columns);
  for (const StatsRow& row : rows) {
    const bool is_bad = has_non_finite(row.numbers) || !row.problem.empty();
    std::vector<Cell> cells = {
        {is_bad ? "!" : " ", Tone::kError},
        {row.name, is_bad ? Tone::kError : Tone::kPlain},
        {fmt::format("{}", row.step.number)},
        {row.problem.empty() ? row.dtype : "damaged", row.problem.empty() ? Tone::kPlain : Tone::kError},
        {row.shape}};
    if (has_workers) cells.push_back({row.worker});
    for (const Stat stat : shown) cells.push_back(stat_cell(stat, row.numbers[stat]));
    table.add(std::move(cells));
  }
  return table.text(terminal);
}

std::string rows_json(const std::vector<StatsRow>& rows, const Trial& trial) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("trial").value(trial.path()).key("tensors").begin_array();
  for (const StatsRow& row : rows) {
    json.begin_object();
    json.key("name").value(row.name).key("worker").value(row.worker).key("global_step").value(row.step.number);
    json.key("dtype").value(row.dtype).key("shape").value(row.shape);
    json.key("stats");
    write_stats(json, row.numbers);
    if (!row.problem.empty()) json.key("error").value(row.problem);
    json.end_object();
  }
  json.end_array().end_object();
  return text + "\n";
}

// Reads what the rows are about, each file once: first the values, then the stored reductions of those without one.
Status fill_rows(const Trial& trial, StatSet wanted, std::vector<StatsRow>* rows) {
  std::vector<ValueQuery> queries;
  for (const StatsRow& row : *rows) queries.push_back({.name = row.name, .step = row.at, .worker = row.worker});
  std::map<std::size_t, WithoutValue> without_value;  // by row
  ProgressBar progress("reading", rows->size());
  std::size_t done = 0;
  TORNASOLE_CHECK(trial.read(queries, [&](std::size_t place, const Result<Tensor>& value) {
    if (value) {
      (*rows)[place].filled = fill(&(*rows)[place], *value, wanted);
    } else {
      without_value[place].why = value.error();
    }
    progress.update(++done);
    return true;
  }));
  std::vector<ValueQuery> stored;
  std::vector<WithoutValue*> of;
  for (auto& [place, have] : without_value) {
    TORNASOLE_TRY(const TrialTensor tensor, trial.tensor((*rows)[place].name));
    const auto kinds = tensor.stored_reductions((*rows)[place].at, (*rows)[place].worker);
    if (!kinds) continue;
    for (const Reduction& kind : *kinds) {
      stored.push_back(queries[place]);
      stored.back().reduction = kind;
      of.push_back(&have);
    }
  }
  TORNASOLE_CHECK(trial.read(stored, [&](std::size_t place, Result<Tensor> value) {
    if (value) {
      of[place]->reductions.emplace(*stored[place].reduction, std::move(*value));
    } else {
      of[place]->is_damaged = true;
    }
    return true;
  }));
  for (const auto& [place, have] : without_value) {
    (*rows)[place].filled = fill_without_value(&(*rows)[place], trial, have);
  }
  return {};
}

Result<std::vector<StatsRow>> collect(const Trial& trial, const StatsArguments& arguments, StatSet wanted) {
  TORNASOLE_CHECK(check_worker(trial, arguments.worker));
  TORNASOLE_TRY(const std::vector<std::string> names, names_matching(trial, arguments.patterns, arguments.mode()));
  std::vector<StatsRow> rows;
  std::optional<Error> last_error;
  for (const std::string& name : names) {
    auto row = row_of(trial, name, arguments);
    if (row) {
      rows.push_back(std::move(*row));
    } else {
      last_error = row.error();  // not saved at this step or by this worker: no row
    }
  }
  TORNASOLE_CHECK(fill_rows(trial, wanted, &rows));
  for (const StatsRow& row : rows) {
    if (!row.filled) last_error = row.filled.error();
  }
  std::erase_if(rows, [](const StatsRow& row) { return !row.filled.ok(); });
  if (rows.empty() && last_error) return *last_error;
  return rows;
}

int stats_table(const StatsArguments& arguments) {
  const auto trial = open_trial(arguments.dir);
  if (!trial) return fail(trial.error(), arguments.as_json);
  if (!arguments.as_json) warn_of_damage(*trial);
  const auto sort = parse_stat(arguments.sort);
  StatSet wanted = arguments.as_json ? StatSet::all() : StatSet::cheap();
  if (sort) wanted.add(*sort);
  auto rows = collect(*trial, arguments, wanted);
  if (!rows) return fail(rows.error(), arguments.as_json);
  if (sort) sort_rows(&*rows, *sort, arguments.ascending);
  if (arguments.as_json) return answer(rows_json(*rows, *trial));
  return answer(rows->empty() ? "no tensors\n" : rows_text(*rows, sort, Terminal::of(stdout)));
}

}  // namespace

void add_stats_command(CLI::App& app, int* exit_code) {
  CLI::App* command = app.add_subcommand(
      "stats",
      "A table of statistics, one row for each tensor, at its last step unless --step says else. A row with NaN or "
      "Inf has a ! in front.");
  const auto arguments = std::make_shared<StatsArguments>();  // shared: the parser keeps the callback
  add_dir(command, arguments.get());
  command->add_option("PATTERN", arguments->patterns, "Only tensors with this in their name (as Python's re.search)")
      ->type_name("");
  add_stat(command, "--sort", &arguments->sort, "The largest of this statistic first, NaN before all");
  command->add_flag("--ascending", arguments->ascending, "With --sort: the smallest first");
  add_step(command, arguments.get());
  add_mode(command, arguments.get());
  add_worker(command, arguments.get());
  add_json(command, arguments.get());
  command->footer(
      "Example:\n"
      "  tornasole stats runs/mnist gradient --sort l2 --mode train --step 100\n"
      "\n"
      "Exit codes: 0; 1 the trial cannot be read; 2 no such directory, tensor, step or worker.");
  command->callback([arguments, exit_code] { *exit_code = stats_table(*arguments); });
}

}  // namespace tornasole::cli
