// Index files, against a second parser: both accept or both refuse, and what they accept says the same.

#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "format/event_limits.h"
#include "format/index.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;
using Document = nlohmann::json;

namespace {

constexpr int kMaxDepth = 64;

int depth_of(const Document& document, int around) {
  int deepest = around;
  if (!document.is_structured() || around > kMaxDepth) return deepest;
  for (const Document& item : document) deepest = std::max(deepest, depth_of(item, around + 1));
  return deepest;
}

bool is_count(const Document& object, const char* key) {
  const auto found = object.find(key);
  if (found == object.end() || !found->is_number()) return false;
  if (found->is_number_float()) {
    const double real = found->get<double>();
    return real >= 0 && real < 0x1p63 && real == std::floor(real);
  }
  return found->is_number_unsigned() ? found->get<std::uint64_t>() <= INT64_MAX : found->get<std::int64_t>() >= 0;
}
bool is_text(const Document& object, const char* key) { return object.contains(key) && object[key].is_string(); }
bool is_absent_or(const Document& object, const char* key, bool (Document::*is)() const noexcept) {
  return !object.contains(key) || (object[key].*is)();
}

// What the path says to a system that follows "." and ".."; nothing if it leads to the trial itself or out of it.
std::optional<std::string> plain_path(const std::string& path) {
  if (path.empty()) return path;
  if (path.front() == '/' || path.find('\0') != std::string::npos) return std::nullopt;
  const std::string plain = std::filesystem::path(path + "/").lexically_normal().parent_path().string();
  if (plain.empty() || plain == "." || plain == ".." || plain.starts_with("../")) return std::nullopt;
  return plain;
}

std::string mode_of(const Document& meta) {
  std::string mode = meta["mode"];
  while (!mode.empty() && std::isspace(static_cast<unsigned char>(mode.back())) != 0) mode.pop_back();
  return mode.substr(std::min(mode.find_first_not_of(" \t\n\v\f\r"), mode.size()));
}

bool is_good_meta(const Document& meta) {
  if (!meta.is_object() || !is_text(meta, "mode") || !is_count(meta, "mode_step")) return false;
  const std::string mode = mode_of(meta);
  if (mode != "TRAIN" && mode != "EVAL" && mode != "PREDICT" && mode != "GLOBAL") return false;
  if (meta.contains("event_file_name") && !(is_text(meta, "event_file_name") && plain_path(meta["event_file_name"]))) {
    return false;
  }
  for (const char* flag : {"partial", "training", "grad_enabled", "backward_in_eval"}) {
    if (!is_absent_or(meta, flag, &Document::is_boolean)) return false;
  }
  if (meta.contains("optimizer_step") && !is_count(meta, "optimizer_step")) return false;
  return !meta.contains("grad_scale") || meta["grad_scale"].is_number() || meta["grad_scale"].is_null();
}

bool is_good_entry(const Document& entry) {
  if (!entry.is_object() || !is_text(entry, "tensorname")) return false;
  if (!is_count(entry, "start_idx") || !is_count(entry, "length")) return false;
  return !entry.contains("crc32c") || (is_count(entry, "crc32c") && entry["crc32c"].get<std::uint64_t>() <= UINT32_MAX);
}

bool is_good_shape(const Document& entry) {
  if (!entry.is_object() || !is_text(entry, "tensorname")) return false;
  if (entry.contains("originalname") && !is_text(entry, "originalname")) return false;
  if (!entry.contains("shape") || !entry["shape"].is_array() || entry["shape"].size() > kMaxRank) return false;
  for (const Document& extent : entry["shape"]) {
    if (!is_count(Document{{"x", extent}}, "x")) return false;
  }
  return true;
}

bool is_good_index(const Document& top) {
  if (!top.is_object() || !top.contains("meta") || !is_good_meta(top["meta"])) return false;
  if (!top.contains("tensor_payload") && !top.contains("shape_payload")) return false;
  for (const auto& [key, is_good] : {std::pair{"tensor_payload", &is_good_entry}, {"shape_payload", &is_good_shape}}) {
    if (!top.contains(key)) continue;
    if (!top[key].is_array() || !std::ranges::all_of(top[key], is_good)) return false;
  }
  const bool has_tensors = top.contains("tensor_payload") && !top["tensor_payload"].empty();
  return !has_tensors || top["meta"].contains("event_file_name");
}

void check_equal(const Document& top, const Index& index) {
  const Document& meta = top["meta"];
  FUZZ_CHECK(mode_name(index.mode) == mode_of(meta));
  FUZZ_CHECK(index.mode_step == meta["mode_step"].get<std::int64_t>());
  FUZZ_CHECK(index.event_file == plain_path(meta.value("event_file_name", "")));
  FUZZ_CHECK(index.is_partial == meta.value("partial", false));
  FUZZ_CHECK(index.optimizer_step.has_value() == meta.contains("optimizer_step"));
  const Document none = Document::array();
  const Document& tensors = top.contains("tensor_payload") ? top["tensor_payload"] : none;
  FUZZ_CHECK(index.tensors.size() == tensors.size());
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    FUZZ_CHECK(index.tensors[i].name == tensors[i]["tensorname"].get<std::string>());
    FUZZ_CHECK(index.tensors[i].offset == tensors[i]["start_idx"].get<std::uint64_t>());
    FUZZ_CHECK(index.tensors[i].length == tensors[i]["length"].get<std::uint64_t>());
    FUZZ_CHECK(index.tensors[i].crc.has_value() == tensors[i].contains("crc32c"));
    FUZZ_CHECK(!index.tensors[i].crc || *index.tensors[i].crc == tensors[i]["crc32c"].get<std::uint64_t>());
  }
  const Document& shapes = top.contains("shape_payload") ? top["shape_payload"] : none;
  FUZZ_CHECK(index.shapes.size() == shapes.size());
  for (std::size_t i = 0; i < shapes.size(); ++i) {
    FUZZ_CHECK(index.shapes[i].name == shapes[i]["tensorname"].get<std::string>());
    FUZZ_CHECK(index.shapes[i].shape == shapes[i]["shape"].get<std::vector<std::int64_t>>());
  }
}

