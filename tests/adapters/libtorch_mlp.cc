// The training of torch_mlp_twin.py in C++: the same model, weights and data, so the same trial.
//
//   libtorch_mlp DIRECTORY WEIGHTS sgd|adam [no-hook|throw|abort|exit|remove]
//
// WEIGHTS holds the parameters in order, then 8 batches of inputs [16, 8] and labels [16], all as floats. Prints the
// bits of the last parameters, summed, for comparisons with a training without a hook. The other words are what happens
// in the middle of step 4: an exception of libtorch, the end of the process, the directory removed by somebody.

#include <torch/torch.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <system_error>
#include <thread>

#include "tornasole/libtorch.h"

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    fc1 = register_module("fc1", torch::nn::Linear(8, 16));
    norm = register_module("norm", torch::nn::BatchNorm1d(16));
    head = register_module("head", torch::nn::Sequential(torch::nn::Linear(16, 16), torch::nn::Linear(16, 3)));
  }
  torch::Tensor forward(const torch::Tensor& x) { return head->forward(torch::relu(norm(fc1(x)))); }
  torch::nn::Linear fc1{nullptr};
  torch::nn::BatchNorm1d norm{nullptr};
  torch::nn::Sequential head{nullptr};
};
TORCH_MODULE(Net);

torch::Tensor read(std::ifstream& file, at::IntArrayRef shape) {
  torch::Tensor tensor = torch::empty(shape);
  file.read(static_cast<char*>(tensor.data_ptr()), static_cast<std::streamsize>(tensor.nbytes()));
  TORCH_CHECK(file, "the file of weights is too short");
  return tensor;
}

// A process that dies before anything was published leaves nothing to look at.
void wait_for_a_step(const tornasole::Hook& hook) {
  for (int i = 0; i < 2000 && hook.report().committed_steps == 0; ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

// The writer may put a file into a directory while it is emptied.
void remove_for_good(const char* directory) {
  std::error_code error;
  for (int i = 0; i < 1000; ++i) {
    std::filesystem::remove_all(directory, error);
    if (!error) return;
  }
}

int train(int argc, char** argv) {
  const std::string misfortune = argc > 4 ? argv[4] : "";
  torch::set_num_threads(1);
  std::ifstream file(argv[2], std::ios::binary);
  Net net;
  {
    const torch::NoGradGuard no_gradient;
    for (torch::Tensor& parameter : net->parameters()) parameter.copy_(read(file, parameter.sizes()));
  }
  std::unique_ptr<torch::optim::Optimizer> optimizer;
  if (std::string(argv[3]) == "adam") {
    optimizer = std::make_unique<torch::optim::Adam>(net->parameters(), torch::optim::AdamOptions(0.01));
  } else {
    optimizer = std::make_unique<torch::optim::SGD>(net->parameters(), torch::optim::SGDOptions(0.1).momentum(0.9));
  }
  std::optional<tornasole::Hook> hook;
  tornasole::libtorch::Model* model = nullptr;
  if (misfortune != "no-hook") {
    auto opened = tornasole::libtorch::open({.out_dir = argv[1],
                                             .save_config = {.save_interval = 2},
                                             .include_regex = {"fc1_", "norm_", "head.0_", "head.1_", "relu"},
                                             .include_collections = {"weights", "biases", "gradients", "losses",
                                                                     "optimizer_variables", "optimizer_gradients"}});
    if (!opened) {
      std::fprintf(stderr, "%s\n", opened.error().message.c_str());
      return 1;
    }
    hook.emplace(std::move(*opened));
    model = &tornasole::libtorch::register_module(*hook, net, {.capture_functional = true});
    model->register_optimizer(*optimizer);
  }

  torch::nn::CrossEntropyLoss criterion;
  for (int i = 0; i < 8; ++i) {
    net->train(i != 7);
    const torch::Tensor inputs = read(file, {16, 8});
    const torch::Tensor labels = read(file, {16}).to(torch::kLong);
    std::optional<tornasole::StepScope> step;
    if (hook) step.emplace(hook->begin_step());
    if (i == 7) {
      const torch::NoGradGuard no_gradient;
      net->forward(inputs);
      continue;
    }
    optimizer->zero_grad();
    const torch::Tensor loss = criterion(net->forward(inputs), labels);
    if (step) step->save_output("CrossEntropyLoss", loss);
    if (i == 4 && misfortune == "throw") net->forward(torch::ones({1, 1}));
    if (i == 4 && hook && (misfortune == "abort" || misfortune == "exit")) wait_for_a_step(*hook);
    if (i == 4 && misfortune == "abort") std::abort();
    if (i == 4 && misfortune == "exit") std::_Exit(3);
    if (i == 4 && misfortune == "remove") remove_for_good(argv[1]);
    loss.backward();
    if (model != nullptr) model->before_optimizer_step();
    optimizer->step();
  }
  double sum = 0;
  for (const torch::Tensor& parameter : net->parameters()) sum += parameter.to(torch::kDouble).sum().item<double>();
  std::uint64_t bits = 0;
  std::memcpy(&bits, &sum, sizeof bits);
  std::printf("%016llx\n", static_cast<unsigned long long>(bits));
  std::fflush(stdout);
  return !hook || hook->close().ok() ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  try {
    return train(argc, argv);
  } catch (const c10::Error&) {
    return 4;
  }
}
