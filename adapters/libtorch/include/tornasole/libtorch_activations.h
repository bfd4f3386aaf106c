#pragma once

// Inputs and outputs of modules without touching the model: libtorch modules have no forward hooks in C++, but every
// operator can be observed. An operator that is given the weight of a registered module is that module's forward pass.
//
// Seen: Linear, Conv1d to 3d, ConvTranspose1d to 3d, BatchNorm, LayerNorm, GroupNorm, InstanceNorm with weights, and
// Embedding, as <path>_input_0 and <path>_output_0; with capture_functional also activations such as torch::relu(x), as
// <root>.relu()_<n>_input_0 and ..._output_0. Not seen: modules without a weight and modules made of others (tap them:
// step.tap), recurrent layers and attention as a whole, code that TorchScript compiled, and what other threads than the
// one that began the step run.

#include <ATen/record_function.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <exception>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tornasole/hook.h"
#include "tornasole/libtorch_structure.h"

namespace tornasole::libtorch {

namespace detail {
namespace {

// What an operator is given, in a callback at its begin. at::RecordFunction::inputs checks in programs with assertions
// a member that libraries without them, which are the ones there are, never set; so there the inputs are read past it,
// by way of an explicit instantiation, to which access rules do not apply.
#ifdef NDEBUG
c10::ArrayRef<const at::IValue> inputs_of(const at::RecordFunction& function) { return function.inputs(); }
#else
c10::ArrayRef<const at::IValue> inputs_of(const at::RecordFunction& function);
template <auto kInputs>
struct InputsReader {
  friend c10::ArrayRef<const at::IValue> inputs_of(const at::RecordFunction& function) { return function.*kInputs; }
};
template struct InputsReader<&at::RecordFunction::inputs_>;
#endif

}  // namespace
}  // namespace detail

class ActivationTaps : public std::enable_shared_from_this<ActivationTaps> {
 public:
  using Save = std::function<void(const at::Tensor&, const std::function<void(const StepRef&, const at::Tensor&)>&)>;

  ActivationTaps(const ModelStructure& structure, bool captures_functions)
      : root_(structure.root), captures_functions_(captures_functions) {
    for (const ModelStructure::Module& module : structure.modules) modules_.emplace(module.path, Layer(module.path));
    for (const auto* tensors : {&structure.parameters, &structure.buffers}) {
      for (const ModelStructure::Parameter& one : *tensors) {
        Layer& layer = modules_.at(one.module);
        tensors_.emplace_back(one.tensor, one.key == "weight" ? &layer : nullptr);
        if (one.key == "bias") layer.bias = one.tensor;
      }
    }
  }
  ~ActivationTaps() = default;
  ActivationTaps(const ActivationTaps&) = delete;
  ActivationTaps& operator=(const ActivationTaps&) = delete;

  // Whether anything it can see would be saved in this step.
  bool is_wanted(const StepRef& step) const {
    if (captures_functions_) return true;
    for (const auto& [tensor, layer] : tensors_) {
      if (layer == nullptr) continue;
      const std::string& name = layer->name.text();
      if (step.wants(name + "_input_0") || step.wants(name + "_output_0")) return true;
    }
    return false;
  }

  // Observes the operators of this thread until `stop`. `save` is called with what is to be saved, `log` with what
  // went wrong.
  void start(Save save, std::function<void(const char*)> log) {
    stop();
    save_ = std::move(save);
    log_ = std::move(log);
    numbers_.clear();
    // By memory, as an operator may be given a transposed view of a weight; anew, as a model may have moved.
    layers_.clear();
    for (const auto& [tensor, layer] : tensors_) {
      if (tensor.defined() && tensor.has_storage()) layers_.emplace(memory_of(tensor), layer);
    }
    is_on_.store(true, std::memory_order_relaxed);
    observer().add(shared_from_this());
  }
  // From another thread than that of `start` it has an effect there too; what is left there goes with the next call.
  void stop() {
    is_on_.store(false, std::memory_order_relaxed);
    observer().forget_idle();
  }

