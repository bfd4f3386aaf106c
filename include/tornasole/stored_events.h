#pragma once

// decode_events: what is in an event file, without a trial around it.
//
//   auto events = tornasole::decode_events(bytes_of_the_file);
//   if (!events) return fail(events.error());
//   for (const auto& event : *events) use(event.name, event.value);

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "tornasole/export.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole {

// One tensor as it was written.
struct StoredEvent {
  std::string name;
  GlobalStep global_step;
  ModeStep step;  // kGlobal and the global step when the record does not say
  double wall_time_s = 0;
  Tensor value;
};

// The tensors in the records of `bytes`, in their order; records without a tensor (a file's version) are left out.
// kNotYet if the last record is cut short, kCorrupt with its offset for a damaged one.
TORNASOLE_EXPORT Result<std::vector<StoredEvent>> decode_events(std::string_view bytes);

}  // namespace tornasole
