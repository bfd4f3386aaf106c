#pragma once

// What breaks learned invariants, as one verdict among those of `check`.

#include <optional>
#include <string>

#include "tornasole/check.h"
#include "tornasole/rule.h"

namespace tornasole::cli {

class InvariantVerdict {
 public:
  // kInvalid for a file that is not one of `tornasole learn`. The trial outlives it.
  static Result<InvariantVerdict> make(Trial* trial, const std::string& file, const CheckOptions& options);
  // Looks at the trial and adds to the report what it found.
  Status add_to(CheckReport* report);

 private:
  explicit InvariantVerdict(RuleRunner runner) : runner_(std::move(runner)) {}
  RuleRunner runner_;
};

}  // namespace tornasole::cli
