#include "format/paths.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

namespace tornasole::format {
namespace {

constexpr std::int64_t kStepsPerIndexBucket = 1000;
constexpr std::size_t kMaxWorkerBytes = 200;
constexpr std::string_view kReductionPrefix = "smdebug/reductions/";
// Releases before the library got its name wrote this one; both are read.
constexpr std::array<std::string_view, 2> kReductionPrefixes = {kReductionPrefix, "tornasole/reductions/"};

bool is_digit(char c) noexcept { return c >= '0' && c <= '9'; }

}  // namespace

std::string event_path(std::int64_t step, std::string_view worker_file_name) {
  return fmt::format("events/{0:012}/{0:012}_{1}.tfevents", step, worker_file_name);
}

std::string index_path(std::int64_t step, std::string_view worker_file_name) {
  return fmt::format("index/{:09}/{:012}_{}.json", step / kStepsPerIndexBucket, step, worker_file_name);
}

std::string collections_path(std::string_view worker_file_name) {
  return fmt::format("collections/000000000/{}_collections.json", worker_file_name);
}

std::string health_path(std::string_view worker_file_name) {
  return fmt::format("tornasole/{}_health.json", worker_file_name);
}

std::string model_path(std::string_view worker_file_name) {
  return fmt::format("tornasole/{}_model.json", worker_file_name);
}

std::string encode_worker(std::string_view worker) {
  std::string name(worker);
  if (!name.starts_with('/')) return name;
  std::ranges::replace(name, '/', '_');
  std::ranges::replace(name, ':', '-');
  return name;
}

std::string decode_worker(std::string_view file_name) {
  std::string worker(file_name);
  if (!worker.starts_with('_')) return worker;
  std::ranges::replace(worker, '_', '/');
  std::ranges::replace(worker, '-', ':');
  return worker;
}

bool is_safe_worker(std::string_view file_name) noexcept {
  if (file_name.empty() || file_name.size() > kMaxWorkerBytes) return false;
  return std::ranges::all_of(file_name, [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || is_digit(c) || c == '.' || c == '_' || c == '-';
  });
}

std::optional<StepFile> parse_step_file(std::string_view path, std::string_view suffix) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.ends_with(suffix)) return std::nullopt;
  name.remove_suffix(suffix.size());
  StepFile file;
  // from_chars takes a minus sign, and no file has one.
  if (name.empty() || !is_digit(name.front())) return std::nullopt;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), file.step);
  if (error != std::errc{}) return std::nullopt;
  name.remove_prefix(static_cast<std::size_t>(end - name.data()));
  if (name.size() < 2 || name.front() != '_') return std::nullopt;
  file.worker_file_name = name.substr(1);
  return file;
}

std::string reduction_tensor_name(std::string_view op, std::string_view tensor, bool strip_colons) {
  std::string name = fmt::format("{}{}/", kReductionPrefix, op);
  if (!strip_colons) return name.append(tensor);
  for (std::size_t i = 0; i < tensor.size(); ++i) {
    if (tensor[i] == ':' && i + 1 < tensor.size() && is_digit(tensor[i + 1])) {
      while (i + 1 < tensor.size() && is_digit(tensor[i + 1])) ++i;
    } else {
      name.push_back(tensor[i]);
    }
  }
  return name;
}

std::optional<ReductionName> parse_reduction_tensor_name(std::string_view name) {
  std::size_t first = std::string_view::npos;
  std::string_view rest;
  for (const std::string_view prefix : kReductionPrefixes) {
    const std::size_t at = name.find(prefix);
    if (at < first) {
      first = at;
      rest = name.substr(at + prefix.size());
    }
  }
  const std::size_t slash = rest.find('/');
  if (slash == std::string_view::npos) return std::nullopt;
  std::string_view op = rest.substr(0, slash);
  ReductionName reduction;
  reduction.of_absolute = op.starts_with("abs_");
  if (reduction.of_absolute) op.remove_prefix(4);
  reduction.op = op;
  reduction.tensor = rest.substr(slash + 1);
  if (reduction.op.empty() || reduction.tensor.empty()) return std::nullopt;
  return reduction;
}

}  // namespace tornasole::format
