#pragma once

// The check of a run, for the command of that name and for `rule --profile check`.

#include <string>
#include <vector>

#include "cli/trial_arguments.h"

namespace tornasole::cli {

struct CheckArguments : TrialArguments {
  std::vector<std::string> rules;  // all if there are none
  std::string profile = "check";
  std::string invariants;  // a file
  StepRange range;
  bool is_short = false;
};

// Prints what is wrong; the exit code of the command.
int check_run(const CheckArguments& arguments);

}  // namespace tornasole::cli