 private:
  struct Layer {
    explicit Layer(std::string path) : name(std::move(path)) {}
    ModuleName name;
    at::Tensor bias;
  };
  // What an operator that is captured has to hand on to its end.
  struct Captured : at::ObserverContext {
    Layer* layer = nullptr;
    bool awaits_bias = false;              // which is added by the next operator
    std::string stem;                      // of a function
    std::shared_ptr<ActivationTaps> taps;  // shared: they may be let go while the operator runs
  };

  static const void* memory_of(const at::Tensor& tensor) {
#if TORCH_VERSION_MAJOR >= 2
    return tensor.const_data_ptr();
#else
    return tensor.data_ptr();
#endif
  }

  // The taps of a thread. libtorch calls plain functions, so where they are is kept beside those; weakly, as a thread
  // may outlive them.
  struct Observer {
    void add(const std::shared_ptr<ActivationTaps>& added) {
      forget_idle();
      taps.push_back(added);
      if (handle != 0) return;
      depth = 0;
      handle = at::addThreadLocalCallback(at::RecordFunctionCallback(&before, &after)
                                              .needsInputs(true)
                                              .needsOutputs(true)
                                              .scopes({at::RecordScope::FUNCTION, at::RecordScope::BACKWARD_FUNCTION}));
    }
    void forget_idle() {
      std::erase_if(taps, [](const std::weak_ptr<ActivationTaps>& known) {
        const auto one = known.lock();
        return !one || !one->is_on_.load(std::memory_order_relaxed);
      });
      if (!taps.empty() || handle == 0) return;
      at::removeCallback(handle);
      handle = 0;
    }
    std::vector<std::weak_ptr<ActivationTaps>> taps;
    at::CallbackHandle handle = 0;
    int depth = 0;  // of operators inside operators
  };
  static Observer& observer() {
    static thread_local Observer of_thread;
    return of_thread;
  }

  static std::unique_ptr<at::ObserverContext> before(const at::RecordFunction& function) {
    Observer& here = observer();
    // Operators inside an operator are its own affair, and those of a backward pass are no activations.
    if (here.depth++ > 0 || function.scope() != at::RecordScope::FUNCTION) return nullptr;
    for (const std::weak_ptr<ActivationTaps>& known : here.taps) {
      const std::shared_ptr<ActivationTaps> taps = known.lock();
      if (!taps || !taps->is_on_.load(std::memory_order_relaxed)) continue;
      try {
        if (std::unique_ptr<Captured> captured = taps->operator_begins(function)) {
          captured->taps = taps;
          return captured;
        }
      } catch (const std::exception& error) {  // the training goes on without this value
        taps->log_(error.what());
      }
    }
    return nullptr;
  }
  static void after(const at::RecordFunction& function, at::ObserverContext* context) {
    --observer().depth;
    if (context == nullptr) return;
    const auto& captured = static_cast<const Captured&>(*context);
    try {
      captured.taps->operator_ends(function, captured);
    } catch (const std::exception& error) {
      captured.taps->log_(error.what());
    }
  }

