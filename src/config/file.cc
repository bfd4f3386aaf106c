// The text of a configuration file -> Config. In order:
//   1. JSON, leniently: a byte-order mark and trailing commas are warned of; 1 MiB and 64 levels are the limits.
//   2. The top level, HookParameters, then each element of CollectionConfigurations.
//   3. Schedules, field by field: collection's mode, collection, hook's mode, hook, default.
//   4. Places and engine options, where the environment and arguments have their say.
// Errors are gathered, so that one look shows all of them.

#include <algorithm>

#include "base/errors.h"
#include "base/json.h"
#include "config/config.h"
#include "config/engine_options.h"
#include "config/environment.h"
#include "config/file_parameters.h"
#include "config/foundation.h"
#include "config/locations.h"
#include "config/schedules.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

const std::vector<std::string>& top_keys() {
  static const std::vector<std::string> kKeys = {
      "LocalPath", "S3OutputPath", "S3Path", "HookParameters", "CollectionConfigurations", "CollectionConfiguration"};
  return kKeys;
}
const std::vector<std::string>& element_keys() {
  static const std::vector<std::string> kKeys = {"CollectionName", "CollectionParameters"};
  return kKeys;
}

class FileReader {
 public:
  FileReader(std::string file, const HookOptions& options, const Environment& environment, Problems* problems)
      : file_(std::move(file)), options_(options), environment_(environment), problems_(*problems) {}

  Config read(const Json& root) {
    config_ = start_config(options_, environment_, &problems_);
    config_.source = file_;
    warn_of_ignored_arguments();
    read_top(root);
    apply_hook_parameters();
    if (collections_ != nullptr) read_collections();
    place_files();
    apply_checkpoint_file(environment_, &config_, &problems_);
    apply_engine_options(options_, environment_, {file_, "HookParameters.", hook_.engine_options}, &config_,
                         &problems_);
    finish_config(&config_, &problems_);
    return std::move(config_);
  }

 private:
  Scope scope(std::string path, std::string origin_prefix) {
    return {file_, std::move(path), std::move(origin_prefix), &problems_, &config_.origins};
  }

  void read_top(const Json& root) {
    const Scope top = scope("", "");
    const Json* older = nullptr;
    for_each_member(root, top, top_keys(), [&](const std::string& key, const Json& value) {
      std::string unused;
      if (key == "LocalPath") {
        out_dir_line_ = value.line();
        if (problems_.take(read_text(value), top.place(key, value.line()), &out_dir_)) {
          config_.origins["out_dir"] = "line " + std::to_string(value.line());
        }
      } else if (key == "HookParameters") {
        hook_ = read_hook_parameters(value, scope("HookParameters.", ""));
      } else if (key == "CollectionConfigurations") {
        collections_ = &value;
        collections_key_ = key;
      } else if (key == "CollectionConfiguration") {
        older = &value;
      } else {
        problems_.take(read_text(value), top.place(key, value.line()), &unused);  // the platform's, not ours
      }
    });
    if (older == nullptr) return;
    if (collections_ != nullptr) {
      problems_.warn(top.place("CollectionConfiguration", older->line()),
                     "ignored, since CollectionConfigurations is there too");
      return;
    }
    collections_ = older;
    collections_key_ = "CollectionConfiguration";
  }

  void apply_hook_parameters() {
    for (const Mode mode : kAllModes) {
      const std::size_t m = mode_index(mode);
      config_.schedules[m] = complete_schedule({&hook_.schedule.by_mode[m], &hook_.schedule.every_mode}, interval());
    }
    if (auto spec = hook_.reductions.spec()) config_.reductions = std::move(*spec);
    config_.include_regex = hook_.include_regex;
    config_.save_all = hook_.save_all;
    config_.include_workers = hook_.include_workers;
    config_.dry_run = hook_.dry_run;
  }

  void read_collections() {
    const Json::Array* elements = collections_->as_array();
    if (elements == nullptr) {
      problems_.add({file_, collections_->line(), collections_key_},
                    invalid_error("{} is not allowed; allowed: an array of objects", collections_->to_message()));
      return;
    }
    for (std::size_t i = 0; i < elements->size(); ++i) {
      read_collection((*elements)[i], collections_key_ + "[" + std::to_string(i) + "]");
    }
  }

  void read_collection(const Json& element, const std::string& path) {
    const Scope scope_of_element = scope(path + ".", "");
    std::string name;
    bool has_name = false;
    const Json* parameters = nullptr;
    for_each_member(element, scope_of_element, element_keys(), [&](const std::string& key, const Json& value) {
      if (key == "CollectionParameters") {
        parameters = &value;
      } else {
        has_name = true;
        problems_.take(read_text(value), scope_of_element.place(key, value.line()), &name);
      }
    });
    if (element.as_object() != nullptr && !has_name) {
      problems_.add(scope_of_element.place("CollectionName", element.line()),
                    invalid_error("missing; allowed: the name of a collection"));
    }
    name = resolve_collection_alias(name);
    CollectionParameters read;
    if (parameters != nullptr) {
      read = read_collection_parameters(*parameters, scope(path + ".CollectionParameters.", name + "."));
    }
    if (!name.empty()) merge_collection(name, read);
  }

