// The C interface: each call checked, then handed to the C++ hook. What goes wrong behind it becomes a code.

#include "capture/c_api.h"

#include <cstdlib>
#include <cstring>
#include <limits>
#include <mutex>
#include <span>
#include <vector>

#include "base/utf8.h"
#include "format/event_limits.h"
#include "tornasole/stats.h"

#ifndef TORNASOLE_VERSION
#error "the build has to say which version this is"
#endif

namespace tornasole::capture {
namespace {

using StepState = tornasole_hook::StepState;

// C has no other way to return an error beside a pointer or a number; each thread has its own.
struct LastError {
  std::string message = {};
  tornasole_code_t code = TORNASOLE_OK;
  tornasole_kind_t kind = TORNASOLE_KIND_BASE;
};
thread_local LastError last_error;

Result<Mode> to_mode(tornasole_mode_t mode, bool allows_current) {
  if (mode >= TORNASOLE_TRAIN && mode <= TORNASOLE_GLOBAL) return static_cast<Mode>(mode);
  return invalid_error("mode {} is not allowed; allowed: {}1 (train), 2 (eval), 3 (predict), 4 (global)", mode,
                       allows_current ? "0 (the current one), " : "");
}

// A view of a caller's tensor; `texts` holds what a view of strings refers to.
Result<TensorView> to_view(std::string_view name, const tornasole_tensor_t& tensor,
                           std::vector<std::string_view>* texts) {
  if (tensor.rank > format::kMaxRank) {
    return invalid_error("'{}': rank {} is not allowed; allowed: at most {}", name, tensor.rank, format::kMaxRank);
  }
  if (tensor.rank > 0 && tensor.shape == nullptr) return invalid_error("'{}': shape is null", name);
  Shape shape(std::span<const std::int64_t>(tensor.shape, tensor.rank));
  const std::int64_t count = shape.element_count();
  if (count < 0) return invalid_error("'{}': no tensor has the shape {}", name, shape.to_string());
  if (count > 0 && tensor.data == nullptr) return invalid_error("'{}': data is null", name);
  if (tensor.dtype == TORNASOLE_STRING) {
    if (tensor.rank != 1) return invalid_error("'{}': strings of rank {}; allowed: rank 1", name, tensor.rank);
    const auto* items = static_cast<const char* const*>(tensor.data);
    for (std::int64_t i = 0; i < count; ++i) {
      if (items[i] == nullptr) return invalid_error("'{}': string {} is null", name, i);
      texts->emplace_back(items[i]);
    }
    return TensorView::strings(*texts);
  }
  const auto dtype = static_cast<DType>(tensor.dtype);
  if (tensor.dtype < 0 || tensor.dtype > 255 || dtype_size(dtype) == 0) {
    return invalid_error("'{}': {} is no element type; tornasole/c.h lists them", name, tensor.dtype);
  }
  if (tensor.strides_bytes == nullptr) return TensorView(dtype, tensor.data, std::move(shape));
  return TensorView(dtype, tensor.data, std::move(shape), {tensor.strides_bytes, tensor.rank});
}

Status begin_step(tornasole_hook* hook, tornasole_mode_t mode, std::optional<std::int64_t> at) {
  const std::lock_guard lock(hook->step_mutex);
  std::optional<Mode> wanted;
  if (mode != TORNASOLE_CURRENT_MODE) {
    TORNASOLE_TRY(wanted, to_mode(mode, /*allows_current=*/true));
  }
  if (at && *at < 0) return invalid_error("step {} is negative; steps count from 0", *at);
  hook->step.reset();
  if (at) {
    hook->step.emplace(hook->hook.begin_step(wanted.value_or(hook->hook.mode()), GlobalStep{*at}));
  } else {
    hook->step.emplace(wanted ? hook->hook.begin_step(*wanted) : hook->hook.begin_step());
  }
  hook->step_state = hook->step->anything_due() ? StepState::kDue : StepState::kNothingDue;
  return {};
}

void end_step(tornasole_hook* hook) {
  const std::lock_guard lock(hook->step_mutex);
  hook->step_state = StepState::kNone;
  hook->step.reset();
}

// `how` gets the open step and the tensor.
template <typename Save>
tornasole_code_t save(std::string_view call, tornasole_hook* hook, const char* name, const tornasole_tensor_t* tensor,
                      Save&& how) noexcept {
  if (hook != nullptr && name != nullptr && tensor != nullptr &&
      hook->step_state.load(std::memory_order_relaxed) == StepState::kNothingDue) {
    return TORNASOLE_OK;
  }
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null(call, {{"hook", hook}, {"name", name}, {"tensor", tensor}}));
    std::vector<std::string_view> texts;
    TORNASOLE_TRY(const TensorView view, to_view(name, *tensor, &texts));
    const std::shared_lock lock(hook->step_mutex);
    if (!hook->step) return invalid_error("{}: '{}' was offered while no step is open", call, name);
    how(*hook->step, view);
    return {};
  });
}

