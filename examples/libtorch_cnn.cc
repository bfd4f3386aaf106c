// A small convolutional network with libtorch: statistics instead of tensors, activations of one layer, training and
// evaluation.
//
//   libtorch_cnn OUT_DIR
//   tornasole stats OUT_DIR gradient

#include <torch/torch.h>

#include <cstdio>
#include <utility>

#include "tornasole/libtorch.h"

namespace {

struct NetImpl : torch::nn::Module {
  NetImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::relu(conv2(x));
    return torch::log_softmax(fc2(torch::relu(fc1(x.flatten(1)))), 1);
  }
  torch::nn::Conv2d conv1{torch::nn::Conv2dOptions(1, 8, 3)}, conv2{torch::nn::Conv2dOptions(8, 16, 3)};
  torch::nn::Linear fc1{16 * 16, 32}, fc2{32, 2};
};
TORCH_MODULE(Net);

// Noise, with a bright upper half in every picture of class 1.
std::pair<torch::Tensor, torch::Tensor> pictures(int count) {
  const torch::Tensor labels = torch::randint(0, 2, {count}, torch::kLong);
  torch::Tensor images = torch::randn({count, 1, 14, 14}) * 0.5;
  images.slice(2, 0, 7) += labels.view({count, 1, 1, 1});
  return {images, labels};
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: libtorch_cnn OUT_DIR\n");
    return 2;
  }
  torch::manual_seed(0);
  Net net;
  torch::optim::Adam optimizer(net->parameters(), torch::optim::AdamOptions(0.01));

  auto hook = tornasole::libtorch::open({
      .out_dir = arguments[1],
      .reduction_config = tornasole::ReductionConfig{.reductions = {"min", "max", "mean", "std"}, .norms = {"l2"}},
      .save_config = {.save_interval = 5},
      .include_collections = {"gradients", "first_layer"},
  });
  if (!hook) {
    std::fprintf(stderr, "%s\n", hook.error().message.c_str());
    return 1;
  }
  if (auto added = hook->collection("first_layer").include("^conv1_output"); !added) return 1;
  tornasole::libtorch::register_module(*hook, net);

  double last = 0;
  for (int epoch = 0; epoch < 4; ++epoch) {
    net->train();
    for (int i = 0; i < 10; ++i) {
      auto step = hook->begin_step();  // of the mode that the network is in
      const auto [inputs, labels] = pictures(16);
      optimizer.zero_grad();
      const torch::Tensor loss = torch::nll_loss(net->forward(inputs), labels);
      step.save_output("nll_loss", loss);
      loss.backward();
      optimizer.step();
      last = loss.item<double>();
    }
    net->eval();
    const torch::NoGradGuard no_gradient;
    auto step = hook->begin_step();
    const auto [inputs, labels] = pictures(64);
    step.save_output("nll_loss", torch::nll_loss(net->forward(inputs), labels));
  }
  if (auto closed = hook->close(); !closed) std::fprintf(stderr, "%s\n", closed.error().message.c_str());
  std::printf("the last loss is %.3f; 'tornasole ls %s' shows the run\n", last, arguments[1]);
  return 0;
}