  // A name that comes again: patterns add up, schedule, form and histogram replace what was there.
  void merge_collection(const std::string& name, const CollectionParameters& parameters) {
    auto& all = config_.collections;
    // Nearly always the last one, or new; a file of 1 MiB holds some 30 000 names, so a map finds the others.
    const auto [position, is_new] = positions_.try_emplace(name, all.size());
    if (is_new) {
      all.push_back({.name = name});
      config_.include_collections.push_back(name);
    }
    CollectionSettings& settings = all[position->second];
    settings.include_regex.insert(settings.include_regex.end(), parameters.include_regex.begin(),
                                  parameters.include_regex.end());
    if (auto spec = parameters.reductions.spec()) settings.reductions = std::move(*spec);
    if (parameters.save_histogram) settings.save_histogram = parameters.save_histogram;
    if (!parameters.schedule.any()) return;
    for (const Mode mode : kAllModes) {
      const std::size_t m = mode_index(mode);
      settings.schedules[m] = complete_schedule({&parameters.schedule.by_mode[m], &parameters.schedule.every_mode,
                                                 &hook_.schedule.by_mode[m], &hook_.schedule.every_mode},
                                                interval());
    }
  }

  void place_files() {
    const std::string given = out_dir_.value_or(std::string(kSageMakerOutDir));
    set_out_dir(given, {file_, out_dir_line_, "LocalPath"}, environment_, &config_, &problems_);
    set_tensorboard_dir(hook_.export_tensorboard, hook_.tensorboard_dir.value_or(""),
                        {file_, hook_.tensorboard_line, "HookParameters.tensorboard_dir"}, environment_, &config_,
                        &problems_);
    apply_tensorboard_file(environment_, &config_, &problems_);
  }

  // A file and the arguments of a constructor are never mixed; saying nothing would look as if they were.
  void warn_of_ignored_arguments() {
    const auto warn_if = [this](bool is_given, const char* name) {
      if (is_given) problems_.warn({"", 0, name}, "the argument is ignored, since a configuration file is used");
    };
    warn_if(!options_.out_dir.empty(), "out_dir");
    warn_if(options_.export_tensorboard, "export_tensorboard");
    warn_if(!options_.tensorboard_dir.empty(), "tensorboard_dir");
    warn_if(options_.dry_run, "dry_run");
    warn_if(options_.reduction_config.has_value(), "reduction_config");
    warn_if(options_.save_config != SaveConfig{}, "save_config");
    warn_if(!options_.include_regex.empty(), "include_regex");
    warn_if(!options_.include_collections.empty(), "include_collections");
    warn_if(options_.save_all, "save_all");
    warn_if(options_.include_workers != IncludeWorkers::kOne, "include_workers");
  }

  std::int64_t interval() const noexcept { return default_save_interval(options_.framework); }

  const std::string file_;
  const HookOptions& options_;
  const Environment& environment_;
  Problems& problems_;
  Config config_;
  HookParameters hook_;
  std::optional<std::string> out_dir_;
  int out_dir_line_ = 0;
  const Json* collections_ = nullptr;
  std::string collections_key_;
  std::map<std::string, std::size_t> positions_;
};

std::optional<Config> read_text_of_file(std::string_view text, const std::string& file_name, const HookOptions& options,
                                        const Environment& environment, Problems* problems) {
  const Place whole{file_name, 0, ""};
  if (text.size() > kMaxConfigBytes) {
    problems->add(whole, invalid_error("{} bytes; allowed: at most {}", text.size(), kMaxConfigBytes));
    return std::nullopt;
  }
  std::vector<std::string> tolerated;
  const auto root = parse_lenient_json(text, {kMaxConfigBytes, kMaxConfigDepth}, &tolerated);
  for (const std::string& warning : tolerated) problems->warn(whole, warning);
  if (!root) {
    problems->add(whole, invalid_error("{}", root.error().message));
    return std::nullopt;
  }
  return FileReader(file_name, options, environment, problems).read(*root);
}

}  // namespace

Inspection inspect_config(std::string_view text, const std::string& file_name, const HookOptions& options,
                          const Environment& environment) {
  Problems problems;
  auto config = read_text_of_file(text, file_name, options, environment, &problems);
  return {.config = std::move(config), .errors = problems.errors(), .warnings = problems.warnings()};
}

Result<Config> parse_config(std::string_view text, const std::string& file_name, const HookOptions& options,
                            const Environment& environment) {
  Problems problems;
  auto config = read_text_of_file(text, file_name, options, environment, &problems);
  if (!problems.errors().empty()) return problems.first_error();
  return std::move(*config);
}

std::vector<Error> check_config(std::string_view text, const std::string& file_name, const HookOptions& options,
                                const Environment& environment) {
  std::vector<Error> errors;
  for (Problem& problem : inspect_config(text, file_name, options, environment).errors) {
    errors.push_back(std::move(problem.error));
  }
  return errors;
}

}  // namespace tornasole::config
