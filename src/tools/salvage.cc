#include "tools/salvage.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"

namespace tornasole::tools {

Result<Salvage> salvage_records(EventFile& file, std::int64_t step) {
  Salvage salvage;
  salvage.index.is_partial = true;
  std::uint64_t offset = 0;
  while (offset < file.size_bytes()) {
    auto length = file.frame_at(offset);
    if (!length.ok()) {
      if (length.error().code == ErrorCode::kIo) return std::move(length).error();
      // Where the next record would begin is not known any more.
      salvage.lost_bytes += file.size_bytes() - offset;
      break;
    }
    auto value = file.record_at(offset);
    if (!value.ok() && value.error().code == ErrorCode::kIo) return std::move(value).error();
    if (value.ok() && value->event.has_tensor && value->event.global_step == step) {
      if (salvage.index.tensors.empty()) {
        salvage.index.mode = value->event.mode;
        salvage.index.mode_step = std::max<std::int64_t>(0, value->event.mode_step);
      }
      salvage.index.tensors.push_back({std::move(value->event.name), offset, *length, value->crc});
    } else if (!value.ok()) {
      salvage.lost_bytes += *length;
    }
    offset += *length;
  }
  return salvage;
}

}  // namespace tornasole::tools
