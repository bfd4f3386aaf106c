// Data-parallel training with libtorch on threads: each has a copy of the network and a part of the batch, their
// gradients are averaged. All of them save into the steps of one hook, each under its own name.
//
//   libtorch_parallel OUT_DIR
//   tornasole ls OUT_DIR

#include <torch/torch.h>

#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tornasole/libtorch.h"

namespace {

constexpr int kReplicas = 3;

torch::nn::Sequential make_net() {
  return torch::nn::Sequential(torch::nn::Linear(4, 8), torch::nn::Tanh(), torch::nn::Linear(8, 1));
}

void copy_parameters(const torch::nn::Sequential& from, const torch::nn::Sequential& to) {
  const torch::NoGradGuard no_gradient;
  const auto source = from->parameters(), target = to->parameters();
  for (std::size_t i = 0; i < source.size(); ++i) target[i].copy_(source[i]);
}

// The mean of the replicas' gradients, into the first of them.
void average_gradients(const std::vector<torch::nn::Sequential>& replicas) {
  const torch::NoGradGuard no_gradient;
  const auto first = replicas[0]->parameters();
  for (std::size_t i = 0; i < first.size(); ++i) {
    for (std::size_t r = 1; r < replicas.size(); ++r) first[i].mutable_grad() += replicas[r]->parameters()[i].grad();
    first[i].mutable_grad() /= static_cast<double>(replicas.size());
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: libtorch_parallel OUT_DIR\n");
    return 2;
  }
  torch::manual_seed(0);
  auto hook = tornasole::libtorch::open(
      {.out_dir = arguments[1], .save_config = {.save_interval = 5}, .include_collections = {"weights", "gradients"}});
  if (!hook) {
    std::fprintf(stderr, "%s\n", hook.error().message.c_str());
    return 1;
  }
  std::vector<torch::nn::Sequential> replicas;
  for (int r = 0; r < kReplicas; ++r) {
    replicas.push_back(make_net());
    if (r > 0) copy_parameters(replicas[0], replicas.back());
    // What operators tell is told of one thread, that which begins the steps; here others run the networks.
    tornasole::libtorch::register_module(*hook, replicas.back(),
                                         {.name = "Replica" + std::to_string(r), .save_activations = false});
  }
  torch::optim::SGD optimizer(replicas[0]->parameters(), 0.1);

  for (int i = 0; i < 20; ++i) {
    auto step = hook->begin_step();
    const torch::Tensor inputs = torch::randn({30, 4});
    const torch::Tensor targets = inputs.sum(1, /*keepdim=*/true);
    const auto input_parts = inputs.chunk(kReplicas), target_parts = targets.chunk(kReplicas);
    std::vector<std::thread> threads;
    for (std::size_t r = 0; r < kReplicas; ++r) {
      threads.emplace_back([&, r] {
        replicas[r]->zero_grad();
        const torch::Tensor output = replicas[r]->forward(input_parts[r]);
        const torch::Tensor loss = torch::mse_loss(output, target_parts[r]);
        step.save_output("Replica" + std::to_string(r) + "_loss", loss);
        loss.backward();
      });
    }
    for (std::thread& thread : threads) thread.join();
    average_gradients(replicas);
    optimizer.step();
    for (std::size_t r = 1; r < kReplicas; ++r) copy_parameters(replicas[0], replicas[r]);
  }
  if (auto closed = hook->close(); !closed) std::fprintf(stderr, "%s\n", closed.error().message.c_str());
  std::printf("%lld steps saved in %s\n", static_cast<long long>(hook->report().committed_steps), arguments[1]);
  return 0;
}