// What only one of the two minds: checksums, numbers that are not finite, and below a bad value that a later one of the
// same key replaces.
bool is_comparable(std::string_view text, const Result<Index>& index) {
  for (const std::string_view word : {"crc32c", "NaN", "Infinity"}) {
    if (text.find(word) != std::string_view::npos) return false;
  }
  // Escapes are compared where we accept them; whether a half surrogate is an error is the parser's affair.
  if (text.find("\\u") != std::string_view::npos) return index.ok();
  return true;
}

// Parses, and notes whether a key comes twice in some object.
Document parse(std::string_view text, bool* has_repeated_key) {
  std::vector<std::set<std::string>> keys;
  return Document::parse(text, [&](int /*depth*/, Document::parse_event_t event, Document& parsed) {
    if (event == Document::parse_event_t::object_start) keys.emplace_back();
    if (event == Document::parse_event_t::object_end) keys.pop_back();
    if (event == Document::parse_event_t::key && !keys.back().insert(parsed.get<std::string>()).second) {
      *has_repeated_key = true;
    }
    return true;
  });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz_text(data, size);
  const auto index = decode_index(text);
  FUZZ_CHECK(index.ok() || index.error().code == ErrorCode::kCorrupt);
  if (index.ok()) {
    const auto again = decode_index(encode_index(*index));
    FUZZ_CHECK(again.ok() && again->is_verified);
    FUZZ_CHECK(encode_index(*again) == encode_index(*index));
  }
  if (text.find('\0') != std::string_view::npos) {
    FUZZ_CHECK(!index.ok());  // never JSON, though the second parser takes it for the end of the text
    return 0;
  }
  if (!is_comparable(text, index)) return 0;
  bool has_repeated_key = false;
  Document document;
  try {
    document = parse(text, &has_repeated_key);
  } catch (const Document::out_of_range&) {
    return 0;
  } catch (const Document::parse_error&) {
    FUZZ_CHECK(!index.ok());
    return 0;
  }
  if (has_repeated_key && !index.ok()) return 0;
  FUZZ_CHECK(index.ok() == (is_good_index(document) && depth_of(document, 0) <= kMaxDepth));
  if (index.ok()) check_equal(document, *index);
  return 0;
}
