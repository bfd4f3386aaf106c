#include "pattern/limit_report.h"

#include <fmt/format.h>

#include "base/utf8.h"

namespace tornasole::pattern {

std::string limit_report(const Pattern& pattern, std::string_view name) {
  return fmt::format("pattern \"{}\": the match on \"{}\" took too many steps and counts as none",
                     printable(pattern.text()), printable(name.substr(0, 100)));
}

}  // namespace tornasole::pattern
