#pragma once

// ReportFiles: the reports of a run of rules on disk, each written whole or not at all.
//
//   <directory>/<name of the rule>.json   the report
//   <directory>/status.json               how far it is: an object for one rule, a list of them for several
//   <directory>/<file>                    what a rule writes besides
//
// A path that ends in .json is the report of the only rule; the others stand beside it.

#include <cstdint>
#include <set>
#include <string>
#include <string_view>

#include "tornasole/result.h"
#include "tornasole/rule.h"

namespace tornasole::rules {

enum class Evaluation : std::uint8_t { kInProgress, kEnded, kStopped, kFailed };

// "InProgress", "NoIssuesFound", "IssuesFound", "Stopped" or "Error".
std::string_view evaluation_status(Evaluation evaluation, const RuleOutcome& outcome) noexcept;

class ReportFiles {
 public:
  // Makes the directory, with those above it. kInvalid for several rules and one file.
  static Result<ReportFiles> open(const std::string& path, std::size_t rule_count);

  // `details` is the error of a run that failed, or empty; a rule's own error stands in its place.
  Status write(const RuleRunner& runner, Evaluation evaluation, std::string_view details = {}) const;

 private:
  ReportFiles(std::string directory, std::string only_file)
      : directory_(std::move(directory)), only_file_(std::move(only_file)) {}
  Status write_own_files(const RuleRunner& runner) const;

  std::string directory_;
  std::string only_file_;  // empty: <name of the rule>.json
};

// Beside its name, then renamed; an older file is replaced.
Status write_whole_file(const std::string& path, std::string_view bytes);

}  // namespace tornasole::rules
