#include "bindings/options_of.h"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <fmt/format.h>

#include <array>
#include <cmath>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/python_errors.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// The value as Python shows it, cut between two characters: a message with half of one could not be raised.
std::string shown(nb::handle value) {
  constexpr std::size_t kMaxShown = 80;
  const auto begins_character = [](char c) { return (static_cast<unsigned char>(c) & 0xC0U) != 0x80U; };
  std::string text;
  if (!nb::try_cast(nb::object(nb::repr(value)), text)) {
    PyErr_Clear();
    return "a value that cannot be shown";
  }
  if (text.size() <= kMaxShown) return text;
  std::size_t end = kMaxShown;
  while (end > 0 && !begins_character(text[end])) --end;
  return text.substr(0, end) + "...";
}

[[noreturn]] void refuse(ErrorKind kind, std::string_view what, nb::handle value, std::string_view allowed) {
  raise({ErrorCode::kInvalid, fmt::format("{}: {} is not allowed; allowed: {}", what, shown(value), allowed), kind});
}

// An int, what says it is one (NumPy's), a float without a fraction, or decimal text.
std::int64_t integer_of(nb::handle value, std::string_view what) {
  constexpr std::string_view kAllowed = "a whole number, or its decimal text";
  if (PyBool_Check(value.ptr())) refuse(ErrorKind::kValue, what, value, kAllowed);
  if (PyUnicode_Check(value.ptr())) {
    std::string text;
    if (!nb::try_cast(value, text)) {
      PyErr_Clear();
      refuse(ErrorKind::kValue, what, value, kAllowed);
    }
    const auto parsed = parse_integer(text);
    if (!parsed) refuse(ErrorKind::kValue, what, value, kAllowed);
    return *parsed;
  }
  nb::object whole;
  if (PyFloat_Check(value.ptr())) {
    const double number = PyFloat_AsDouble(value.ptr());
    if (!std::isfinite(number) || std::trunc(number) != number) refuse(ErrorKind::kValue, what, value, kAllowed);
    whole = nb::steal(PyLong_FromDouble(number));
  } else if (PyIndex_Check(value.ptr())) {
    whole = nb::steal(PyNumber_Index(value.ptr()));
    PyErr_Clear();  // an array of several has the method, and raises
  }
  if (!whole.is_valid()) refuse(ErrorKind::kValue, what, value, kAllowed);
  int overflow = 0;
  const std::int64_t number = PyLong_AsLongLongAndOverflow(whole.ptr(), &overflow);
  if (overflow != 0) refuse(ErrorKind::kValue, what, value, "a whole number of 64 bits");
  return number;
}

std::string text_of(nb::handle value, std::string_view what, ErrorKind kind = ErrorKind::kType) {
  std::string text;
  if (!PyUnicode_Check(value.ptr())) refuse(kind, what, value, "a text");
  if (!nb::try_cast(value, text)) {
    PyErr_Clear();
    refuse(ErrorKind::kValue, what, value, "a text that UTF-8 can spell");
  }
  return text;
}

bool bool_of(nb::handle value, std::string_view what) {
  if (!PyBool_Check(value.ptr())) refuse(ErrorKind::kValue, what, value, "True or False");
  return value.is(Py_True);
}

double number_of(nb::handle value, std::string_view what) {
  double number = 0;
  if (!nb::try_cast(value, number, nb::detail::cast_flags::convert)) {
    PyErr_Clear();
    refuse(ErrorKind::kType, what, value, "a number");
  }
  return number;
}

bool is_list(nb::handle value) {
  return PyList_Check(value.ptr()) || PyTuple_Check(value.ptr()) || PyAnySet_Check(value.ptr());
}

template <typename Item>
std::vector<Item> list_of(nb::handle value, std::string_view what, ErrorKind kind,
                          Item (*item_of)(nb::handle, std::string_view, ErrorKind)) {
  if (!is_list(value)) refuse(kind, what, value, "a list");
  std::vector<Item> items;
  for (const nb::handle item : nb::iter(value)) items.push_back(item_of(item, what, kind));
  return items;
}

std::string text_item(nb::handle item, std::string_view what, ErrorKind kind) { return text_of(item, what, kind); }
std::int64_t integer_item(nb::handle item, std::string_view what, ErrorKind) { return integer_of(item, what); }

std::vector<std::string> texts_of(nb::handle value, std::string_view what, ErrorKind kind = ErrorKind::kType) {
  return list_of<std::string>(value, what, kind, text_item);
}

nb::object to_list(const std::vector<std::string>& texts) { return nb::cast(texts); }

template <typename Value>
nb::object to_object(const std::optional<Value>& value) {
  return nb::cast(value);
}

