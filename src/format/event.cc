// An event on the wire, outside in (docs/format.md 3.1):
//
//   Event { wall_time 1, step 2, summary 5 { value 1 { tag 1, tensor 8 { dtype 1, shape 2, content 4 | texts 8 },
//           metadata 9 { plugin_data 1 mode_step, plugin_data 1 mode } } } }
//
// Every length stands before what it measures, so all sizes are worked out first and the bytes are written in one pass.

#include "format/event.h"

#include <array>
#include <bit>
#include <cassert>
#include <charconv>
#include <protozero/buffer_string.hpp>
#include <protozero/varint.hpp>

#include "base/errors.h"
#include "base/utf8.h"
#include "format/event_limits.h"
#include "format/record.h"

namespace tornasole::format {
namespace {

constexpr std::uint64_t varint_bytes(std::uint64_t value) noexcept {
  return (static_cast<std::uint64_t>(std::bit_width(value | 1)) + 6) / 7;
}
// A field of one-byte tag with `content` bytes and their length before them.
constexpr std::uint64_t field_bytes(std::uint64_t content) noexcept { return 1 + varint_bytes(content) + content; }

// The tag byte of a field: its number and wire type.
constexpr char varint_tag(unsigned number) noexcept { return static_cast<char>(number << 3U); }
constexpr char fixed64_tag(unsigned number) noexcept { return static_cast<char>((number << 3U) | 1U); }
constexpr char bytes_tag(unsigned number) noexcept { return static_cast<char>((number << 3U) | 2U); }

// A decimal number as text, without allocation.
class Decimal {
 public:
  explicit Decimal(std::int64_t value) noexcept
      : end_(std::to_chars(text_.data(), text_.data() + text_.size(), value).ptr) {}
  std::string_view text() const noexcept { return {text_.data(), static_cast<std::size_t>(end_ - text_.data())}; }

 private:
  std::array<char, 24> text_;
  const char* end_;
};

// Writes into a buffer that was made large enough.
class WireWriter {
 public:
  explicit WireWriter(Bytes* out) : out_(*out) {}
  void byte(char value) { out_.push_back(value); }
  void varint(std::uint64_t value) { protozero::add_varint_to_buffer(&out_, value); }
  void text(std::string_view value) { out_.append(value); }
  void open(unsigned number, std::uint64_t content_bytes) {
    byte(bytes_tag(number));
    varint(content_bytes);
  }
  void bytes_field(unsigned number, std::string_view value) {
    open(number, value.size());
    text(value);
  }