  std::unique_ptr<Captured> operator_begins(const at::RecordFunction& function) {
    std::string_view name = function.name();
    if (!name.starts_with("aten::")) return nullptr;
    name.remove_prefix(6);
    if (is_layer(name)) return layer_begins(function, name == "matmul");
    if (name == "add_" && awaiting_.layer != nullptr) return bias_is_added(function);
    if (name.ends_with('_')) name.remove_suffix(1);
    if (!captures_functions_ || !is_activation(name) || detail::inputs_of(function).empty()) return nullptr;
    if (!detail::inputs_of(function)[0].isTensor()) return nullptr;
    auto captured = std::make_unique<Captured>();
    captured->stem = root_ + "." + std::string(name) + "()_" + std::to_string(numbers_[std::string(name)]++);
    save_(detail::inputs_of(function)[0].toTensor(),
          [text = captured->stem + "_input_0"](const StepRef& step, const at::Tensor& x) { step.save(text, x); });
    return captured;
  }
  std::unique_ptr<Captured> layer_begins(const at::RecordFunction& function, bool is_matmul) {
    const at::Tensor* input = nullptr;
    Layer* layer = nullptr;
    for (const at::IValue& value : detail::inputs_of(function)) {
      if (!value.isTensor() || !value.toTensor().defined() || !value.toTensor().has_storage()) continue;
      const auto found = layers_.find(memory_of(value.toTensor()));
      if (found == layers_.end()) {
        if (input == nullptr) input = &value.toTensor();
      } else if (found->second != nullptr) {
        layer = found->second;
      }
    }
    if (layer == nullptr || input == nullptr) return nullptr;
    save_(*input, [layer](const StepRef& step, const at::Tensor& x) { step.save_input(layer->name, x); });
    auto captured = std::make_unique<Captured>();
    captured->layer = layer;
    captured->awaits_bias = is_matmul && layer->bias.defined();
    return captured;
  }
  // The second half of a Linear with inputs of more than two dimensions: output += bias.
  std::unique_ptr<Captured> bias_is_added(const at::RecordFunction& function) {
    const Awaiting awaiting = std::exchange(awaiting_, {});
    const auto inputs = detail::inputs_of(function);
    if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return nullptr;
    if (inputs[0].toTensor().unsafeGetTensorImpl() != awaiting.output) return nullptr;
    if (!inputs[1].toTensor().is_same(awaiting.layer->bias)) return nullptr;
    auto captured = std::make_unique<Captured>();
    captured->layer = awaiting.layer;
    return captured;
  }
  void operator_ends(const at::RecordFunction& function, const Captured& captured) {
    const std::vector<at::IValue>& outputs = function.outputs();
    if (outputs.empty() || !outputs[0].isTensor()) return;
    const at::Tensor& output = outputs[0].toTensor();
    if (captured.awaits_bias) {
      awaiting_ = {captured.layer, output.unsafeGetTensorImpl()};
    } else if (Layer* layer = captured.layer; layer != nullptr) {
      save_(output, [layer](const StepRef& step, const at::Tensor& x) { step.save_output(layer->name, x); });
    } else {
      save_(output,
            [text = captured.stem + "_output_0"](const StepRef& step, const at::Tensor& x) { step.save(text, x); });
    }
  }

  static bool is_layer(std::string_view name) noexcept {
    static constexpr std::array<std::string_view, 15> kLayers = {
        "addmm",      "matmul",           "linear",           "conv1d",           "conv2d",
        "conv3d",     "conv_transpose1d", "conv_transpose2d", "conv_transpose3d", "batch_norm",
        "layer_norm", "group_norm",       "instance_norm",    "embedding",        "bilinear"};
    return std::ranges::find(kLayers, name) != kLayers.end();
  }
  static bool is_activation(std::string_view name) noexcept {
    static constexpr std::array<std::string_view, 19> kActivations = {
        "celu",  "elu",  "gelu",  "glu",   "hardsigmoid", "hardswish", "hardtanh", "leaky_relu", "log_softmax", "mish",
        "prelu", "relu", "relu6", "rrelu", "selu",        "sigmoid",   "silu",     "softmax",    "tanh"};
    return std::ranges::find(kActivations, name) != kActivations.end();
  }

  const std::string root_;
  const bool captures_functions_;
  struct Awaiting {
    Layer* layer = nullptr;
    const at::TensorImpl* output = nullptr;
  };

  std::map<std::string, Layer> modules_;                // by path; constant
  std::vector<std::pair<at::Tensor, Layer*>> tensors_;  // parameters and buffers; the layer of which it is the weight
  std::unordered_map<const void*, Layer*> layers_;      // the same by memory, in this step
  Awaiting awaiting_;
  Save save_;
  std::function<void(const char*)> log_;
  std::map<std::string, int> numbers_;  // of the functions called in this step
  std::atomic<bool> is_on_ = false;
};

}  // namespace tornasole::libtorch
