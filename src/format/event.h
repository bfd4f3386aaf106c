#pragma once

// Events: one tensor with its name, step and mode, as the payload of one record (docs/format.md 3).

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::format {

struct EventHeader {
  std::string_view name;
  std::int64_t global_step = 0;
  Mode mode = Mode::kGlobal;
  std::int64_t mode_step = 0;
  double wall_time = 0;
};

// An event is written in three parts so that the elements are never copied: what comes before them, the elements
// themselves (content_bytes of them, straight from where they are), and what comes after. For strings and empty tensors
// the parts are joined in `before` and content_bytes is 0.
struct EncodedEvent {
  Bytes before;
  std::uint64_t content_bytes = 0;
  Bytes after;
  std::uint64_t payload_bytes() const noexcept { return before.size() + content_bytes + after.size(); }
};
// kInvalid for strings that are not of one dimension; kUnsupported if the record would reach kMaxRecordBytes.
// The name must be valid UTF-8.
Result<EncodedEvent> encode_event(const EventHeader& header, DType dtype, const Shape& shape,
                                  std::uint64_t content_bytes);
Result<EncodedEvent> encode_string_event(const EventHeader& header, const Shape& shape,
                                         std::span<const std::string_view> texts);

// The size of the record of a numeric tensor, without building it: for estimates and budgets.
std::uint64_t event_record_bytes(const EventHeader& header, DType dtype, const Shape& shape,
                                 std::uint64_t content_bytes);

// A decoded event. Borrowed parts point into the payload.
struct Event {
  std::string name;
  std::int64_t global_step = 0;
  Mode mode = Mode::kGlobal;   // kGlobal and the global step when the payload does not say
  std::int64_t mode_step = 0;  // -1: saved before the first step of the mode
  double wall_time = 0;
  bool has_tensor = false;
  DType dtype = DType::kFloat32;
  bool is_dtype_absent = false;  // strings of the reference carry no type code
  Shape shape;
  ByteView content;  // row-major elements, not aligned
  std::vector<std::string> texts;
  // The elements, owned. Length and shape were checked by decode_event.
  Tensor to_tensor() const;
};
// kCorrupt with what is wrong: bad wire format, unknown type code, content that does not fit the shape, a shape with a
// negative extent. float16 content labelled int32 (releases before 1.0.3) is read as float16.
Result<Event> decode_event(ByteView payload);

}  // namespace tornasole::format
