#include "format/collections_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <unordered_map>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "format/file_checksum.h"
#include "format/json_fields.h"

namespace tornasole::format {
namespace {

constexpr std::size_t kMaxFileBytes = std::size_t{64} << 20;
constexpr std::int64_t kMaxWorkers = 65536;

// Reductions, norms, and the same two of magnitudes: the order of the comma text (docs/format.md 5.2).
int reduction_group(const Reduction& reduction) noexcept {
  return (reduction.of_absolute ? 2 : 0) + (is_norm(reduction.kind) ? 1 : 0);
}
// The reference refuses the whole trial when it meets a name it does not know.
bool is_known_to_reference(const Reduction& reduction) noexcept { return reduction.kind != ReductionKind::kMedian; }

std::string reductions_text(const ReductionSpec& spec, bool known) {
  std::string text;
  for (int group = 0; group < 4; ++group) {
    for (const Reduction& reduction : spec.reductions) {
      if (reduction_group(reduction) != group || is_known_to_reference(reduction) != known) continue;
      if (!text.empty()) text += ',';
      text += reduction_config_text(reduction);
    }
  }
  return text;
}

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_reductions(JsonWriter& json, const std::optional<ReductionSpec>& spec) {
  if (!spec) {
    json.null();
    return;
  }
  json.begin_object().key("save_raw_tensor").value(spec->save_raw_tensor);
  json.key("reductions").value(reductions_text(*spec, true)).key("save_shape").value(spec->save_shape);
  const std::string ours = reductions_text(*spec, false);
  if (!ours.empty()) json.key("tornasole_reductions").value(ours);
  json.end_object();
}

void write_schedule(JsonWriter& json, const std::optional<StoredSchedule>& schedule) {
  if (!schedule) {
    json.null();
    return;
  }
  json.begin_object().key("save_interval").value(schedule->save_interval).key("save_steps").begin_array();
  for (const std::int64_t step : schedule->save_steps) json.value(step);
  json.end_array().key("start_step").value(schedule->start_step).key("end_step");
  schedule->end_step ? json.value(*schedule->end_step) : json.null();
  if (!schedule->when_nan.empty()) {
    json.key("when_nan");
    write_texts(json, schedule->when_nan);
  }
  json.end_object();
}

void write_collection(JsonWriter& json, const StoredCollection& collection) {
  json.begin_object().key("name").value(collection.name).key("include_regex");
  write_texts(json, collection.include_regex);
  if (!collection.exclude_regex.empty()) {
    json.key("exclude_regex");
    write_texts(json, collection.exclude_regex);
  }
  json.key("tensor_names");
  write_texts(json, collection.tensor_names);
  json.key("reduction_config");
  write_reductions(json, collection.reductions);
  json.key("save_config");
  if (collection.schedules) {
    json.begin_object();
    for (const Mode mode : kAllModes) {
      json.key(mode_name(mode));
      write_schedule(json, (*collection.schedules)[mode_index(mode)]);
    }
    json.end_object();
  } else {
    json.null();
  }
  json.key("save_histogram").value(collection.save_histogram).end_object();
}

// Adds what a comma text names to `spec`, each once.
Status read_reduction_text(std::string_view text, ReductionSpec* spec) {
  while (!text.empty()) {
    const std::size_t comma = std::min(text.find(','), text.size());
    std::string_view item = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    item.remove_prefix(std::min(item.find_first_not_of(' '), item.size()));
    item = item.substr(0, item.find_last_not_of(' ') + 1);
    if (item.empty()) continue;
    const std::optional<Reduction> reduction = parse_reduction(item);
    if (!reduction) return corrupt_error("unknown reduction \"{}\"", printable(item.substr(0, 40)));
    if (std::ranges::find(spec->reductions, *reduction) == spec->reductions.end()) {
      spec->reductions.push_back(*reduction);
    }
  }
  return {};
}

// Keeps the order within a group. Written out: the library's stable sort asks for a buffer that newer compilers refuse.
void sort_by_group(std::vector<Reduction>* reductions) {
  std::vector<Reduction> sorted;
  for (int group = 0; group < 4; ++group) {
    std::ranges::copy_if(*reductions, std::back_inserter(sorted),
                         [&](const Reduction& reduction) { return reduction_group(reduction) == group; });
  }
  *reductions = std::move(sorted);
}

Result<ReductionSpec> read_reductions(const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "a reduction_config"));
  ReductionSpec spec{.reductions = {}, .save_raw_tensor = false, .save_shape = false};
  std::string known;
  std::string ours;
  TORNASOLE_CHECK(fields.read("save_raw_tensor", &spec.save_raw_tensor));
  TORNASOLE_CHECK(fields.read("save_shape", &spec.save_shape));
  TORNASOLE_CHECK(fields.read("reductions", &known));
  TORNASOLE_CHECK(fields.read("tornasole_reductions", &ours));
  TORNASOLE_CHECK(read_reduction_text(known, &spec));
  TORNASOLE_CHECK(read_reduction_text(ours, &spec));
  sort_by_group(&spec.reductions);
  return spec;
}

Result<StoredSchedule> read_schedule(const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "the schedule of a mode"));
  StoredSchedule schedule;
  TORNASOLE_CHECK(fields.read_converted("save_interval", &schedule.save_interval, {}));
  TORNASOLE_CHECK(fields.read_converted("start_step", &schedule.start_step, {}));
  if (fields.present("end_step") != nullptr) {
    TORNASOLE_CHECK(fields.read_converted("end_step", &schedule.end_step.emplace(), {}));
  }
  TORNASOLE_CHECK(fields.read("save_steps", &schedule.save_steps));
  TORNASOLE_CHECK(fields.read("when_nan", &schedule.when_nan));
  return schedule;
}

