#include "config/locations.h"

#include <filesystem>
#include <optional>
#include <system_error>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "config/values.h"

namespace tornasole::config {
namespace {

constexpr std::string_view kS3 = "s3://";

Result<std::string> s3_location(const std::string& path) {
  std::string location(kS3);
  for (const char c : std::string_view(path).substr(kS3.size())) {
    const bool is_repeated = c == '/' && location.size() > kS3.size() && location.back() == '/';
    if (!is_repeated) location.push_back(c);
  }
  if (location.size() == kS3.size() || location[kS3.size()] == '/') {
    return invalid_error("{} names no bucket; allowed: s3://<bucket>/<prefix>", Json(path, 0).to_message());
  }
  return location;
}

// A text like gs://bucket would quietly become a directory called "gs:".
bool has_other_scheme(const std::string& path) {
  const std::size_t at = path.find("://");
  return at != std::string::npos && at > 0 && path.find('/') == at + 1 && path.rfind(kS3, 0) != 0;
}

void warn_of_odd_path(const std::string& path, const Place& place, Problems* problems) {
  if (has_other_scheme(path)) {
    problems->warn(place, Json(path, 0).to_message() + " is taken as a local path; only s3:// is another kind");
  } else if (path.rfind('~', 0) == 0) {
    problems->warn(place, Json(path, 0).to_message() + " names a user without home directory; taken as it is");
  }
}

struct PlatformFile {
  std::string path;
  bool is_named = false;  // by the variable, not by default
};
PlatformFile platform_file(const Environment& environment, std::string_view variable, std::string_view fallback) {
  if (auto path = environment.get_nonempty(variable)) return {*path, true};
  return {std::string(fallback), false};
}

// LocalPath of a file of the platform; nothing when there is no file or no such key.
std::optional<std::string> read_local_path(const PlatformFile& file, std::string_view variable,
                                           const Environment& environment, Problems* problems) {
  const Place whole{file.path, 0, ""};
  auto text = environment.read_file(file.path, kMaxConfigBytes);
  if (!text) {
    if (text.error().code != ErrorCode::kNotFound) {
      problems->add({}, invalid_error("{} (from {})", text.error().message, variable));
    } else if (file.is_named) {
      problems->warn(whole, std::string("no such file, though ") + std::string(variable) + " names it");
    }
    return std::nullopt;
  }
  std::vector<std::string> ignored;
  const auto root = parse_lenient_json(*text, {kMaxConfigBytes, kMaxConfigDepth}, &ignored);
  if (!root) {
    problems->add(whole, invalid_error("{}", root.error().message));
    return std::nullopt;
  }
  if (root->as_object() == nullptr) {
    problems->add(whole, invalid_error("{} is not allowed; allowed: an object with LocalPath", root->to_message()));
    return std::nullopt;
  }
  const Json* value = root->find("LocalPath");
  if (value == nullptr || value->is_null()) return std::nullopt;
  std::string path;
  if (!problems->take(read_text(*value), {file.path, value->line(), "LocalPath"}, &path)) return std::nullopt;
  return path;
}

}  // namespace

std::string expand_home(const std::string& path, const Environment& environment) {
  if (path.rfind('~', 0) != 0) return path;
  const std::size_t slash = path.find('/');
  auto home = environment.home(std::string_view(path).substr(1, slash == std::string::npos ? slash : slash - 1));
  if (!home) return path;
  while (!home->empty() && home->back() == '/') home->pop_back();
  const std::string rest = slash == std::string::npos ? "" : path.substr(slash);
  return home->empty() && rest.empty() ? "/" : *home + rest;
}

Result<std::string> absolute_location(const std::string& path) {
  if (path.empty()) return invalid_error("\"\" is not allowed; allowed: a directory or s3://<bucket>/<prefix>");
  if (path.find('\0') != std::string::npos) {
    return invalid_error("{} is not allowed; allowed: a path without NUL characters", Json(path, 0).to_message());
  }
  if (path.rfind(kS3, 0) == 0) return s3_location(path);
  std::string whole = path;
  if (path.front() != '/') {
    std::error_code failed;
    const auto current = std::filesystem::current_path(failed);
    if (failed) return io_error("the current directory, which {} is relative to: {}", path, failed.message());
    whole = current.string() + "/" + path;
  }
  std::string location;
  for (std::size_t begin = 0; begin < whole.size();) {
    std::size_t end = whole.find('/', begin);
    if (end == std::string::npos) end = whole.size();
    const std::string part = whole.substr(begin, end - begin);
    if (!part.empty() && part != ".") location += "/" + part;
    begin = end + 1;
  }
  return location.empty() ? "/" : location;
}

void set_out_dir(const std::string& given, const Place& place, const Environment& environment, Config* config,
                 Problems* problems) {
  config->out_dir = expand_home(given, environment);
  if (problems->take(absolute_location(config->out_dir), place, &config->location)) {
    warn_of_odd_path(config->out_dir, place, problems);
  }
}

void set_tensorboard_dir(bool is_on, const std::string& given, const Place& place, const Environment& environment,
                         Config* config, Problems* problems) {
  if (!given.empty()) {
    const std::string path = expand_home(given, environment);
    if (problems->take(absolute_location(path), place, &config->tensorboard_dir)) {
      warn_of_odd_path(path, place, problems);
    }
  } else if (is_on && !config->location.empty()) {
    config->tensorboard_dir = config->location + (config->location.back() == '/' ? "" : "/") + "tensorboard";
  }
}

void apply_tensorboard_file(const Environment& environment, Config* config, Problems* problems) {
  constexpr std::string_view kVariable = "TENSORBOARD_CONFIG_FILE_PATH";
  const PlatformFile file = platform_file(environment, kVariable, "/opt/ml/input/config/tensorboardoutputconfig.json");
  // In a SageMaker job the platform's file wins; elsewhere it must be named, and only fills a gap.
  if (!config->in_sagemaker && (!file.is_named || config->tensorboard_dir)) return;
  const auto path = read_local_path(file, kVariable, environment, problems);
  if (!path) return;
  set_tensorboard_dir(true, *path, {file.path, 0, "LocalPath"}, environment, config, problems);
  config->origins["tensorboard_dir"] = file.path;
}

void apply_checkpoint_file(const Environment& environment, Config* config, Problems* problems) {
  constexpr std::string_view kVariable = "CHECKPOINT_CONFIG_FILE_PATH";
  const PlatformFile file = platform_file(environment, kVariable, "/opt/ml/input/config/checkpointconfig.json");
  const auto path = read_local_path(file, kVariable, environment, problems);
  if (!path) return;
  const Place place{file.path, 0, "LocalPath"};
  if (path->rfind(kS3, 0) == 0) {
    // Its files are watched with local calls; a prefix of a bucket would look like a directory that never changes.
    problems->add(place, invalid_error("{} is not allowed; allowed: a local directory", Json(*path, 0).to_message()));
    return;
  }
  problems->take(absolute_location(expand_home(*path, environment)), place, &config->checkpoint_dir);
  config->origins["checkpoint_dir"] = file.path;
}

std::string find_config_file(const std::string& path, const Environment& environment) {
  if (!path.empty()) return path;
  return environment.get_twin("CONFIG_FILE_PATH").value_or("/opt/ml/input/config/debughookconfig.json");
}

Result<std::string> read_config_file(const std::string& path, const Environment& environment) {
  auto text = environment.read_file(path, kMaxConfigBytes);
  if (text) return text;
  return Error{text.error().code, "configuration file " + text.error().message, text.error().kind};
}

}  // namespace tornasole::config
