// A port of examples/python/torch_original.py with a mistake: its LayerNorm has another epsilon. With the weights of
// the original, tornasole diff names the layer where the two part.
//
//   libtorch_port OUT_DIR WEIGHTS [fixed]
//   tornasole diff ORIGINAL OUT_DIR --abs 1e-5

#include <torch/torch.h>

#include <cstdio>
#include <fstream>

#include "tornasole/libtorch.h"

namespace {

struct NetImpl : torch::nn::Module {
  explicit NetImpl(double epsilon) : norm(torch::nn::LayerNormOptions({12}).eps(epsilon)) {
    register_module("fc1", fc1);
    register_module("norm", norm);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(const torch::Tensor& x) { return fc2(torch::tanh(norm(fc1(x)))); }
  torch::nn::Linear fc1{6, 12};
  torch::nn::LayerNorm norm;
  torch::nn::Linear fc2{12, 3};
};
TORCH_MODULE(Net);

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: libtorch_port OUT_DIR WEIGHTS [fixed]\n");
    return 2;
  }
  Net net(count > 3 ? 1e-5 : 1e-3);  // the original has 1e-5
  std::ifstream weights(arguments[2], std::ios::binary);
  for (torch::Tensor& parameter : net->parameters()) {
    weights.read(static_cast<char*>(parameter.data_ptr()), static_cast<std::streamsize>(parameter.nbytes()));
  }
  if (!weights) {
    std::fprintf(stderr, "%s does not hold the weights of the original\n", arguments[2]);
    return 1;
  }

  auto hook = tornasole::libtorch::open(
      {.out_dir = arguments[1], .save_config = {.save_interval = 1}, .include_regex = {"_output_0$"}});
  if (!hook) {
    std::fprintf(stderr, "%s\n", hook.error().message.c_str());
    return 1;
  }
  tornasole::libtorch::register_module(*hook, net);
  torch::optim::SGD optimizer(net->parameters(), 0.1);
  for (int i = 0; i < 2; ++i) {
    auto step = hook->begin_step();
    optimizer.zero_grad();
    // The output of the whole network is no single operator's: it is saved by name.
    const torch::Tensor inputs = torch::linspace(-0.01, 0.01, 24).view({4, 6});
    const torch::Tensor output = net->forward(inputs);
    step.save_output("Net", output);
    const torch::Tensor loss = output.pow(2).mean();
    step.save_output("loss", loss);
    loss.backward();
    optimizer.step();
  }
  return hook->close().ok() ? 0 : 1;
}
