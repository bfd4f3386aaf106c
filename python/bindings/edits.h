#pragma once

#include <cstdint>

namespace tornasole::python {

// Counts changes to objects that configure hooks: see tornasole/core/edits.py. Callbacks compare the count.
struct Edits {
  std::int64_t count = 0;
};

}  // namespace tornasole::python