Result<tornasole_hook_t*> opened(Result<Hook> hook) {
  if (!hook.ok()) return std::move(hook).error();
  return new tornasole_hook(std::move(hook).value());
}

// After the end there is no step to save into. `end` closes the hook; it finds the step open if it is to be partial.
template <typename End>
Status finish(tornasole_hook* hook, bool is_partial, End&& end) {
  const std::lock_guard lock(hook->step_mutex);
  hook->step_state = StepState::kNone;
  if (!is_partial) hook->step.reset();
  Status ended = std::forward<End>(end)(hook->hook);
  hook->step.reset();
  return ended;
}

}  // namespace

tornasole_code_t set_last_error(Error error) noexcept {
  last_error.message = std::move(error.message);
  last_error.code = static_cast<tornasole_code_t>(error.code) + 1;
  last_error.kind = static_cast<tornasole_kind_t>(error.kind);
  return last_error.code;
}

Status not_null(std::string_view call, std::initializer_list<Argument> arguments) {
  for (const Argument& argument : arguments) {
    if (argument.value == nullptr) return invalid_error("{}: {} is null", call, argument.name);
  }
  return {};
}

char* to_caller(std::string_view text) noexcept {
  auto* copy = static_cast<char*>(std::malloc(text.size() + 1));
  if (copy == nullptr) {
    set_last_error({ErrorCode::kIo, "out of memory", ErrorKind::kRuntime});
    return nullptr;
  }
  std::memcpy(copy, text.data(), text.size());
  copy[text.size()] = '\0';
  return copy;
}

}  // namespace tornasole::capture

using namespace tornasole;           // NOLINT(google-build-using-namespace): the functions below are outside of it
using namespace tornasole::capture;  // NOLINT(google-build-using-namespace)

static_assert(static_cast<int>(ErrorCode::kInvalid) + 1 == TORNASOLE_INVALID);
static_assert(static_cast<int>(ErrorCode::kUnsupported) + 1 == TORNASOLE_UNSUPPORTED);
static_assert(static_cast<int>(ErrorKind::kBase) == TORNASOLE_KIND_BASE);
static_assert(static_cast<int>(ErrorKind::kFileNotFound) == TORNASOLE_KIND_FILE_NOT_FOUND);
static_assert(static_cast<int>(DType::kFloat8E4m3fn) == TORNASOLE_FLOAT8_E4M3FN);
static_assert(static_cast<int>(Mode::kGlobal) == TORNASOLE_GLOBAL);
static_assert(static_cast<int>(LogLevel::kError) == TORNASOLE_ERROR);

// ---- the library, errors and texts

const char* tornasole_version(void) { return TORNASOLE_VERSION; }
const char* tornasole_last_error(void) { return last_error.message.c_str(); }
tornasole_code_t tornasole_last_error_code(void) { return last_error.code; }
tornasole_kind_t tornasole_last_error_kind(void) { return last_error.kind; }

const char* tornasole_code_name(tornasole_code_t code) {
  if (code == TORNASOLE_OK) return "ok";
  if (code < TORNASOLE_OK || code > TORNASOLE_UNSUPPORTED) return "unknown";
  return error_code_name(static_cast<ErrorCode>(code - 1));
}

void tornasole_text_free(char* text) { std::free(text); }

// ---- a hook

tornasole_hook_t* tornasole_open(const tornasole_options_t* options) {
  return answer_or<tornasole_hook_t*>(nullptr, [&]() -> Result<tornasole_hook_t*> {
    TORNASOLE_CHECK(not_null("tornasole_open", {{"options", options}}));
    return opened(Hook::open(resolve(*options)));
  });
}

