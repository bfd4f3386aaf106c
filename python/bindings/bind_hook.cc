#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "tornasole/hook.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// From here on it pays to let other threads of Python run while a value is reduced or copied.
constexpr std::int64_t kUnlockedBytes = 64 << 10;

// A hook and its open step. The front end begins and ends steps, so a step needs no object of its own in Python.
class PythonHook {
 public:
  explicit PythonHook(Hook hook) : hook_(std::move(hook)) {}

  Hook& hook() noexcept { return hook_; }

  // Whether anything can be saved in the step.
  bool begin_step(std::optional<int> mode) {
    step_.reset();
    step_.emplace(mode ? hook_.begin_step(static_cast<Mode>(*mode)) : hook_.begin_step());
    return step_->anything_due();
  }
  void end_step() { step_.reset(); }
  std::uint64_t due_set() const noexcept { return step_ ? step_->due_set() : 0; }
  bool wants(std::string_view name) const noexcept { return step_ && step_->anything_due() && step_->wants(name); }

  void save(std::string_view name, nb::handle array) {
    use(array, [&](const TensorView& view) { step_->save(name, view); });
  }
  void save_input(std::string_view module, nb::handle array) {
    use(array, [&](const TensorView& view) { step_->save_input(module, view); });
  }
  void save_output(std::string_view module, nb::handle array) {
    use(array, [&](const TensorView& view) { step_->save_output(module, view); });
  }
  void save_tensor(std::string_view name, nb::handle array, const std::vector<std::string>& collections) {
    const BorrowedArray borrowed(array);
    const std::vector<std::string_view> names(collections.begin(), collections.end());
    hook_.save_tensor(name, borrowed.view(), std::span<const std::string_view>(names));
  }
  void close() {
    step_.reset();
    const nb::gil_scoped_release unlocked;
    static_cast<void>(hook_.close());  // what failed is in the report
  }

 private:
  template <typename Use>
  void use(nb::handle array, const Use& use) {
    if (!step_ || !step_->anything_due()) return;
    const BorrowedArray borrowed(array);
    if (borrowed.view().size_bytes() < kUnlockedBytes) return use(borrowed.view());
    const nb::gil_scoped_release unlocked;
    use(borrowed.view());
  }

  Hook hook_;
  std::optional<StepScope> step_;  // ends before the hook does
};

}  // namespace

void bind_hook(nb::module_& module) {
  nb::class_<PythonHook>(module, "Hook")
      .def(
          "__init__",
          [](PythonHook* self, const std::string& out_dir, bool save_all, std::int64_t save_interval) {
            HookOptions options{.out_dir = out_dir};
            options.save_all = save_all;
            options.save_config.save_interval = save_interval;
            options.framework = Framework::kPytorch;
            new (self) PythonHook(value_of(Hook::open(std::move(options))));
          },
          nb::arg("out_dir"), nb::arg("save_all") = false, nb::arg("save_interval") = 500)
      .def("begin_step", &PythonHook::begin_step, nb::arg("mode") = nb::none())
      .def("end_step", &PythonHook::end_step)
      .def("wants", &PythonHook::wants)
      .def("due_set", &PythonHook::due_set)
      .def("save", &PythonHook::save)
      .def("save_input", &PythonHook::save_input)
      .def("save_output", &PythonHook::save_output)
      .def("save_tensor", &PythonHook::save_tensor)
      .def("close", &PythonHook::close);
}

}  // namespace tornasole::python
