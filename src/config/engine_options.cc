#include "config/engine_options.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <concepts>
#include <optional>

#include "base/errors.h"
#include "config/locations.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

constexpr std::int64_t kMaxBytes = std::int64_t{1} << 50;
constexpr std::int64_t kMaxCount = std::int64_t{1} << 40;

// Arguments become Json so that every source passes the same checks.
Json to_json(std::integral auto value) { return {static_cast<std::int64_t>(value), 0}; }
Json to_json(bool value) { return {value, 0}; }
Json to_json(double value) { return {value, 0}; }
Json to_json(const std::string& value) { return {value, 0}; }
Json to_json(WhenFull value) { return {std::string(value == WhenFull::kBlock ? "block" : "drop"), 0}; }
Json to_json(const std::vector<std::string>& values) {
  Json::Array items;
  for (const std::string& value : values) items.push_back(to_json(value));
  return {std::move(items), 0};
}

template <auto Member>
std::optional<Json> argument(const HookOptions& options) {
  const auto& value = options.*Member;
  if (!value) return std::nullopt;
  return to_json(*value);
}

template <auto Member, std::int64_t min, std::int64_t max>
Status integer(const Json& value, Config* config) {
  constexpr IntegerRange kRange{min, max};
  TORNASOLE_TRY(config->*Member, read_integer(value, kRange));
  return {};
}
template <auto Member>
Status boolean(const Json& value, Config* config) {
  TORNASOLE_TRY(config->*Member, read_bool(value));
  return {};
}

Status fsync(const Json& value, Config* config) {
  constexpr double kMaxSeconds = 3600;
  const Error refused =
      invalid_error("{} is not allowed; allowed: none, step, or a time up to 3600 s as in 5s", value.to_message());
  const auto* text = value.as_string();
  if (text == nullptr) return refused;
  const std::string_view word = trim(*text);
  config->fsync_interval_s = 0;
  if (word == "none" || word == "step") {
    config->fsync = word == "none" ? FsyncPolicy::kNone : FsyncPolicy::kStep;
    return {};
  }
  if (word.size() < 2 || word.back() != 's') return refused;
  const auto seconds = read_number(Json(std::string(word.substr(0, word.size() - 1)), 0), 0, kMaxSeconds);
  if (!seconds || *seconds <= 0) return refused;
  config->fsync = FsyncPolicy::kInterval;
  config->fsync_interval_s = *seconds;
  return {};
}

Status when_full(const Json& value, Config* config) {
  static constexpr std::array<std::string_view, 2> kAllowed = {"drop", "block"};
  TORNASOLE_TRY(const std::size_t choice, read_choice(value, kAllowed));
  config->when_full = choice == 0 ? WhenFull::kDrop : WhenFull::kBlock;
  return {};
}

Status close_wait(const Json& value, Config* config) {
  TORNASOLE_TRY(config->close_wait_s, read_number(value, 0, 86400));
  return {};
}

Status spool_dir(const Json& value, Config* config) {
  TORNASOLE_TRY(config->spool_dir, read_text(value));
  return {};
}

Status derived(const Json& value, Config* config) {
  static constexpr std::array<std::string_view, 9> kAllowed = {"counts",         "unit_activity", "unit_range",
                                                               "across_samples", "update",        "cosine_previous",
                                                               "quantiles",      "hash",          "classes"};
  TORNASOLE_TRY(const std::vector<std::string> names, read_texts(value));
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    const std::string_view word = trim(name);
    if (std::find(kAllowed.begin(), kAllowed.end(), word) == kAllowed.end()) {
      return invalid_error("the item {} is not allowed; allowed: {}", Json(name, 0).to_message(), join(kAllowed));
    }
    if (std::find(chosen.begin(), chosen.end(), word) == chosen.end()) chosen.emplace_back(word);
  }
  config->derived = std::move(chosen);
  return {};
}

// Names of rules are looked up by whoever runs them. A path or an expression is refused here, so that a file can name
// what we ship and nothing else.
Status rules(const Json& value, Config* config) {
  TORNASOLE_TRY(const std::vector<std::string> names, read_texts(value));
  std::vector<std::string> chosen;
  for (const std::string& name : names) {
    const std::string_view word = trim(name);
    const bool is_name = !word.empty() && word.size() <= 100 && std::all_of(word.begin(), word.end(), [](char c) {
      return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_' || c == '-';
    });
    if (!is_name) {
      return invalid_error("the item {} is not allowed; allowed: names of rules: letters, digits, _ and -",
                           Json(name, 0).to_message());
    }
    if (std::find(chosen.begin(), chosen.end(), word) == chosen.end()) chosen.emplace_back(word);
  }
  config->rules = std::move(chosen);
  return {};
}

struct EngineOption {
  std::string_view name;
  std::optional<Json> (*argument)(const HookOptions&);
  Status (*read)(const Json&, Config*);
};

