#pragma once

#include <string>
#include <vector>

#include "tornasole/trial.h"

namespace tornasole::cli {

// The losses among the tensors of a query: the collection `losses`, else names with "loss" in them. Names may still
// come while a run is young.
std::vector<std::string> loss_names(const Trial& trial, NameQuery query = {});

}  // namespace tornasole::cli
