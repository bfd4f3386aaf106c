#pragma once

// The one place where an exception (there is no memory, or a thread cannot be made) becomes an Error.

#include <utility>

#include "base/errors.h"

namespace tornasole::trial {

template <typename Call>
auto without_exceptions(Call call) -> decltype(call()) {
  try {
    return call();
  } catch (...) {
    return error_from_current_exception();
  }
}

}  // namespace tornasole::trial