using O = HookOptions;
using C = Config;
// clang-format off
constexpr std::array kOptions = {
    EngineOption{"fsync", argument<&O::fsync>, fsync},
    EngineOption{"when_full", argument<&O::when_full>, when_full},
    EngineOption{"queue_bytes", argument<&O::queue_bytes>, integer<&C::queue_bytes, 1, kMaxBytes>},
    EngineOption{"queue_wait_ms", argument<&O::queue_wait_ms>, integer<&C::queue_wait_ms, 0, 3'600'000>},
    EngineOption{"close_wait_s", argument<&O::close_wait_s>, close_wait},
    EngineOption{"spool_dir", argument<&O::spool_dir>, spool_dir},
    EngineOption{"spool_bytes", argument<&O::spool_bytes>, integer<&C::spool_bytes, 1, kMaxBytes>},
    EngineOption{"readable_by_smdebug", argument<&O::readable_by_smdebug>, boolean<&C::readable_by_smdebug>},
    EngineOption{"resume", argument<&O::resume>, boolean<&C::resume>},
    EngineOption{"shared", argument<&O::shared>, boolean<&C::shared>},
    EngineOption{"flush_on_signal", argument<&O::flush_on_signal>, boolean<&C::flush_on_signal>},
    EngineOption{"honour_stop", argument<&O::honour_stop>, boolean<&C::honour_stop>},
    EngineOption{"reduce_threads", argument<&O::reduce_threads>, integer<&C::reduce_threads, 1, 64>},
    EngineOption{"max_bytes_per_step", argument<&O::max_bytes_per_step>, integer<&C::max_bytes_per_step, 1, kMaxBytes>},
    EngineOption{"max_bytes_per_run", argument<&O::max_bytes_per_run>, integer<&C::max_bytes_per_run, 1, kMaxBytes>},
    EngineOption{"keep_steps", argument<&O::keep_steps>, integer<&C::keep_steps, 1, kMaxCount>},
    EngineOption{"flight_recorder_steps", argument<&O::flight_recorder_steps>, integer<&C::flight_recorder_steps, 0, 1'000'000>},
    EngineOption{"flight_recorder_bytes", argument<&O::flight_recorder_bytes>, integer<&C::flight_recorder_bytes, 1, kMaxBytes>},
    EngineOption{"flight_recorder_raw", argument<&O::flight_recorder_raw>, boolean<&C::flight_recorder_raw>},
    EngineOption{"derived", argument<&O::derived>, derived},
    EngineOption{"capture_functional", argument<&O::capture_functional>, boolean<&C::capture_functional>},
    EngineOption{"stable_names", argument<&O::stable_names>, boolean<&C::stable_names>},
    EngineOption{"warn_unmatched", argument<&O::warn_unmatched>, boolean<&C::warn_unmatched>},
    EngineOption{"rules", argument<&O::rules>, rules},
};
// clang-format on

std::string variable_of(std::string_view option) {
  std::string name = "TORNASOLE_";
  for (const char c : option) name.push_back(static_cast<char>(std::toupper(static_cast<unsigned char>(c))));
  return name;
}

class Applier {
 public:
  Applier(const EngineOption& option, Config* config, Problems* problems)
      : option_(option), config_(*config), problems_(*problems) {}

  // Called from the weakest source to the strongest, so that each one overwrites what stood before.
  void apply(const Json& value, const Place& place, const std::string& origin) {
    if (auto read = option_.read(value, &config_); !read) {
      problems_.add(place, read.error());
    } else {
      config_.origins[std::string(option_.name)] = origin;
    }
  }

 private:
  const EngineOption& option_;
  Config& config_;
  Problems& problems_;
};

}  // namespace

const std::vector<std::string>& engine_option_names() {
  static const std::vector<std::string> kNames = [] {
    std::vector<std::string> names;
    for (const EngineOption& option : kOptions) names.emplace_back(option.name);
    return names;
  }();
  return kNames;
}

void apply_engine_options(const HookOptions& options, const Environment& environment, const FileOptions& file_options,
                          Config* config, Problems* problems) {
  // Objects are uploaded at the end, which takes longer than closing files.
  if (config->location.rfind("s3://", 0) == 0) config->close_wait_s = 30;
  for (const EngineOption& option : kOptions) {
    Applier applier(option, config, problems);
    const auto in_file = file_options.values.find(option.name);
    if (in_file != file_options.values.end() && !in_file->second.is_null()) {
      const int line = in_file->second.line();
      applier.apply(in_file->second, {file_options.file, line, file_options.key_prefix + std::string(option.name)},
                    "line " + std::to_string(line));
    }
    const std::string variable = variable_of(option.name);
    if (auto text = environment.get_nonempty(variable)) {
      applier.apply(Json(std::move(*text), 0), {"", 0, "environment variable " + variable}, variable);
    }
    if (auto value = option.argument(options)) applier.apply(*value, {"", 0, std::string(option.name)}, "argument");
  }
  if (config->spool_dir) {
    const std::string path = expand_home(*config->spool_dir, environment);
    if (path.rfind("s3://", 0) == 0) {
      problems->add({"", 0, "spool_dir"},
                    invalid_error("{} is not allowed; allowed: a local directory", Json(path, 0).to_message()));
    } else {
      problems->take(absolute_location(path), {"", 0, "spool_dir"}, &config->spool_dir);
    }
  }
}

}  // namespace tornasole::config
