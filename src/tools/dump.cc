#include "tools/dump.h"

#include <algorithm>
#include <set>
#include <string>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "tools/dump_value.h"

namespace tornasole::tools {
namespace {

constexpr std::size_t kPieceBytes = std::size_t{64} << 10;

void write_steps(JsonWriter& json, const std::vector<ModeStep>& steps) {
  json.begin_array();
  for (const ModeStep& step : steps) json.value(step.number);
  json.end_array();
}

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

// Every step, complete or not, partial ones as well.
template <typename Source>
std::vector<ModeStep> all_steps(const Source& source, Mode mode) {
  std::set<ModeStep> steps;
  for (const StepFilter filter : {StepFilter::kIncludingIncomplete, StepFilter::kPartial}) {
    for (const ModeStep& step : source.steps(mode, filter)) steps.insert(step);
  }
  return {steps.begin(), steps.end()};
}

class Dump {
 public:
  Dump(const Trial& trial, std::int64_t max_elements, const TextSink& sink)
      : trial_(trial), max_elements_(max_elements), sink_(sink), json_(&text_) {}

  Status run() {
    json_.begin_object().key("reader").value("tornasole");
    TORNASOLE_CHECK(write_trial());
    TORNASOLE_CHECK(write_collections());
    TORNASOLE_CHECK(write_tensors());
    json_.end_object();
    text_ += '\n';
    return sink_(text_);
  }

 private:
  Status pass_on() {
    if (text_.size() < kPieceBytes) return {};
    Status passed = sink_(text_);
    text_.clear();
    return passed;
  }

  Result<std::vector<std::string>> names_of(const NameQuery& query) const { return trial_.tensor_names(query); }

  Status write_trial() {
    json_.key("trial").begin_object();
    json_.key("training_ended").value(trial_.loaded_all_steps());
    json_.key("num_workers").value(trial_.num_workers());
    json_.key("workers");
    write_texts(json_, trial_.workers());
    std::vector<std::string> modes;
    for (const Mode mode : trial_.modes()) modes.emplace_back(mode_name(mode));
    std::ranges::sort(modes);
    json_.key("modes");
    write_texts(json_, modes);
    for (const auto& [key, filter] : {std::pair("steps", StepFilter::kComplete),
                                      std::pair("steps_including_incomplete", StepFilter::kIncludingIncomplete)}) {
      json_.key(key).begin_object();
      for (const Mode mode : kAllModes) {
        json_.key(mode_name(mode));
        write_steps(json_, trial_.steps(mode, filter));
      }
      json_.end_object();
    }
    json_.key("last_complete_step").value(trial_.last_complete_step());
    TORNASOLE_CHECK(write_mode_steps());
    TORNASOLE_CHECK(write_names());
    json_.end_object();
    return pass_on();
  }

  Status write_mode_steps() {
    json_.key("global_step_to_mode_step").begin_array();
    for (const ModeStep& step : all_steps(trial_, Mode::kGlobal)) {
      const auto mode_step = trial_.mode_step({step.number});
      if (!mode_step) continue;
      json_.begin_array().value(step.number).value(mode_name(mode_step->mode)).value(mode_step->number).end_array();
      TORNASOLE_CHECK(pass_on());
    }
    json_.end_array();
    return {};
  }

  Status write_names() {
    TORNASOLE_TRY(const auto names, names_of({}));
    json_.key("tensor_names");
    write_texts(json_, names);
    json_.key("tensor_names_by_mode").begin_object();
    for (const Mode mode : trial_.modes()) {
      TORNASOLE_TRY(const auto of_mode, names_of({.mode = mode}));
      json_.key(mode_name(mode));
      write_texts(json_, of_mode);
    }
    json_.end_object().key("tensor_names_by_global_step").begin_object();
    for (const ModeStep& step : all_steps(trial_, Mode::kGlobal)) {
      TORNASOLE_TRY(const auto of_step, names_of({.step = step}));
      json_.key(fmt::format("{}", step.number));
      write_texts(json_, of_step);
      TORNASOLE_CHECK(pass_on());
    }
    json_.end_object();
    return {};
  }

