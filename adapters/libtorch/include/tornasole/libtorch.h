#pragma once

// Captures a training with libtorch, under the names of the Python hook.
//
//   auto hook = tornasole::libtorch::open({.out_dir = "runs/mnist", .save_config = {.save_interval = 100}});
//   if (!hook) return fail(hook.error());
//   auto& model = tornasole::libtorch::register_module(*hook, *net);
//   model.register_optimizer(optimizer);
//
//   for (auto& batch : *loader) {
//     auto step = hook->begin_step();               // training or evaluation, as the module says
//     auto loss = torch::nll_loss(net->forward(batch.data), batch.target);
//     step.save_output("nll_loss", loss);           // nll_loss_output_0
//     loss.backward();                              // inside the step: gradients come here
//     optimizer.step();
//   }
//
//   <Root>_<path>, Net_fc1.weight              parameter, when the step begins
//   gradient/<parameter>                       in the backward pass, as it comes: of this pass, not the accumulated one
//   <path>_input_0, <path>_output_0            modules that operators tell of (libtorch_activations.h)
//   optimizer_state/<key>/<parameter>          when the step begins, if the collection optimizer_variables is saved
//   scalar/learning_rate/<group>               the same
//   optimizer_gradient/<parameter>             Model::before_optimizer_step, if optimizer_gradients is saved
//
// No value and no random number of the training changes, and no failure reaches it. When nothing is due a step costs a
// comparison, and the gradients that were once saved a look at a flag each. Compiles with libtorch 1.13 and later.

#include <torch/nn/module.h>
#include <torch/nn/pimpl.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tornasole/hook.h"
#include "tornasole/libtorch_activations.h"
#include "tornasole/libtorch_copies.h"
#include "tornasole/libtorch_optimizer.h"
#include "tornasole/libtorch_structure.h"
#include "tornasole/libtorch_view.h"

namespace tornasole::libtorch {

// A hook with the collections of PyTorch.
inline Result<Hook> open(HookOptions options) {
  options.framework = Framework::kPytorch;
  options.framework_version = TORCH_VERSION;
  return Hook::open(std::move(options));
}

struct ModuleOptions {
  std::string name = {};              // of the root; its type without Impl
  bool save_buffers = false;          // offer buffers too, as running means, under the names of parameters
  bool save_activations = true;       // offer what operators tell of modules, on the thread that begins the step
  bool capture_functional = false;    // and activations that are functions
  bool mode_follows_training = true;  // steps begun without a mode: train or eval, as is_training says
  StartCopy start_copy = libtorch::start_copy;  // how tensors of other devices come here
};

// One registered root module: all that hangs on it, and what is known of it. Belongs to the hook.
class Model final : public StepListener, public std::enable_shared_from_this<Model> {
 public:
  Model(const torch::nn::Module& module, ModuleOptions options)
      : options_(std::move(options)),
        structure_(module, options_.name.empty() ? type_name(module.name()) : options_.name),
        module_(&module),
        is_shared_(!module.weak_from_this().expired()),
        owner_(module.weak_from_this()),
        copies_(options_.start_copy) {
    name_tensors();
  }

  // The root's name in all names.
  const std::string& name() const noexcept { return structure_.root; }

  // Its state and learning rates may be asked for, and it is described. It must outlive the hook, or be forgotten.
  void register_optimizer(torch::optim::Optimizer& optimizer) {
    const std::lock_guard lock(mutex_);
    for (const torch::optim::Optimizer* known : optimizers_) {
      if (known == &optimizer) return;
    }
    optimizers_.push_back(&optimizer);
    is_described_ = false;
  }
  void forget_optimizer(const torch::optim::Optimizer& optimizer) noexcept {
    const std::lock_guard lock(mutex_);
    std::erase(optimizers_, &optimizer);
  }
  // Called before optimizer.step(): saves optimizer_gradient/<parameter>, the gradients as the optimizer sees them,
  // and counts the step. libtorch has no callback there.
  void before_optimizer_step() noexcept {
    optimizer_steps_.fetch_add(1, std::memory_order_relaxed);
    guarded([&] {
      const Wanted* wanted = wanted_.load(std::memory_order_acquire);
      if (wanted == nullptr) return;
      for (const std::size_t i : wanted->optimizer_gradients) {
        const at::Tensor& gradient = structure_.parameters[i].tensor.grad();
        if (gradient.defined()) save(optimizer_gradient_names_[i], gradient);
      }
    });
  }
  // The model has other parameters or modules than when it was registered: they are looked at again. Between steps.
  void update() {
    wanted_.store(nullptr, std::memory_order_release);
    const std::lock_guard lock(mutex_);
    remove_gradient_hooks();
    structure_ = ModelStructure(*module_, structure_.root);
    wanted_by_due_set_.clear();
    stop_taps();
    taps_.reset();
    is_described_ = false;
    name_tensors();
  }

  // ---- called by the hook

