#include "format/index.h"

#include <array>
#include <charconv>
#include <concepts>

#include "base/json.h"
#include "format/file_checksum.h"

namespace tornasole::format {
namespace {

// The lists are written by hand: a step has thousands of entries, whose keys need no escaping.
void append_number(Bytes* out, std::integral auto number) {
  std::array<char, 24> digits;
  out->append(digits.data(), std::to_chars(digits.data(), digits.data() + digits.size(), number).ptr);
}

void append_entry(Bytes* out, const IndexEntry& entry) {
  *out += "{\"tensorname\": ";
  append_json_string(out, entry.name);
  *out += ", \"start_idx\": ";
  append_number(out, entry.offset);
  *out += ", \"length\": ";
  append_number(out, entry.length);
  if (entry.crc) {
    *out += ", \"crc32c\": ";
    append_number(out, *entry.crc);
  }
  *out += '}';
}

void append_shape(Bytes* out, const ShapeEntry& entry) {
  *out += "{\"tensorname\": ";
  append_json_string(out, entry.name);
  *out += ", \"originalname\": ";
  append_json_string(out, entry.original_name);
  *out += ", \"shape\": [";
  const char* separator = "";
  for (const std::int64_t extent : entry.shape) {
    *out += separator;
    append_number(out, extent);
    separator = ", ";
  }
  *out += "]}";
}

template <typename Entry>
void append_list(Bytes* out, const std::vector<Entry>& entries, void (*append)(Bytes*, const Entry&)) {
  *out += '[';
  const char* separator = "";
  for (const Entry& entry : entries) {
    *out += separator;
    append(out, entry);
    separator = ", ";
  }
  *out += ']';
}

void append_meta(Bytes* out, const Index& index) {
  JsonWriter json(out);
  json.begin_object().key("mode").value(mode_name(index.mode)).key("mode_step").value(index.mode_step);
  if (!index.event_file.empty() || !index.tensors.empty()) json.key("event_file_name").value(index.event_file);
  if (index.is_partial) json.key("partial").value(true);
  if (index.optimizer_step) json.key("optimizer_step").value(*index.optimizer_step);
  if (index.training) json.key("training").value(*index.training);
  if (index.grad_enabled) json.key("grad_enabled").value(*index.grad_enabled);
  if (index.backward_in_eval) json.key("backward_in_eval").value(*index.backward_in_eval);
  if (index.grad_scale) json.key("grad_scale").value(*index.grad_scale);
  json.end_object();
}

}  // namespace

Bytes encode_index(const Index& index, bool with_checksum) {
  constexpr std::size_t kEntryBytes = 96;  // of an entry besides its names
  std::size_t names = 0;
  for (const IndexEntry& entry : index.tensors) names += entry.name.size();
  for (const ShapeEntry& entry : index.shapes) names += entry.name.size() + entry.original_name.size();
  Bytes out;
  out.reserve(512 + names + kEntryBytes * (index.tensors.size() + index.shapes.size()));

  out += "{\"meta\": ";
  append_meta(&out, index);
  out += ", \"tensor_payload\": ";
  append_list(&out, index.tensors, append_entry);
  out += ", \"shape_payload\": ";
  append_list(&out, index.shapes, append_shape);
  if (with_checksum) append_file_checksum(&out);
  out += '}';
  return out;
}

}  // namespace tornasole::format
