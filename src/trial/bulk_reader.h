#pragma once

// BulkReader: many values, each event file read front to back in large pieces, several files at once, with bounded
// memory. Results come one by one, in the order asked for. What is wanted of values other than the values themselves is
// made where they are read, while they are in the caches.

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "store/store.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"
#include "trial/index_columns.h"

namespace tornasole::trial {

struct WantedValue {
  std::uint32_t part = 0;
  std::uint32_t place = 0;  // in the part's layout
};

// Called by the threads that read, several at once, with each value that is not text. Whoever asked gets what it
// returns and, unless *keep becomes false, the value.
using Digest = std::function<std::shared_ptr<void>(const WantedValue& wanted, const TensorView& value, bool* keep)>;

struct BulkOptions {
  unsigned threads = 0;  // 0: as many as the machine has
  std::uint64_t budget_bytes = std::uint64_t{64} << 20U;
  Digest digest = {};  // null: values only
};

struct ReadValue {
  std::shared_ptr<void> digest = {};  // null without one
  std::optional<Tensor> value = {};
};
// Returns false to end the reading. The error is as value_reader gives it.
using OnValue = std::function<bool(const WantedValue& wanted, Result<ReadValue> value)>;

// `wanted` is in the order of results; values of one part stand together, by their offset.
void read_values(store::Store& store, const IndexColumns& columns, const std::vector<WantedValue>& wanted,
                 const BulkOptions& options, const OnValue& on_value);

}  // namespace tornasole::trial