  std::optional<Mode> mode() noexcept override {
    if (!options_.mode_follows_training || is_gone()) return std::nullopt;
    return module_->is_training() ? Mode::kTrain : Mode::kEval;
  }
  void step_began(const StepRef& step) noexcept override {
    if (is_gone()) return;
    guarded([&] { begin(step); });
  }
  void step_ends(const StepRef&) noexcept override {
    wanted_.store(nullptr, std::memory_order_release);
    guarded([&] {
      stop_taps();
      const std::lock_guard lock(copies_mutex_);
      copies_.flush();
      copies_busy_.store(false, std::memory_order_relaxed);
    });
    const std::lock_guard lock(mutex_);
    step_ = StepRef();
  }
  void hook_closed() noexcept override {
    guarded([&] {
      stop_taps();
      taps_.reset();
      const std::lock_guard lock(mutex_);
      remove_gradient_hooks();
      optimizers_.clear();
    });
  }

 private:
  // What of the model is wanted in steps that want the same, by place in the structure.
  struct Wanted {
    std::vector<std::size_t> parameters, buffers, optimizer_gradients;
    std::vector<bool> gradients;
    bool has_gradients = false;
    bool has_activations = false;
    bool has_optimizers = false;
  };

  void name_tensors() {
    names_.clear();
    gradient_names_.clear();
    optimizer_gradient_names_.clear();
    buffer_names_.clear();
    for (const auto& parameter : structure_.parameters) {
      names_.emplace_back(parameter.name);
      gradient_names_.emplace_back("gradient/" + parameter.name);
      optimizer_gradient_names_.emplace_back("optimizer_gradient/" + parameter.name);
    }
    for (const auto& buffer : structure_.buffers) buffer_names_.emplace_back(buffer.name);
    gradient_hooks_.assign(structure_.parameters.size(), std::nullopt);
  }

  bool is_gone() const noexcept { return is_shared_ && owner_.expired(); }

  // A failure of libtorch or of the memory costs values, never the training.
  template <typename Run>
  void guarded(Run&& run) noexcept {
    try {
      std::forward<Run>(run)();
    } catch (const std::exception& error) {
      open_step().log(LogLevel::kWarning, error.what());
    } catch (...) {
      open_step().log(LogLevel::kWarning, "capture of a libtorch model failed");
    }
  }

  StepRef open_step() noexcept {
    const std::lock_guard lock(mutex_);
    return step_;
  }

  void begin(const StepRef& step) {
    {
      const std::lock_guard lock(mutex_);
      step_ = step;
    }
    const Wanted& wanted = wanted_in(step);
    if (!is_described_) describe(step);
    step.set_facts({.optimizer_step = optimizer_steps_.load(std::memory_order_relaxed),
                    .training = module_->is_training(),
                    .grad_enabled = at::GradMode::is_enabled()});
    for (const std::size_t i : wanted.parameters) save(names_[i], structure_.parameters[i].tensor);
    for (const std::size_t i : wanted.buffers) save(buffer_names_[i], structure_.buffers[i].tensor);
    if (wanted.has_optimizers) save_optimizers(step);
    if (wanted.has_gradients) add_gradient_hooks(wanted);
    if (wanted.has_activations) start_taps();
    wanted_.store(&wanted, std::memory_order_release);
  }

  const Wanted& wanted_in(const StepRef& step) {
    const auto [known, is_new] = wanted_by_due_set_.try_emplace(step.due_set());
    Wanted& wanted = known->second;
    if (!is_new) return wanted;
    wanted.gradients.assign(structure_.parameters.size(), false);
    for (std::size_t i = 0; i < structure_.parameters.size(); ++i) {
      if (step.wants(names_[i].text())) wanted.parameters.push_back(i);
      if (step.wants(optimizer_gradient_names_[i].text())) wanted.optimizer_gradients.push_back(i);
      if (step.wants(gradient_names_[i].text())) wanted.gradients[i] = wanted.has_gradients = true;
    }
    for (std::size_t i = 0; options_.save_buffers && i < structure_.buffers.size(); ++i) {
      if (step.wants(buffer_names_[i].text())) wanted.buffers.push_back(i);
    }
    for (const std::string& collection : step.saved_collections()) {
      wanted.has_optimizers |= collection == "optimizer_variables" || collection == "optimizer_gradients";
    }
    if (options_.save_activations) {
      if (!taps_) taps_ = std::make_shared<ActivationTaps>(structure_, options_.capture_functional);
      wanted.has_activations = taps_->is_wanted(step);
    }
    return wanted;
  }

  void describe(const StepRef& step) {
    is_described_ = true;
    ModelDescription model = structure_.describe();
    const std::lock_guard lock(mutex_);
    for (const torch::optim::Optimizer* optimizer : optimizers_) {
      model.optimizers.push_back(libtorch::describe(*optimizer, structure_));
    }
    step.describe_model(model);
  }

