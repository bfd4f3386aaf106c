// The checkpoint state and the metrics lines: files of the reference's making, outside the trial.

#include <cmath>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "format/json_fields.h"
#include "format/run_files.h"

namespace tornasole::format {
namespace {

constexpr std::size_t kMaxStateBytes = std::size_t{16} << 20;
// The reference knows the mode GLOBAL from the start and the others as they come.
constexpr std::array<Mode, 4> kStateOrder = {Mode::kGlobal, Mode::kTrain, Mode::kEval, Mode::kPredict};

Result<CheckpointRecord> read_record(const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "an element of the state file"));
  CheckpointRecord record;
  TORNASOLE_CHECK(fields.require({"training-run", "latest-global-step-seen", "latest-mode-step"}));
  TORNASOLE_CHECK(fields.read("training-run", &record.training_run, {.lowest = 0}));
  TORNASOLE_CHECK(fields.read("latest-global-step-saved", &record.last_saved));
  TORNASOLE_CHECK(fields.read("latest-global-step-seen", &record.last_seen, {.lowest = -1}));
  const Json& modes = *fields.find("latest-mode-step");
  TORNASOLE_TRY(const JsonFields steps, JsonFields::of(modes, "latest-mode-step"));
  for (const auto& [name, value] : *modes.as_object()) {
    const std::optional<Mode> mode = parse_mode_name(name);
    if (!mode) {
      return corrupt_error("latest-mode-step has the mode \"{}\", not TRAIN, EVAL, PREDICT or GLOBAL",
                           printable(name.substr(0, 40)));
    }
    TORNASOLE_CHECK(steps.require({name}));
    TORNASOLE_CHECK(steps.read(name, &record.mode_steps[*mode], {.lowest = -1}));
  }
  return record;
}

// The end of the object that begins at `at`, one past its bracket; nothing when the text ends before.
std::optional<std::size_t> object_end(ByteView text, std::size_t at) {
  std::size_t depth = 0;
  bool in_string = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (in_string) {
      if (c == '\\') ++at;
      if (c == '"') in_string = false;
    } else if (c == '"') {
      in_string = true;
    } else if (c == '{' || c == '[') {
      ++depth;
    } else if (c == '}' || c == ']') {
      if (--depth == 0) return at + 1;
    }
  }
  return std::nullopt;
}

// Takes the array apart element by element, since a cut file has no end to parse up to.
class StateScanner {
 public:
  explicit StateScanner(ByteView text) : text_(text) {}

  // What comes next, blanks skipped; 0 at the end of the text.
  char peek() {
    at_ = std::min(text_.find_first_not_of(" \t\r\n", at_), text_.size());
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  bool is_at_end() { return peek() == '\0' && at_ == text_.size(); }
  void skip() { ++at_; }
  Error unexpected(std::string_view wanted) {
    return corrupt_error("the state file has {} at offset {}, where {} is expected",
                         is_at_end() ? "nothing" : printable(text_.substr(at_, 1)), at_, wanted);
  }
  // Nothing when the text ends inside the element.
  Result<std::optional<CheckpointRecord>> element() {
    if (peek() != '{') return unexpected("an object");
    const std::optional<std::size_t> end = object_end(text_, at_);
    if (!end) return std::optional<CheckpointRecord>();
    const ByteView element = text_.substr(at_, *end - at_);
    at_ = *end;
    TORNASOLE_TRY(const Json json, parse_small_file(element, "an element of the state file"));
    TORNASOLE_TRY(CheckpointRecord record, read_record(json));
    return std::optional<CheckpointRecord>(std::move(record));
  }

 private:
  ByteView text_;
  std::size_t at_ = 0;
};

void write_value(JsonWriter& json, double number) {
  if (std::isfinite(number)) {
    json.value(number);
  } else {
    json.raw(std::isnan(number) ? "NaN" : number > 0 ? "Infinity" : "-Infinity");
  }
}

}  // namespace

Bytes encode_checkpoint_state(const std::vector<CheckpointRecord>& records) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_array();
  for (const CheckpointRecord& record : records) {
    json.begin_object().key("training-run").value(record.training_run).key("latest-global-step-saved");
    record.last_saved ? json.value(*record.last_saved) : json.null();
    json.key("latest-global-step-seen").value(record.last_seen).key("latest-mode-step").begin_object();
    for (const Mode mode : kStateOrder) {
      const auto step = record.mode_steps.find(mode);
      if (step != record.mode_steps.end()) json.key(mode_name(mode)).value(step->second);
    }
    json.end_object().end_object();
  }
  json.end_array();
  return out;
}

Result<std::vector<CheckpointRecord>> decode_checkpoint_state(ByteView text, bool* was_cut) {
  *was_cut = false;
  if (text.size() > kMaxStateBytes) {
    return corrupt_error("the state file has {} bytes, more than the limit of {}", text.size(), kMaxStateBytes);
  }
  std::vector<CheckpointRecord> records;
  StateScanner scanner(text);
  const auto cut = [&] {
    *was_cut = true;
    return std::move(records);
  };
  if (scanner.is_at_end()) return cut();
  if (scanner.peek() != '[') return scanner.unexpected("[");
  scanner.skip();
  bool is_open = scanner.peek() != ']';
  while (is_open) {
    if (scanner.is_at_end()) return cut();
    TORNASOLE_TRY(std::optional<CheckpointRecord> record, scanner.element());
    if (!record) return cut();
    records.push_back(std::move(*record));
    if (scanner.is_at_end()) return cut();
    if (scanner.peek() != ',' && scanner.peek() != ']') return scanner.unexpected(", or ]");
    is_open = scanner.peek() == ',';
    if (is_open) scanner.skip();
  }
  scanner.skip();
  if (!scanner.is_at_end()) return scanner.unexpected("nothing");
  return records;
}

Bytes encode_metric(const MetricRecord& metric) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("MetricName").value(metric.name + "_" + std::string(mode_name(metric.mode))).key("Value");
  write_value(json, metric.value);
  json.key("Timestamp").value(metric.timestamp).key("IterationNumber").value(metric.mode_step).end_object();
  out += '\n';
  return out;
}

}  // namespace tornasole::format