Mode mode_of(nb::handle value) {
  const std::int64_t number = integer_of(value, "mode");
  if (number < 1 || number > 4) refuse(ErrorKind::kValue, "mode", value, "1 to 4");
  return static_cast<Mode>(number);
}

// ---- HookOptions by name

void take(nb::handle value, const char* what, std::string* out) { *out = text_of(value, what); }
void take(nb::handle value, const char* what, bool* out) { *out = bool_of(value, what); }
void take(nb::handle value, const char* what, std::int64_t* out) { *out = integer_of(value, what); }
void take(nb::handle value, const char* what, double* out) { *out = number_of(value, what); }
void take(nb::handle value, const char* what, std::vector<std::string>* out) { *out = texts_of(value, what); }
void take(nb::handle value, const char*, SaveConfig* out) { *out = save_config_of(value); }
void take(nb::handle value, const char*, ReductionConfig* out) { *out = reduction_config_of(value); }
void take(nb::handle value, const char* what, IncludeWorkers* out) {
  const std::string text = text_of(value, what);
  if (text != "one" && text != "all") refuse(ErrorKind::kValue, what, value, "'one' or 'all'");
  *out = text == "all" ? IncludeWorkers::kAll : IncludeWorkers::kOne;
}
void take(nb::handle value, const char* what, WhenFull* out) {
  const std::string text = text_of(value, what);
  if (text != "drop" && text != "block") refuse(ErrorKind::kValue, what, value, "'drop' or 'block'");
  *out = text == "block" ? WhenFull::kBlock : WhenFull::kDrop;
}
void take(nb::handle value, const char* what, Framework* out) { *out = value_of(framework_of(text_of(value, what))); }
template <typename Value>
void take(nb::handle value, const char* what, std::optional<Value>* out) {
  out->emplace();
  take(value, what, &**out);
}

nb::object give(const std::string& value) { return nb::cast(value); }
nb::object give(bool value) { return nb::cast(value); }
nb::object give(std::int64_t value) { return nb::cast(value); }
nb::object give(double value) { return nb::cast(value); }
nb::object give(const std::vector<std::string>& value) { return nb::cast(value); }
nb::object give(const SaveConfig& value) { return to_python(value); }
nb::object give(const ReductionConfig& value) { return to_python(value); }
nb::object give(IncludeWorkers value) { return nb::cast(value == IncludeWorkers::kAll ? "all" : "one"); }
nb::object give(WhenFull value) { return nb::cast(value == WhenFull::kBlock ? "block" : "drop"); }
template <typename Value>
nb::object give(const std::optional<Value>& value) {
  return value ? nb::object(give(*value)) : nb::object(nb::none());
}

struct Option {
  const char* name;
  void (*take)(nb::handle, const char*, HookOptions*);
  nb::object (*give)(const HookOptions&);
};
template <auto kMember>
constexpr Option option(const char* name) {
  return {name,
          [](nb::handle value, const char* what, HookOptions* options) { take(value, what, &(options->*kMember)); },
          [](const HookOptions& options) { return give(options.*kMember); }};
}

using O = HookOptions;
constexpr std::array kOptions = {
    option<&O::out_dir>("out_dir"),
    option<&O::export_tensorboard>("export_tensorboard"),
    option<&O::tensorboard_dir>("tensorboard_dir"),
    option<&O::dry_run>("dry_run"),
    option<&O::reduction_config>("reduction_config"),
    option<&O::save_config>("save_config"),
    option<&O::include_regex>("include_regex"),
    option<&O::include_collections>("include_collections"),
    option<&O::save_all>("save_all"),
    option<&O::include_workers>("include_workers"),
    option<&O::framework_version>("framework_version"),
    option<&O::rank>("rank"),
    option<&O::world_size>("world_size"),
    option<&O::worker>("worker"),
    option<&O::fsync>("fsync"),
    option<&O::when_full>("when_full"),
    option<&O::queue_bytes>("queue_bytes"),
    option<&O::queue_wait_ms>("queue_wait_ms"),
    option<&O::close_wait_s>("close_wait_s"),
    option<&O::spool_dir>("spool_dir"),
    option<&O::spool_bytes>("spool_bytes"),
    option<&O::readable_by_smdebug>("readable_by_smdebug"),
    option<&O::resume>("resume"),
    option<&O::shared>("shared"),
    option<&O::flush_on_signal>("flush_on_signal"),
    option<&O::honour_stop>("honour_stop"),
    option<&O::reduce_threads>("reduce_threads"),
    option<&O::max_bytes_per_step>("max_bytes_per_step"),
    option<&O::max_bytes_per_run>("max_bytes_per_run"),
    option<&O::keep_steps>("keep_steps"),
    option<&O::flight_recorder_steps>("flight_recorder_steps"),
    option<&O::flight_recorder_bytes>("flight_recorder_bytes"),
    option<&O::flight_recorder_raw>("flight_recorder_raw"),
    option<&O::derived>("derived"),
    option<&O::capture_functional>("capture_functional"),
    option<&O::stable_names>("stable_names"),
    option<&O::warn_unmatched>("warn_unmatched"),
    option<&O::rules>("rules"),
};

}  // namespace

