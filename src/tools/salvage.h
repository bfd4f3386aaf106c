#pragma once

// What can be saved of an event file that has no index: its whole records.

#include <cstdint>

#include "format/index.h"
#include "tools/event_file.h"
#include "tornasole/result.h"

namespace tornasole::tools {

struct Salvage {
  format::Index index = {};      // of the whole records, marked partial; event_file is left to the caller
  std::uint64_t lost_bytes = 0;  // of records that are cut or damaged
};
// Reads the file to its end, or to where no record begins any more. Records that are no tensor of this step are left
// out. kIo if it cannot be read; a file without one whole record gives an index without values.
Result<Salvage> salvage_records(EventFile& file, std::int64_t step);

}  // namespace tornasole::tools
