// Prints every value of the trials given as arguments, one JSON object a line, for fixtures_values_test.py to compare.

#include <cstdio>

#include "base/json.h"
#include "format/event.h"
#include "format/index.h"
#include "format/paths.h"
#include "format/record.h"
#include "golden_files.h"

namespace tornasole::format {
namespace {

std::string to_hex(std::string_view bytes) {
  std::string hex;
  hex.reserve(2 * bytes.size());
  for (const char c : bytes) {
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(c) >> 4]);
    hex.push_back("0123456789abcdef"[static_cast<unsigned char>(c) & 15]);
  }
  return hex;
}

// The bytes that the expected checksums are made of: texts end in a zero byte each.
std::string checked_bytes(const Event& event) {
  std::string bytes(event.content);
  for (const std::string& text : event.texts) bytes.append(text).push_back('\0');
  return bytes;
}

void write_value(JsonWriter& json, ByteView events, const IndexEntry& entry) {
  if (entry.offset > events.size()) {
    json.key("error").value("the record lies past the end of the file");
    return;
  }
  const auto record = decode_record(events.substr(entry.offset, entry.length), entry.offset);
  const auto event = record.ok() ? decode_event(record->payload) : Result<Event>(record.error());
  if (!event.ok()) {
    json.key("error").value(event.error().message);
    return;
  }
  json.key("stored_name").value(event->name).key("dtype").value(dtype_name(event->dtype)).key("shape").begin_array();
  for (const std::int64_t extent : event->shape.dims()) json.value(extent);
  json.end_array().key("hex").value(to_hex(checked_bytes(*event)));
}

void dump_step(const std::filesystem::path& trial, const StepFile& file, const Index& index) {
  const std::string events = index.event_file.empty() ? "" : read_whole(trial / index.event_file);
  for (const IndexEntry& entry : index.tensors) {
    std::string line;
    JsonWriter json(&line);
    json.begin_object().key("trial").value(trial.string()).key("step").value(file.step);
    json.key("worker").value(decode_worker(file.worker_file_name)).key("mode").value(mode_name(index.mode));
    json.key("mode_step").value(index.mode_step).key("name").value(entry.name);
    if (const auto reduction = parse_reduction_tensor_name(entry.name)) {
      json.key("reduction").value((reduction->of_absolute ? "abs_" : "") + reduction->op);
      json.key("tensor").value(reduction->tensor);
    }
    write_value(json, events, entry);
    json.end_object();
    std::puts(line.c_str());
  }
  for (const ShapeEntry& entry : index.shapes) {
    std::string line;
    JsonWriter json(&line);
    json.begin_object().key("trial").value(trial.string()).key("step").value(file.step);
    json.key("worker").value(decode_worker(file.worker_file_name)).key("name").value(entry.name);
    json.key("original_name").value(entry.original_name).key("shape_record").begin_array();
    for (const std::int64_t extent : entry.shape) json.value(extent);
    json.end_array().end_object();
    std::puts(line.c_str());
  }
}

void dump_trial(const std::filesystem::path& trial) {
  if (!std::filesystem::exists(trial / "index")) return;
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(trial / "index"))
    paths.push_back(entry.path());
  std::sort(paths.begin(), paths.end());
  for (const std::filesystem::path& path : paths) {
    const auto file = parse_step_file(path.string(), ".json");
    const auto index = file ? decode_index(read_whole(path)) : Result<Index>(Error{});
    if (index.ok()) dump_step(trial, *file, *index);
  }
}

}  // namespace
}  // namespace tornasole::format

int main(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) tornasole::format::dump_trial(argv[i]);
  return 0;
}
