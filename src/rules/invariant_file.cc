// The file of invariants: one line of JSON that says what it is, then one for each invariant.

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "base/errors.h"
#include "base/json.h"
#include "base/utf8.h"
#include "pattern/pattern.h"
#include "tornasole/invariants.h"
#include "tornasole/stats.h"

namespace tornasole {
namespace {

constexpr std::int64_t kVersion = 1;
constexpr std::string_view kVersionKey = "tornasole_invariants";

constexpr std::array<std::pair<InvariantKind, std::string_view>, 10> kKinds = {{
    {InvariantKind::kFinite, "finite"},
    {InvariantKind::kShape, "shape"},
    {InvariantKind::kDType, "dtype"},
    {InvariantKind::kChanges, "changes"},
    {InvariantKind::kConstant, "constant"},
    {InvariantKind::kEqualWorkers, "equal_workers"},
    {InvariantKind::kDistinctWorkers, "distinct_workers"},
    {InvariantKind::kRange, "range"},
    {InvariantKind::kRatio, "ratio"},
    {InvariantKind::kPresent, "present"},
}};

template <typename Range, typename Name>
std::string joined(const Range& range, const Name& name) {
  std::string text;
  for (const auto& item : range) text += fmt::format("{}{}", text.empty() ? "" : ", ", name(item));
  return text;
}

// One line of the file: every complaint says where.
class Line {
 public:
  Line(const Json& json, std::string_view file, std::size_t number) : json_(json), file_(file), number_(number) {}

  template <typename... Values>
  Error wrong(fmt::format_string<Values...> what, Values&&... values) const {
    return invalid_error("{}:{}: {}", printable(file_), number_, fmt::format(what, std::forward<Values>(values)...));
  }

  // The object has these keys and no others.
  Status check_keys(const Json& object, std::span<const std::string_view> allowed) const {
    for (const Json::Member& member : *object.as_object()) {
      if (std::ranges::find(allowed, member.key) == allowed.end()) {
        return wrong("no key \"{}\"; allowed: {}", printable(member.key),
                     joined(allowed, [](std::string_view key) { return key; }));
      }
    }
    return {};
  }
  Result<const Json*> need(const Json& object, std::string_view key) const {
    if (const Json* found = object.find(key)) return found;
    return wrong("\"{}\" is missing", key);
  }
  Result<std::string> text(const Json& object, std::string_view key) const {
    TORNASOLE_TRY(const Json* found, need(object, key));
    if (found->as_string() == nullptr) return wrong("\"{}\" is {}; it must be a text", key, found->to_message());
    return *found->as_string();
  }
  Result<std::int64_t> count(const Json& object, std::string_view key) const {
    TORNASOLE_TRY(const Json* found, need(object, key));
    if (found->as_int() == nullptr || *found->as_int() < 0) {
      return wrong("\"{}\" is {}; it must be a whole number that is not negative", key, found->to_message());
    }
    return *found->as_int();
  }
  Result<double> number(const Json& object, std::string_view key) const {
    TORNASOLE_TRY(const Json* found, need(object, key));
    if (const double* number = found->as_double()) return *number;
    if (const std::int64_t* number = found->as_int()) return static_cast<double>(*number);
    return wrong("\"{}\" is {}; it must be a number", key, found->to_message());
  }
  const Json& json() const noexcept { return json_; }

