#pragma once

// Errors of the engine as Python exceptions. Nothing else in the project throws.

#include "tornasole/result.h"

namespace tornasole::python {

// Raises the class of tornasole.exceptions that the error's kind names.
[[noreturn]] void raise(const Error& error);

template <typename T>
T value_of(Result<T> result) {
  if (!result) raise(result.error());
  return std::move(*result);
}
inline void check(const Status& status) {
  if (!status) raise(status.error());
}

}  // namespace tornasole::python