SaveConfigMode schedule_of(nb::handle value) {
  const auto fields = nb::cast<nb::tuple>(value);
  SaveConfigMode schedule;
  if (!fields[0].is_none()) schedule.save_interval = integer_of(fields[0], "save_interval");
  if (!fields[1].is_none()) schedule.start_step = integer_of(fields[1], "start_step");
  if (!fields[2].is_none()) schedule.end_step = integer_of(fields[2], "end_step");
  if (!fields[3].is_none()) {
    schedule.save_steps = list_of<std::int64_t>(fields[3], "save_steps", ErrorKind::kValue, integer_item);
  }
  if (!fields[4].is_none()) schedule.when_nan = texts_of(fields[4], "when_nan", ErrorKind::kValue);
  return schedule;
}

nb::tuple to_python(const SaveConfigMode& schedule) {
  return nb::make_tuple(to_object(schedule.save_interval), to_object(schedule.start_step), to_object(schedule.end_step),
                        to_object(schedule.save_steps), to_object(schedule.when_nan));
}

SaveConfig save_config_of(nb::handle value) {
  SaveConfig config;
  for (const auto [mode, schedule] : nb::cast<nb::dict>(value)) {
    if (!schedule.is_none()) config.modes.emplace(mode_of(mode), schedule_of(schedule));
  }
  return config;
}

nb::dict to_python(const SaveConfig& config) {
  nb::dict modes;
  for (const auto& [mode, schedule] : config.modes) modes[nb::cast(static_cast<int>(mode))] = to_python(schedule);
  return modes;
}

ReductionConfig reduction_config_of(nb::handle value) {
  const auto fields = nb::cast<nb::tuple>(value);
  return {.reductions = texts_of(fields[0], "reductions"),
          .abs_reductions = texts_of(fields[1], "abs_reductions"),
          .norms = texts_of(fields[2], "norms"),
          .abs_norms = texts_of(fields[3], "abs_norms"),
          .save_raw_tensor = bool_of(fields[4], "save_raw_tensor"),
          .save_shape = bool_of(fields[5], "save_shape")};
}

nb::tuple to_python(const ReductionConfig& config) {
  return nb::make_tuple(to_list(config.reductions), to_list(config.abs_reductions), to_list(config.norms),
                        to_list(config.abs_norms), config.save_raw_tensor, config.save_shape);
}

CollectionConfig collection_config_of(nb::handle value) {
  const auto fields = nb::cast<nb::tuple>(value);
  CollectionConfig config{.name = text_of(fields[0], "the name of a collection"),
                          .include_regex = texts_of(fields[1], "include_regex"),
                          .exclude_regex = texts_of(fields[2], "exclude_regex"),
                          .tensor_names = texts_of(fields[3], "tensor_names"),
                          .save_histogram = bool_of(fields[6], "save_histogram")};
  if (!fields[4].is_none()) config.reduction_config = reduction_config_of(fields[4]);
  if (!fields[5].is_none()) config.save_config = save_config_of(fields[5]);
  return config;
}

nb::tuple to_python(const CollectionConfig& config) {
  const nb::object reductions =
      config.reduction_config ? nb::object(to_python(*config.reduction_config)) : nb::object(nb::none());
  const nb::object schedules = config.save_config ? nb::object(to_python(*config.save_config)) : nb::object(nb::none());
  return nb::make_tuple(config.name, to_list(config.include_regex), to_list(config.exclude_regex),
                        to_list(config.tensor_names), reductions, schedules, config.save_histogram);
}

HookOptions hook_options_of(nb::handle value) {
  HookOptions options;
  for (const auto [key, given] : nb::cast<nb::dict>(value)) {
    if (given.is_none()) continue;
    const auto name = nb::cast<std::string>(key);
    if (name == "framework") {
      take(given, "framework", &options.framework);
      continue;
    }
    const auto* found = std::find_if(kOptions.begin(), kOptions.end(), [&](const Option& o) { return name == o.name; });
    if (found == kOptions.end()) {
      std::string known;
      for (const Option& option : kOptions) known += (known.empty() ? "" : ", ") + std::string(option.name);
      raise({ErrorCode::kInvalid, fmt::format("'{}' is no option of a hook; there are: {}", name, known),
             ErrorKind::kType});
    }
    found->take(given, found->name, &options);
  }
  return options;
}

nb::dict to_python(const HookOptions& options) {
  nb::dict dict;
  for (const Option& option : kOptions) dict[option.name] = option.give(options);
  return dict;
}

}  // namespace tornasole::python