 private:
  const Json& json_;
  std::string_view file_;
  std::size_t number_;
};

Result<Shape> read_shape(const Line& line, const Json& text) {
  std::vector<std::int64_t> dims;
  const Json::Array* sizes = text.as_array();
  bool is_sound = sizes != nullptr;
  for (std::size_t i = 0; is_sound && i < sizes->size(); ++i) {
    const std::int64_t* size = (*sizes)[i].as_int();
    is_sound = size != nullptr && *size >= 0;
    if (is_sound) dims.push_back(*size);
  }
  if (!is_sound) return line.wrong("\"shape\" is {}; it must be a list of sizes", text.to_message());
  return Shape(std::span<const std::int64_t>(dims));
}

Status read_bounds(const Line& line, const Json& parameters, Invariant* invariant) {
  TORNASOLE_TRY(invariant->low, line.number(parameters, "low"));
  TORNASOLE_TRY(invariant->high, line.number(parameters, "high"));
  if (*invariant->low <= *invariant->high) return {};
  return line.wrong("\"low\" {} is above \"high\" {}", *invariant->low, *invariant->high);
}

Status read_parameters(const Line& line, const Json& parameters, Invariant* invariant) {
  static constexpr std::array<std::string_view, 1> kShapeKeys = {"shape"};
  static constexpr std::array<std::string_view, 1> kTypeKeys = {"dtype"};
  static constexpr std::array<std::string_view, 3> kRangeKeys = {"statistic", "low", "high"};
  static constexpr std::array<std::string_view, 2> kRatioKeys = {"low", "high"};
  switch (invariant->kind) {
    case InvariantKind::kShape: {
      TORNASOLE_CHECK(line.check_keys(parameters, kShapeKeys));
      if (const Json* shape = parameters.find("shape")) {
        TORNASOLE_TRY(invariant->shape, read_shape(line, *shape));
      }
      return {};
    }
    case InvariantKind::kDType: {
      TORNASOLE_CHECK(line.check_keys(parameters, kTypeKeys));
      TORNASOLE_TRY(invariant->dtype, line.text(parameters, "dtype"));
      return {};
    }
    case InvariantKind::kRange: {
      TORNASOLE_CHECK(line.check_keys(parameters, kRangeKeys));
      TORNASOLE_TRY(invariant->statistic, line.text(parameters, "statistic"));
      static constexpr std::array<std::string_view, 4> kNames = {"min", "max", "mean", "l2"};
      if (std::ranges::find(kNames, invariant->statistic) == kNames.end()) {
        return line.wrong("\"statistic\" is \"{}\"; allowed: {}", printable(invariant->statistic),
                          joined(kNames, [](std::string_view name) { return name; }));
      }
      return read_bounds(line, parameters, invariant);
    }
    case InvariantKind::kRatio:
      TORNASOLE_CHECK(line.check_keys(parameters, kRatioKeys));
      return read_bounds(line, parameters, invariant);
    default: return line.check_keys(parameters, {});
  }
}

Result<Invariant> read_invariant(const Line& line) {
  static constexpr std::array<std::string_view, 5> kKeys = {"kind", "tensor", "mode", "parameters", "support"};
  TORNASOLE_CHECK(line.check_keys(line.json(), kKeys));
  Invariant invariant;
  TORNASOLE_TRY(const std::string kind, line.text(line.json(), "kind"));
  const auto* known = std::ranges::find(kKinds, kind, &std::pair<InvariantKind, std::string_view>::second);
  if (known == kKinds.end()) {
    return line.wrong("\"kind\" is \"{}\"; allowed: {}", printable(kind),
                      joined(kKinds, [](const auto& entry) { return entry.second; }));
  }
  invariant.kind = known->first;
  TORNASOLE_TRY(invariant.tensor, line.text(line.json(), "tensor"));
  if (auto pattern = pattern::Pattern::compile(invariant.tensor); !pattern) {
    return line.wrong("\"tensor\": {}", pattern.error().message);
  }
  TORNASOLE_TRY(const std::string mode, line.text(line.json(), "mode"));
  const auto* mode_found = std::ranges::find(kAllModes, std::string_view(mode), mode_name);
  if (mode_found == kAllModes.end()) {
    return line.wrong("\"mode\" is \"{}\"; allowed: {}", printable(mode), joined(kAllModes, mode_name));
  }
  invariant.mode = *mode_found;
  TORNASOLE_TRY(invariant.support, line.count(line.json(), "support"));
  TORNASOLE_TRY(const Json* parameters, line.need(line.json(), "parameters"));
  if (parameters->as_object() == nullptr) {
    return line.wrong("\"parameters\" is {}; it must be an object", parameters->to_message());
  }
  TORNASOLE_CHECK(read_parameters(line, *parameters, &invariant));
  return invariant;
}

Status read_head(const Line& line, Invariants* invariants) {
  static constexpr std::array<std::string_view, 3> kKeys = {kVersionKey, "trials", "steps"};
  const Json* version = line.json().find(kVersionKey);
  if (version == nullptr) {
    return line.wrong("this is no file of invariants: its first line must be {{\"{}\": {}, ...}}", kVersionKey,
                      kVersion);
  }
  if (version->as_int() == nullptr || *version->as_int() != kVersion) {
    return line.wrong("\"{}\" is {}; this program reads version {}", kVersionKey, version->to_message(), kVersion);
  }
  TORNASOLE_CHECK(line.check_keys(line.json(), kKeys));
  TORNASOLE_TRY(invariants->steps, line.count(line.json(), "steps"));
  TORNASOLE_TRY(const Json* trials, line.need(line.json(), "trials"));
  const Json::Array* list = trials->as_array();
  for (std::size_t i = 0; list != nullptr && i < list->size(); ++i) {
    const std::string* name = (*list)[i].as_string();
    if (name == nullptr) return line.wrong("\"trials\" is {}; it must be a list of texts", trials->to_message());
    invariants->trials.push_back(*name);
  }
  if (list == nullptr) return line.wrong("\"trials\" is {}; it must be a list of texts", trials->to_message());
  return {};
}

void write_parameters(JsonWriter& json, const Invariant& invariant) {
  json.begin_object();
  if (invariant.shape) {
    json.key("shape").begin_array();
    for (const std::int64_t size : invariant.shape->dims()) json.value(size);
    json.end_array();
  }
  if (!invariant.dtype.empty()) json.key("dtype").value(invariant.dtype);
  if (!invariant.statistic.empty()) json.key("statistic").value(invariant.statistic);
  if (invariant.low) json.key("low").value(*invariant.low);
  if (invariant.high) json.key("high").value(*invariant.high);
  json.end_object();
}

}  // namespace

std::string_view invariant_kind_name(InvariantKind kind) noexcept {
  return std::ranges::find(kKinds, kind, &std::pair<InvariantKind, std::string_view>::first)->second;
}

std::string Invariants::to_text() const {
  std::string text;
  JsonWriter head(&text);
  head.begin_object().key(kVersionKey).value(kVersion).key("trials").begin_array();
  for (const std::string& trial : trials) head.value(trial);
  head.end_array().key("steps").value(steps).end_object();
  text += "\n";
  for (const Invariant& invariant : list) {
    JsonWriter json(&text);
    json.begin_object().key("kind").value(invariant_kind_name(invariant.kind)).key("tensor").value(invariant.tensor);
    json.key("mode").value(mode_name(invariant.mode)).key("parameters");
    write_parameters(json, invariant);
    json.key("support").value(invariant.support).end_object();
    text += "\n";
  }
  return text;
}

Result<Invariants> Invariants::parse(std::string_view text, std::string_view file) {
  Invariants invariants;
  bool has_head = false;
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view content = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (content.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const auto json = parse_json(content);
    if (!json) return invalid_error("{}:{}: {}", printable(file), number, json.error().message);
    const Line line(*json, file, number);
    if (json->as_object() == nullptr) return line.wrong("{} is no object", json->to_message());
    if (!has_head) {
      TORNASOLE_CHECK(read_head(line, &invariants));
      has_head = true;
      continue;
    }
    TORNASOLE_TRY(Invariant invariant, read_invariant(line));
    invariants.list.push_back(std::move(invariant));
  }
  if (!has_head) return invalid_error("{}: is empty; a file of invariants has at least one line", printable(file));
  return invariants;
}

}  // namespace tornasole
