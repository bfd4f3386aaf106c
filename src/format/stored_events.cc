#include "tornasole/stored_events.h"

#include <utility>

#include "base/errors.h"
#include "format/event.h"
#include "format/record.h"

namespace tornasole {

Result<std::vector<StoredEvent>> decode_events(std::string_view bytes) {
  std::vector<StoredEvent> events;
  std::uint64_t offset = 0;
  while (offset < bytes.size()) {
    TORNASOLE_TRY(const format::Record record, format::decode_record(bytes.substr(offset), offset));
    auto event = format::decode_event(record.payload);
    if (!event.ok()) return corrupt_error("record at {}: {}", offset, event.error().message);
    if (event->has_tensor) {
      events.push_back({.name = event->name,
                        .global_step = {event->global_step},
                        .step = {event->mode, event->mode_step},
                        .wall_time_s = event->wall_time,
                        .value = event->to_tensor()});
    }
    offset += record.payload.size() + format::kRecordFrameBytes;
  }
  return events;
}

}  // namespace tornasole
