#pragma once

namespace tornasole::reduce {

// low <= x <= high.
struct ValueRange {
  double low = 0;
  double high = 0;
};

}  // namespace tornasole::reduce