  Status write_collections() {
    json_.key("collections").begin_object();
    for (const auto& [name, collection] : trial_.collections()) {
      json_.key(name).begin_object().key("include_regex");
      write_texts(json_, collection.include_regex);
      json_.key("tensor_names");
      write_texts(json_, collection.tensor_names);
      json_.key("reduction_config").raw(collection.reduction_config.empty() ? "null" : collection.reduction_config);
      json_.key("save_config").raw(collection.save_config.empty() ? "null" : collection.save_config);
      json_.key("save_histogram").value(collection.save_histogram);
      TORNASOLE_TRY(const auto members, names_of({.collection = name}));
      json_.key("saved_tensors");
      write_texts(json_, members);
      json_.end_object();
      TORNASOLE_CHECK(pass_on());
    }
    json_.end_object();
    return {};
  }

  Status write_tensors() {
    json_.key("tensors").begin_array();
    TORNASOLE_TRY(const auto names, names_of({}));
    for (const std::string& name : names) {
      TORNASOLE_TRY(const TrialTensor tensor, trial_.tensor(name));
      TORNASOLE_CHECK(write_tensor(tensor));
    }
    json_.end_array();
    return {};
  }

  Status write_tensor(const TrialTensor& tensor) {
    json_.begin_object().key("name").value(tensor.name()).key("original_name");
    if (tensor.original_name().empty()) {
      json_.null();
    } else {
      json_.value(tensor.original_name());
    }
    json_.key("steps").begin_object();
    for (const Mode mode : kAllModes) {
      const std::vector<ModeStep> steps = all_steps(tensor, mode);
      if (steps.empty() && mode != Mode::kGlobal) continue;
      json_.key(mode_name(mode));
      write_steps(json_, steps);
    }
    json_.end_object().key("entries").begin_array();
    for (const ModeStep& step : all_steps(tensor, Mode::kGlobal)) {
      const auto workers = tensor.workers(step);
      if (!workers.ok()) continue;
      for (const std::string& worker : *workers) TORNASOLE_CHECK(write_entry(tensor, step, worker));
    }
    json_.end_array().end_object();
    return pass_on();
  }

  Status write_entry(const TrialTensor& tensor, ModeStep step, const std::string& worker) {
    const ModeStep mode_step = trial_.mode_step({step.number}).value_or(step);
    json_.begin_object().key("global_step").value(step.number).key("mode").value(mode_name(mode_step.mode));
    json_.key("mode_step").value(mode_step.number).key("worker").value(worker).key("shape");
    if (const auto shape = tensor.shape(step, worker); shape.ok()) {
      json_.begin_array();
      for (const std::int64_t extent : shape->dims()) json_.value(extent);
      json_.end_array();
    } else {
      write_dump_error(json_, shape.error());
    }
    json_.key("value");
    if (const auto value = tensor.value(step, worker); value.ok()) {
      write_dump_value(json_, *value, max_elements_);
    } else {
      write_dump_error(json_, value.error());
    }
    json_.key("reductions").begin_object();
    const auto reductions = tensor.reduction_values(step, worker);
    if (reductions.ok()) {
      for (const auto& [reduction, value] : *reductions) {
        json_.key(reduction_name(reduction));
        write_dump_value(json_, value, max_elements_);
      }
    }
    json_.end_object();
    if (!reductions.ok()) {
      json_.key("reductions_error");
      write_dump_error(json_, reductions.error());
    }
    json_.key("value_announced").value(tensor.has_value(step, worker)).end_object();
    return pass_on();
  }

  const Trial& trial_;
  const std::int64_t max_elements_;
  const TextSink& sink_;
  std::string text_;
  JsonWriter json_;
};

Status dump_refusal(const Error& error, const TextSink& sink) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("reader").value("tornasole").key("open");
  write_dump_error(json, error);
  json.end_object();
  text += '\n';
  return sink(text);
}

}  // namespace

Status dump(const DumpOptions& options, const TextSink& sink, bool* is_open) {
  TrialOptions trial_options = options.trial;
  // Whoever dumps wants what is there now; nothing is waited for.
  if (!trial_options.end_delay_s) trial_options.end_delay_s = 0;
  auto trial = Trial::open(trial_options);
  const Status refreshed = trial.ok() ? trial->refresh() : Status();
  const bool opened = trial.ok() && refreshed.ok();
  if (is_open != nullptr) *is_open = opened;
  if (!opened) return dump_refusal(trial.ok() ? refreshed.error() : trial.error(), sink);
  return Dump(*trial, options.max_elements, sink).run();
}

}  // namespace tornasole::tools
