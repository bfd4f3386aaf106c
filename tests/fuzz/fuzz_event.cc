// Events: whatever is accepted is consistent, and encoding it and decoding that gives the same event.

#include <cstring>
#include <vector>

#include "format/event.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto event = decode_event(fuzz_text(data, size));
  if (!event.ok()) {
    FUZZ_CHECK(event.error().code == ErrorCode::kCorrupt);
    return 0;
  }
  if (!event->has_tensor) return 0;
  const EventHeader header{.name = event->name,
                           .global_step = event->global_step,
                           .mode = event->mode,
                           .mode_step = event->mode_step,
                           .wall_time = event->wall_time};
  const bool is_text = event->dtype == DType::kString;
  // Texts of other ranks are read but not written.
  if (is_text && event->shape.rank() != 1) return 0;
  const std::vector<std::string_view> texts(event->texts.begin(), event->texts.end());
  const auto encoded = is_text ? encode_string_event(header, event->shape, texts)
                               : encode_event(header, event->dtype, event->shape, event->content.size());
  FUZZ_CHECK(encoded.ok());
  FUZZ_CHECK(is_text || encoded->content_bytes == event->content.size());
  const Bytes payload = encoded->before + Bytes(event->content) + encoded->after;
  const auto again = decode_event(payload);
  // A negative step cannot stand for a mode step that the payload does not name.
  if (event->mode_step < 0) return 0;
  FUZZ_CHECK(again.ok());
  FUZZ_CHECK(again->name == event->name && again->global_step == event->global_step);
  FUZZ_CHECK(again->mode == event->mode && again->mode_step == event->mode_step);
  FUZZ_CHECK(std::memcmp(&again->wall_time, &event->wall_time, sizeof(double)) == 0);
  FUZZ_CHECK(again->to_tensor() == event->to_tensor());
  return 0;
}
