#pragma once

// Opens the place a trial is in, with the environment of the process, for those that read files and not a trial.

#include <memory>
#include <string>

#include "store/store.h"

namespace tornasole::trial {

// An absolute directory or s3://<bucket>/<prefix>.
Result<std::unique_ptr<store::Store>> open_location(const std::string& location, bool read_only);

}  // namespace tornasole::trial