tornasole_hook_t* tornasole_open_file(const char* path, const tornasole_options_t* options) {
  return answer_or<tornasole_hook_t*>(nullptr, [&] {
    return opened(Hook::open_file(path == nullptr ? "" : path, options == nullptr ? HookOptions{} : resolve(*options)));
  });
}

void tornasole_free(tornasole_hook_t* hook) { delete hook; }

tornasole_code_t tornasole_close(tornasole_hook_t* hook) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_close", {{"hook", hook}}));
    return finish(hook, /*is_partial=*/false, [](Hook& ended) { return ended.close(); });
  });
}

tornasole_code_t tornasole_fail(tornasole_hook_t* hook, const char* reason) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_fail", {{"hook", hook}, {"reason", reason}}));
    return finish(hook, /*is_partial=*/true, [&](Hook& ended) { return ended.fail(reason); });
  });
}

// ---- steps

tornasole_code_t tornasole_begin_step(tornasole_hook_t* hook, tornasole_mode_t mode) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_begin_step", {{"hook", hook}}));
    return begin_step(hook, mode, std::nullopt);
  });
}

tornasole_code_t tornasole_begin_step_at(tornasole_hook_t* hook, tornasole_mode_t mode, int64_t step) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_begin_step_at", {{"hook", hook}}));
    return begin_step(hook, mode, step);
  });
}

tornasole_code_t tornasole_end_step(tornasole_hook_t* hook) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_end_step", {{"hook", hook}}));
    end_step(hook);
    return {};
  });
}

tornasole_code_t tornasole_set_mode(tornasole_hook_t* hook, tornasole_mode_t mode) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_set_mode", {{"hook", hook}}));
    TORNASOLE_TRY(const Mode wanted, to_mode(mode, /*allows_current=*/false));
    end_step(hook);
    hook->hook.set_mode(wanted);
    return {};
  });
}

tornasole_code_t tornasole_prepare(tornasole_hook_t* hook) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_prepare", {{"hook", hook}}));
    return hook->hook.prepare();
  });
}

// ---- values

tornasole_code_t tornasole_save(tornasole_hook_t* hook, const char* name, const tornasole_tensor_t* tensor) {
  return save("tornasole_save", hook, name, tensor,
              [&](StepScope& step, const TensorView& view) { step.save(name, view); });
}

tornasole_code_t tornasole_save_input(tornasole_hook_t* hook, const char* module, const tornasole_tensor_t* tensor) {
  return save("tornasole_save_input", hook, module, tensor,
              [&](StepScope& step, const TensorView& view) { step.save_input(module, view); });
}

tornasole_code_t tornasole_save_output(tornasole_hook_t* hook, const char* module, const tornasole_tensor_t* tensor) {
  return save("tornasole_save_output", hook, module, tensor,
              [&](StepScope& step, const TensorView& view) { step.save_output(module, view); });
}

tornasole_code_t tornasole_stats(const tornasole_tensor_t* tensor, const char* const* names, size_t count,
                                 double* values, int* is_defined) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_stats", {{"tensor", tensor}, {"names", names}, {"values", values}}));
    StatSet wanted;
    std::vector<Stat> asked;
    for (size_t i = 0; i < count; ++i) {
      if (names[i] == nullptr) return invalid_error("tornasole_stats: name {} is null", i);
      const auto stat = parse_stat(names[i]);
      if (!stat) return invalid_error("tornasole_stats: there is no statistic '{}'", printable(names[i]));
      asked.push_back(*stat);
      wanted.add(*stat);
    }
    std::vector<std::string_view> texts;
    TORNASOLE_TRY(const TensorView view, to_view("tornasole_stats", *tensor, &texts));
    TORNASOLE_TRY(const Stats found, stats(view, wanted));
    for (size_t i = 0; i < count; ++i) {
      values[i] = found[asked[i]].value_or(std::numeric_limits<double>::quiet_NaN());
      if (is_defined != nullptr) is_defined[i] = found.has(asked[i]) ? 1 : 0;
    }
    return {};
  });
}

