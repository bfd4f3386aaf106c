#include <cstdio>

#include "base/utf8.h"
#include "tornasole/options.h"

namespace tornasole {

void log_to_stderr(LogLevel level, std::string_view message) {
  constexpr std::array<const char*, 4> kNames = {"debug", "info", "warning", "error"};
  const std::string line = printable(message);
  std::fprintf(stderr, "tornasole: %s: %s\n", kNames[static_cast<std::size_t>(level)], line.c_str());
}

}  // namespace tornasole
