#include "rules/report_files.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>

#include "base/clock.h"
#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"

namespace tornasole::rules {
namespace {

constexpr std::size_t kMaxDetails = 1024;
constexpr std::string_view kStatusFile = "status.json";

void write_status(JsonWriter& json, const RuleOutcome& outcome, Evaluation evaluation, std::string_view details) {
  if (outcome.error) details = outcome.error->message;
  json.begin_object().key("RuleConfigurationName").value(outcome.name);
  json.key("RuleEvaluationStatus").value(evaluation_status(evaluation, outcome));
  if (!details.empty()) json.key("StatusDetails").value(details.substr(0, kMaxDetails));
  json.end_object();
}

std::string status_text(const RuleRunner& runner, Evaluation evaluation, std::string_view details) {
  std::string text;
  JsonWriter json(&text);
  const bool is_list = runner.size() != 1;
  if (is_list) json.begin_array();
  for (std::size_t i = 0; i < runner.size(); ++i) write_status(json, runner.outcome(i), evaluation, details);
  if (is_list) json.end_array();
  return text + "\n";
}

Status write_all(int file, std::string_view bytes, const std::string& path) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written > 0) {
      bytes.remove_prefix(static_cast<std::size_t>(written));
    } else if (errno != EINTR) {
      return errno_error(errno, printable(path));
    }
  }
  return {};
}

}  // namespace

std::string_view evaluation_status(Evaluation evaluation, const RuleOutcome& outcome) noexcept {
  if (evaluation == Evaluation::kFailed) return "Error";
  if (outcome.report.triggered > 0) return "IssuesFound";
  if (outcome.error) return "Error";
  switch (evaluation) {
    case Evaluation::kInProgress: return "InProgress";
    case Evaluation::kStopped: return "Stopped";
    case Evaluation::kEnded:
    case Evaluation::kFailed: break;
  }
  return "NoIssuesFound";
}

Result<ReportFiles> ReportFiles::open(const std::string& path, std::size_t rule_count) {
  const bool is_file = path.ends_with(".json");
  if (path.empty() || path.find('\0') != std::string::npos) return invalid_error("the path of a report is not empty");
  if (is_file && rule_count != 1) {
    return invalid_error("{}: there are {} rules and one report file; name a directory", printable(path), rule_count);
  }
  const std::size_t slash = path.find_last_of('/');
  if (is_file && path.substr(slash + 1) == kStatusFile) {
    return invalid_error("{}: that is the name of the file beside the report; name another", printable(path));
  }
  std::string directory = path;
  if (is_file) directory = slash == std::string::npos ? "." : path.substr(0, slash + 1);
  std::error_code failed;
  std::filesystem::create_directories(directory, failed);
  if (!failed && !std::filesystem::is_directory(directory, failed))
    failed = std::make_error_code(std::errc::not_a_directory);
  if (failed) return io_error("{}: {}", printable(directory), failed.message());
  if (!directory.ends_with('/')) directory += '/';
  return ReportFiles(std::move(directory), is_file ? path : std::string());
}

Status ReportFiles::write(const RuleRunner& runner, Evaluation evaluation, std::string_view details) const {
  for (std::size_t i = 0; i < runner.size(); ++i) {
    const RuleOutcome& outcome = runner.outcome(i);
    const std::string path = only_file_.empty() ? directory_ + outcome.name + ".json" : only_file_;
    TORNASOLE_CHECK(write_whole_file(path, outcome.report.to_json() + "\n"));
  }
  TORNASOLE_CHECK(write_own_files(runner));
  // Last: whoever sees an end here finds the reports of the end.
  return write_whole_file(directory_ + std::string(kStatusFile), status_text(runner, evaluation, details));
}

Status ReportFiles::write_own_files(const RuleRunner& runner) const {
  std::set<std::string> written;
  for (std::size_t i = 0; i < runner.size(); ++i) {
    for (const auto& [name, bytes] : runner.rule(i).files()) {
      const std::string own_name = written.insert(name).second ? name : runner.outcome(i).name + "-" + name;
      TORNASOLE_CHECK(write_whole_file(directory_ + own_name, bytes));
    }
  }
  return {};
}

Status write_whole_file(const std::string& path, std::string_view bytes) {
  // Never a name that a run which was killed left behind: in a container all have the same process id.
  const std::string temporary = fmt::format("{}.{}-{}.tmp", path, getpid(), system_clock().monotonic_ns());
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
  if (file < 0) return errno_error(errno, printable(temporary));
  Status status = write_all(file, bytes, temporary);
  if (close(file) != 0 && status) status = errno_error(errno, printable(temporary));
  if (status && std::rename(temporary.c_str(), path.c_str()) != 0) status = errno_error(errno, printable(path));
  if (!status) unlink(temporary.c_str());
  return status;
}

}  // namespace tornasole::rules