Result<std::array<std::optional<StoredSchedule>, 4>> read_schedules(const Json& json) {
  std::array<std::optional<StoredSchedule>, 4> schedules;
  TORNASOLE_CHECK(JsonFields::of(json, "a save_config"));
  for (const auto& [name, value] : *json.as_object()) {
    const std::optional<Mode> mode = parse_mode_name(name);
    if (!mode) {
      return corrupt_error("a save_config has the mode \"{}\", not TRAIN, EVAL, PREDICT or GLOBAL",
                           printable(name.substr(0, 40)));
    }
    std::optional<StoredSchedule>& schedule = schedules[mode_index(*mode)];
    schedule.reset();
    if (value.is_null()) continue;
    TORNASOLE_TRY(schedule, read_schedule(value));
  }
  return schedules;
}

Result<StoredCollection> read_collection(std::string_view key, const Json& json) {
  const std::string what = fmt::format("the collection \"{}\"", printable(key.substr(0, 80)));
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, what));
  StoredCollection collection;
  TORNASOLE_CHECK(fields.require({"name"}));
  TORNASOLE_CHECK(fields.read("name", &collection.name));
  TORNASOLE_CHECK(fields.read("include_regex", &collection.include_regex));
  TORNASOLE_CHECK(fields.read("exclude_regex", &collection.exclude_regex));
  TORNASOLE_CHECK(fields.read("tensor_names", &collection.tensor_names));
  TORNASOLE_CHECK(fields.read("save_histogram", &collection.save_histogram));
  if (const Json* reductions = fields.find("reduction_config"); reductions != nullptr && !reductions->is_null()) {
    TORNASOLE_TRY(collection.reductions, read_reductions(*reductions));
  }
  if (const Json* schedules = fields.find("save_config"); schedules != nullptr && !schedules->is_null()) {
    TORNASOLE_TRY(collection.schedules, read_schedules(*schedules));
  }
  return collection;
}

// The key is not the name: that stands inside. Of a repeated key and of a repeated name the last one counts, the name
// in the place of the first.
Status read_collections(const Json& json, CollectionsFile* file) {
  TORNASOLE_CHECK(JsonFields::of(json, "\"collections\""));
  std::unordered_map<std::string_view, const Json*> last_of_key;
  for (const auto& [key, value] : *json.as_object()) last_of_key[key] = &value;
  std::unordered_map<std::string, std::size_t> places;
  for (const auto& [key, value] : *json.as_object()) {
    if (last_of_key[key] != &value) continue;
    TORNASOLE_TRY(StoredCollection collection, read_collection(key, value));
    const auto [place, is_new] = places.try_emplace(collection.name, file->collections.size());
    if (is_new) {
      file->collections.push_back(std::move(collection));
    } else {
      file->collections[place->second] = std::move(collection);
    }
  }
  return {};
}

// The checksum must come after everything it covers: last in _meta, which must be last itself.
Status read_checksum(ByteView text, const Json::Object& top, const Json& meta, CollectionsFile* file) {
  const Json* checksum = meta.find("crc32c");
  if (checksum == nullptr) return {};
  if (checksum->as_int() == nullptr) {
    return corrupt_error("\"crc32c\" of _meta is {}, not an integer", printable(checksum->to_message()));
  }
  if (&top.back().value != &meta || &meta.as_object()->back().value != checksum) {
    return corrupt_error("\"crc32c\" of _meta is not the last key of the file");
  }
  TORNASOLE_CHECK(check_file_checksum(text, *checksum->as_int()));
  file->is_verified = true;
  return {};
}

}  // namespace

Bytes encode_collections(const CollectionsFile& file, bool with_checksum) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("collections").begin_object();
  for (const StoredCollection& collection : file.collections) {
    json.key(collection.name);
    write_collection(json, collection);
  }
  json.end_object().key("_meta").begin_object().key("num_workers").value(file.num_workers);
  if (with_checksum) append_file_checksum(&out);
  json.end_object().end_object();
  return out;
}

Result<CollectionsFile> decode_collections(ByteView text) {
  TORNASOLE_CHECK(check_item_count(text));
  TORNASOLE_TRY(const Json json, parse_json(text, {.max_bytes = kMaxFileBytes, .allow_non_finite = true}));
  TORNASOLE_TRY(const JsonFields top, JsonFields::of(json, "a collections file"));
  for (const auto& [key, value] : *json.as_object()) {
    if (key == "collections" || key == "_meta") continue;
    return corrupt_error("a collections file has the key \"{}\", not only collections and _meta",
                         printable(key.substr(0, 40)));
  }
  TORNASOLE_CHECK(top.require({"collections", "_meta"}));
  CollectionsFile file;
  TORNASOLE_CHECK(read_collections(*top.find("collections"), &file));
  const Json& meta_json = *top.find("_meta");
  TORNASOLE_TRY(const JsonFields meta, JsonFields::of(meta_json, "_meta"));
  TORNASOLE_CHECK(meta.read_converted("num_workers", &file.num_workers, {.lowest = 1, .highest = kMaxWorkers}));
  TORNASOLE_CHECK(read_checksum(text, *json.as_object(), meta_json, &file));
  return file;
}

}  // namespace tornasole::format
