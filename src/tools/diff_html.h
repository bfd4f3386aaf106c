#pragma once

// A diff as one HTML page: no script, no outside resource, everything from files escaped.

#include <string>

#include "tools/diff.h"

namespace tornasole::tools {

std::string diff_html(const DiffReport& report);

}  // namespace tornasole::tools