tornasole_code_t tornasole_save_tensor(tornasole_hook_t* hook, const char* name, const tornasole_tensor_t* tensor,
                                       const char* const* collections, size_t collection_count) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_save_tensor", {{"hook", hook}, {"name", name}, {"tensor", tensor}}));
    if (collection_count > 0) TORNASOLE_CHECK(not_null("tornasole_save_tensor", {{"collections", collections}}));
    std::vector<std::string_view> names;
    for (size_t i = 0; i < collection_count; ++i) {
      if (collections[i] == nullptr) return invalid_error("tornasole_save_tensor: collection {} is null", i);
      names.emplace_back(collections[i]);
    }
    if (names.empty()) names.emplace_back("default");
    std::vector<std::string_view> texts;
    TORNASOLE_TRY(const TensorView view, to_view(name, *tensor, &texts));
    hook->hook.save_tensor(name, view, std::span<const std::string_view>(names));
    return {};
  });
}

tornasole_code_t tornasole_save_scalar(tornasole_hook_t* hook, const char* name, double value) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_save_scalar", {{"hook", hook}, {"name", name}}));
    hook->hook.save_scalar(name, value);
    return {};
  });
}

tornasole_code_t tornasole_save_scalar_at(tornasole_hook_t* hook, const char* name, double value, double timestamp,
                                          int sm_metric) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_save_scalar_at", {{"hook", hook}, {"name", name}}));
    hook->hook.save_scalar(name, value, {.sm_metric = sm_metric != 0, .timestamp = timestamp});
    return {};
  });
}

int tornasole_wants(tornasole_hook_t* hook, const char* name) {
  return answer_or<int>(0, [&]() -> Result<int> {
    TORNASOLE_CHECK(not_null("tornasole_wants", {{"hook", hook}, {"name", name}}));
    const std::shared_lock lock(hook->step_mutex);
    return hook->step && hook->step->wants(name) ? 1 : 0;
  });
}

tornasole_code_t tornasole_dump_flight_recorder(tornasole_hook_t* hook) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_dump_flight_recorder", {{"hook", hook}}));
    hook->hook.dump_flight_recorder();
    return {};
  });
}

// ---- questions

int tornasole_stop_requested(tornasole_hook_t* hook) {
  return answer_or<int>(0, [&]() -> Result<int> {
    TORNASOLE_CHECK(not_null("tornasole_stop_requested", {{"hook", hook}}));
    return hook->hook.stop_requested() ? 1 : 0;
  });
}

tornasole_mode_t tornasole_mode(tornasole_hook_t* hook) {
  return answer_or<tornasole_mode_t>(0, [&]() -> Result<tornasole_mode_t> {
    TORNASOLE_CHECK(not_null("tornasole_mode", {{"hook", hook}}));
    return static_cast<tornasole_mode_t>(hook->hook.mode());
  });
}

int64_t tornasole_step(tornasole_hook_t* hook) {
  return answer_or<int64_t>(-1, [&]() -> Result<int64_t> {
    TORNASOLE_CHECK(not_null("tornasole_step", {{"hook", hook}}));
    return hook->hook.step();
  });
}

int64_t tornasole_mode_step(tornasole_hook_t* hook, tornasole_mode_t mode) {
  return answer_or<int64_t>(-1, [&]() -> Result<int64_t> {
    TORNASOLE_CHECK(not_null("tornasole_mode_step", {{"hook", hook}}));
    TORNASOLE_TRY(const Mode wanted, to_mode(mode, /*allows_current=*/false));
    return hook->hook.mode_step(wanted);
  });
}

int64_t tornasole_last_saved_step(tornasole_hook_t* hook) {
  return answer_or<int64_t>(-1, [&]() -> Result<int64_t> {
    TORNASOLE_CHECK(not_null("tornasole_last_saved_step", {{"hook", hook}}));
    return hook->hook.last_saved_step();
  });
}

const char* tornasole_out_dir(tornasole_hook_t* hook) {
  return answer_or<const char*>(nullptr, [&]() -> Result<const char*> {
    TORNASOLE_CHECK(not_null("tornasole_out_dir", {{"hook", hook}}));
    return hook->hook.out_dir().c_str();
  });
}

const char* tornasole_worker(tornasole_hook_t* hook) {
  return answer_or<const char*>(nullptr, [&]() -> Result<const char*> {
    TORNASOLE_CHECK(not_null("tornasole_worker", {{"hook", hook}}));
    return hook->hook.worker().c_str();
  });
}