  // State and learning rates, as they are before this step.
  void save_optimizers(const StepRef& step) {
    std::vector<torch::optim::Optimizer*> optimizers;
    {
      const std::lock_guard lock(mutex_);
      optimizers = optimizers_;
    }
    std::size_t group_number = 0;
    for (const torch::optim::Optimizer* optimizer : optimizers) {
      for (const auto& group : optimizer->param_groups()) {
        if (const std::optional<double> rate = learning_rate(group)) {
          step.save_scalar("learning_rate/" + std::to_string(group_number), *rate);
        }
        ++group_number;
      }
      for (const auto& parameter : structure_.parameters) {
        for_each_state(*optimizer, parameter.tensor, [&](const char* key, const at::Tensor& value) {
          const std::string name = std::string("optimizer_state/") + key + "/" + parameter.name;
          if (step.wants(name)) save(state_names_.try_emplace(name, name).first->second, value);
        });
      }
    }
  }

  // ---- gradients

  // A hook that hangs on a tensor leaves a place behind when it is taken off, so those that are needed stay, and look.
  void add_gradient_hooks(const Wanted& wanted) {
    for (std::size_t i = 0; i < gradient_hooks_.size(); ++i) {
      const at::Tensor& parameter = structure_.parameters[i].tensor;
      if (!wanted.gradients[i] || gradient_hooks_[i] || !parameter.requires_grad()) continue;
      gradient_hooks_[i] =
          parameter.register_hook([this_model = weak_from_this(), i](const at::Tensor& gradient) -> void {
            if (const auto model = this_model.lock()) model->gradient_came(i, gradient);
          });
    }
  }
  void remove_gradient_hooks() {
    for (std::size_t i = 0; i < gradient_hooks_.size(); ++i) {
      if (gradient_hooks_[i]) structure_.parameters[i].tensor.remove_hook(*gradient_hooks_[i]);
      gradient_hooks_[i].reset();
    }
  }
  // In a backward pass, on whatever thread runs it.
  void gradient_came(std::size_t i, const at::Tensor& gradient) noexcept {
    const Wanted* wanted = wanted_.load(std::memory_order_acquire);
    if (wanted == nullptr || !wanted->gradients[i] || !gradient.defined()) return;
    guarded([&] { save(gradient_names_[i], gradient); });
  }

  // ---- values

  void save(TensorName& name, const at::Tensor& tensor) {
    deliver(tensor, [&name](const StepRef& step, const at::Tensor& host) { step.save(name, host); });
  }
  // To the step that is open now; what is not in the memory of the processor comes there first.
  void deliver(const at::Tensor& tensor, const std::function<void(const StepRef&, const at::Tensor&)>& into) {
    const StepRef step = open_step();
    if (!step.anything_due() || !tensor.defined()) return;
    if (is_readable(tensor) && !copies_busy_.load(std::memory_order_relaxed)) return into(step, tensor);
    const std::lock_guard lock(copies_mutex_);
    copies_.save(tensor, [into, step](const at::Tensor& host) { into(step, host); });
    copies_busy_.store(copies_.is_busy(), std::memory_order_relaxed);
  }
  void stop_taps() {
    if (taps_) taps_->stop();
  }
  void start_taps() {
    // An operator that runs on another thread may end after the model is gone.
    const auto with_model = [model = weak_from_this()](const auto& run) {
      if (const auto alive = model.lock()) run(*alive);
    };
    taps_->start([with_model](const at::Tensor& tensor,
                              const auto& into) { with_model([&](Model& model) { model.deliver(tensor, into); }); },
                 [with_model](const char* what) {
                   with_model([&](Model& model) { model.open_step().log(LogLevel::kWarning, what); });
                 });
  }

  // constant
  const ModuleOptions options_;
  // thread of the steps only
  ModelStructure structure_;
  const torch::nn::Module* module_;
  const bool is_shared_;
  const std::weak_ptr<const torch::nn::Module> owner_;  // of the module, where a shared_ptr has it
  std::unordered_map<std::uint64_t, Wanted> wanted_by_due_set_;
  std::shared_ptr<ActivationTaps> taps_;  // shared with the operators that run
  std::vector<TensorName> names_, gradient_names_, optimizer_gradient_names_, buffer_names_;
  std::unordered_map<std::string, TensorName> state_names_;
  std::vector<std::optional<unsigned>> gradient_hooks_;
  bool is_described_ = false;
  // any thread
  std::atomic<const Wanted*> wanted_ = nullptr;  // in the step that is open; null: nothing
  std::atomic<std::int64_t> optimizer_steps_ = 0;
  std::atomic<bool> copies_busy_ = false;
  std::mutex mutex_;
  StepRef step_;                                      // guarded by mutex_
  std::vector<torch::optim::Optimizer*> optimizers_;  // guarded by mutex_
  std::mutex copies_mutex_;
  HostCopies copies_;  // guarded by copies_mutex_
};

// Captures this module as the root of a model, in the steps that the hook begins from now on. The module must outlive
// the hook, unless a shared_ptr holds it, as that of a ModuleHolder does.
inline Model& register_module(Hook& hook, const torch::nn::Module& module, ModuleOptions options = {}) {
  auto model = std::make_shared<Model>(module, std::move(options));
  hook.add_listener(model);
  return *model;
}
template <typename Contained>
Model& register_module(Hook& hook, const torch::nn::ModuleHolder<Contained>& module, ModuleOptions options = {}) {
  return register_module(hook, static_cast<const torch::nn::Module&>(*module), std::move(options));
}

}  // namespace tornasole::libtorch
