// The default log of HookOptions belongs to capture, which these tests do not link; reading a configuration logs
// nothing.

#include <cstdlib>

#include "tornasole/options.h"

namespace tornasole {

void log_to_stderr(LogLevel /*level*/, std::string_view /*message*/) { std::abort(); }

}  // namespace tornasole