 private:
  Bytes& out_;
};

constexpr std::string_view kModeStepPlugin = "mode_step";
constexpr std::string_view kModePlugin = "mode";

// All lengths of one event. What differs between numbers and texts is the body: the bytes of the tensor message after
// the shape.
struct Layout {
  std::uint64_t shape = 0;
  std::uint64_t tensor = 0;
  std::uint64_t mode_step_plugin = 0;
  std::uint64_t mode_plugin = 0;
  std::uint64_t metadata = 0;
  std::uint64_t value = 0;
  std::uint64_t summary = 0;
  std::uint64_t event = 0;
};

std::uint64_t dim_bytes(const EventHeader& header, std::int64_t extent) noexcept {
  const std::uint64_t name = header.name.size() + 1 + Decimal(extent).text().size();
  return (extent == 0 ? 0 : 1 + varint_bytes(static_cast<std::uint64_t>(extent))) + field_bytes(name);
}

Layout lay_out(const EventHeader& header, const Shape& shape, std::uint64_t dtype_bytes, std::uint64_t body_bytes) {
  Layout layout;
  for (const std::int64_t extent : shape.dims()) layout.shape += field_bytes(dim_bytes(header, extent));
  layout.tensor = dtype_bytes + field_bytes(layout.shape) + body_bytes;
  layout.mode_step_plugin = field_bytes(kModeStepPlugin.size()) + field_bytes(Decimal(header.mode_step).text().size());
  layout.mode_plugin = field_bytes(kModePlugin.size()) + field_bytes(1);
  layout.metadata = field_bytes(layout.mode_step_plugin) + field_bytes(layout.mode_plugin);
  // A field that holds its default is left out, the name included.
  layout.value = (header.name.empty() ? 0 : field_bytes(header.name.size())) + field_bytes(layout.tensor) +
                 field_bytes(layout.metadata);
  layout.summary = field_bytes(layout.value);
  layout.event = (std::bit_cast<std::uint64_t>(header.wall_time) == 0 ? 0 : 9) +
                 (header.global_step == 0 ? 0 : 1 + varint_bytes(static_cast<std::uint64_t>(header.global_step))) +
                 field_bytes(layout.summary);
  return layout;
}

// Everything up to the tensor's type.
void write_head(WireWriter& out, const EventHeader& header, const Layout& layout) {
  const auto time = std::bit_cast<std::array<char, 8>>(header.wall_time);
  if (std::bit_cast<std::uint64_t>(header.wall_time) != 0) {
    out.byte(fixed64_tag(1));
    out.text({time.data(), time.size()});
  }
  if (header.global_step != 0) {
    out.byte(varint_tag(2));
    out.varint(static_cast<std::uint64_t>(header.global_step));
  }
  out.open(5, layout.summary);
  out.open(1, layout.value);
  if (!header.name.empty()) out.bytes_field(1, header.name);
  out.open(8, layout.tensor);
}

void write_shape(WireWriter& out, const EventHeader& header, const Shape& shape, const Layout& layout) {
  out.open(2, layout.shape);
  for (const std::int64_t extent : shape.dims()) {
    out.open(2, dim_bytes(header, extent));
    if (extent != 0) {
      out.byte(varint_tag(1));
      out.varint(static_cast<std::uint64_t>(extent));
    }
    const Decimal digits(extent);
    out.open(2, header.name.size() + 1 + digits.text().size());
    out.text(header.name);
    out.byte('_');
    out.text(digits.text());
  }
}

void write_metadata(WireWriter& out, const EventHeader& header, const Layout& layout) {
  out.open(9, layout.metadata);
  out.open(1, layout.mode_step_plugin);
  out.bytes_field(1, kModeStepPlugin);
  out.bytes_field(2, Decimal(header.mode_step).text());
  out.open(1, layout.mode_plugin);
  out.bytes_field(1, kModePlugin);
  out.open(2, 1);
  out.byte(static_cast<char>('0' + static_cast<int>(header.mode)));
}

Status check_shape(const EventHeader& header, const Shape& shape) {
  assert(is_valid_utf8(header.name));
  if (shape.rank() > kMaxRank) {
    return invalid_error("tensor \"{}\" has {} dimensions, at most {} are allowed", printable(header.name),
                         shape.rank(), kMaxRank);
  }
  if (shape.element_count() < 0) {
    return invalid_error("tensor \"{}\" has shape {}: extents must not be negative nor their product overflow",
                         printable(header.name), shape.to_string());
  }
  return {};
}

Status check_size(const EventHeader& header, std::uint64_t event_bytes) {
  if (event_bytes + kRecordFrameBytes < kMaxRecordBytes) return {};
  return unsupported_error("tensor \"{}\" makes a record of {} bytes, it must stay below {}", printable(header.name),
                           event_bytes + kRecordFrameBytes, kMaxRecordBytes);
}

}  // namespace

Result<EncodedEvent> encode_event(const EventHeader& header, DType dtype, const Shape& shape,
                                  std::uint64_t content_bytes) {
  TORNASOLE_CHECK(check_shape(header, shape));
  const std::uint64_t item = dtype_size(dtype);
  if (item == 0) {
    return invalid_error("tensor \"{}\" has type {}, which is not numeric", printable(header.name), dtype_name(dtype));
  }
  const auto count = static_cast<std::uint64_t>(shape.element_count());
  if (content_bytes / item != count || content_bytes % item != 0) {
    return invalid_error("tensor \"{}\" of type {} and shape {} cannot have {} bytes", printable(header.name),
                         dtype_name(dtype), shape.to_string(), content_bytes);
  }
  // No elements, no content field.
  const std::uint64_t body = content_bytes == 0 ? 0 : field_bytes(content_bytes);
  const Layout layout = lay_out(header, shape, 2, body);
  TORNASOLE_CHECK(check_size(header, layout.event));

  EncodedEvent event{.before = {}, .content_bytes = content_bytes, .after = {}};
  const std::uint64_t metadata_bytes = field_bytes(layout.metadata);
  const bool is_joined = content_bytes == 0;
  event.before.reserve(layout.event - content_bytes - (is_joined ? 0 : metadata_bytes));
  WireWriter before(&event.before);
  write_head(before, header, layout);
  before.byte(varint_tag(1));
  before.varint(static_cast<std::uint64_t>(dtype));
  write_shape(before, header, shape, layout);
  if (is_joined) {
    write_metadata(before, header, layout);
  } else {
    before.open(4, content_bytes);
    event.after.reserve(metadata_bytes);
    WireWriter after(&event.after);
    write_metadata(after, header, layout);
  }
  assert(event.payload_bytes() == layout.event);
  return event;
}

Result<EncodedEvent> encode_string_event(const EventHeader& header, const Shape& shape,
                                         std::span<const std::string_view> texts) {
  TORNASOLE_CHECK(check_shape(header, shape));
  if (shape.rank() != 1 || static_cast<std::uint64_t>(shape[0]) != texts.size()) {
    return invalid_error("texts \"{}\" have shape {}, but {} texts are stored with the shape [{}]",
                         printable(header.name), shape.to_string(), texts.size(), texts.size());
  }
  if (texts.size() > kMaxTexts) {
    return unsupported_error("tensor \"{}\" has {} texts, at most {} are allowed", printable(header.name), texts.size(),
                             kMaxTexts);
  }
  std::uint64_t body = 0;
  for (const std::string_view text : texts) body += field_bytes(text.size());
  const Layout layout = lay_out(header, shape, 0, body);
  TORNASOLE_CHECK(check_size(header, layout.event));

  EncodedEvent event;
  event.before.reserve(layout.event);
  WireWriter out(&event.before);
  write_head(out, header, layout);
  write_shape(out, header, shape, layout);
  for (const std::string_view text : texts) out.bytes_field(8, text);
  write_metadata(out, header, layout);
  assert(event.payload_bytes() == layout.event);
  return event;
}

std::uint64_t event_record_bytes(const EventHeader& header, DType /*dtype*/, const Shape& shape,
                                 std::uint64_t content_bytes) {
  const std::uint64_t body = content_bytes == 0 ? 0 : field_bytes(content_bytes);
  return lay_out(header, shape, 2, body).event + kRecordFrameBytes;
}

}  // namespace tornasole::format
