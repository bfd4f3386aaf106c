// What capture costs a training with libtorch, on the models of torch_bench.py.
//
//   libtorch_bench DIRECTORY [STEPS]
//
// Each line is a JSON object: model, scenario, the bare step and the extra time of a captured one, in microseconds:
// the median of what a captured step took more than the bare one beside it, on one model and one thread. The bare step
// has no step of the hook around it. `gradients_us` is what one read of the model's gradients takes at the speed of the
// fused pass, all its statistics, over memory that no cache holds; measured beside the scenario.

#include <torch/torch.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <string>
#include <vector>

#include "tornasole/libtorch.h"
#include "tornasole/stats.h"

namespace {

using torch::nn::Conv2dOptions, torch::nn::Linear, torch::nn::ReLU, torch::nn::Sequential;

struct CnnImpl : torch::nn::Module {
  CnnImpl() {
    register_module("conv1", conv1);
    register_module("conv2", conv2);
    register_module("fc1", fc1);
    register_module("fc2", fc2);
  }
  torch::Tensor forward(torch::Tensor x) {
    x = torch::max_pool2d(torch::relu(conv1(x)), 2);
    x = torch::max_pool2d(torch::relu(conv2(x)), 2);
    return fc2(torch::relu(fc1(x.flatten(1))));
  }
  torch::nn::Conv2d conv1{Conv2dOptions(1, 16, 3)}, conv2{Conv2dOptions(16, 32, 3)};
  Linear fc1{32 * 25, 64}, fc2{64, 10};
};
TORCH_MODULE(Cnn);

struct Bench {
  std::shared_ptr<torch::nn::Module> net;
  std::function<torch::Tensor(const torch::Tensor&)> forward;
  torch::Tensor inputs, labels;
};

Bench of(Sequential net, torch::Tensor inputs, torch::Tensor labels) {
  return {net.ptr(), [net](const torch::Tensor& x) mutable { return net->forward(x); }, std::move(inputs),
          std::move(labels)};
}

Bench make(const std::string& model) {
  torch::manual_seed(0);
  if (model == "cnn") {
    Cnn net;
    return {net.ptr(), [net](const torch::Tensor& x) mutable { return net->forward(x); }, torch::randn({16, 1, 28, 28}),
            torch::randint(0, 10, {16}, torch::kLong)};
  }
  Sequential net;
  if (model == "deep") {
    for (int i = 0; i < 25; ++i) {
      net->push_back(Linear(128, 128));
      net->push_back(ReLU());
    }
    return of(net, torch::randn({64, 128}), torch::randint(0, 128, {64}, torch::kLong));
  }
  const int sizes[] = {784, 512, 512, 256, 10};
  for (int i = 0; i < 4; ++i) {
    net->push_back(Linear(sizes[i], sizes[i + 1]));
    if (i < 3) net->push_back(ReLU());
  }
  return of(net, torch::randn({128, 784}), torch::randint(0, 10, {128}, torch::kLong));
}

tornasole::HookOptions options_of(const std::string& scenario) {
  tornasole::HookOptions options{.save_config = {.save_interval = 1}};
  if (scenario == "save_all") options.save_all = true;
  if (scenario == "weights_gradients") options.include_collections = {"weights", "biases", "gradients"};
  if (scenario == "gradient_stats") {
    options.include_collections = {"gradients"};
    options.reduction_config =
        tornasole::ReductionConfig{.reductions = {"mean"}, .abs_reductions = {"mean"}, .norms = {"l2"}};
  }
  if (scenario == "nothing_due") {
    options.save_all = true;
    options.save_config = {.save_interval = 1'000'000'000, .start_step = 1};
  }
  return options;
}

int more_steps(const std::string& scenario) {
  if (scenario == "nothing_due") return 20;
  return scenario == "gradient_stats" ? 8 : 1;
}

// In microseconds.
struct Clocks {
  static double of(clockid_t which) {
    timespec now{};
    clock_gettime(which, &now);
    return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
  }
  double wall = of(CLOCK_MONOTONIC), thread = of(CLOCK_THREAD_CPUTIME_ID);
};
struct Times {
  std::vector<double> wall, thread;
};

double median(std::vector<double> times) {
  std::ranges::nth_element(times, times.begin() + static_cast<std::ptrdiff_t>(times.size() / 2));
  return times[times.size() / 2];
}

// By pairs, so that what the machine does to both is no difference.
double extra(const std::vector<double>& captured, const std::vector<double>& bare) {
  std::vector<double> differences(bare.size());
  std::ranges::transform(captured, bare, differences.begin(), std::minus<>());
  return median(std::move(differences));
}

// Of the fused pass, in bytes a microsecond.
double bandwidth() {
  using tornasole::Stat;
  const std::vector<float> values(std::size_t{64} << 20, 0.5F);
  const tornasole::StatSet all = {Stat::kCount, Stat::kMin,   Stat::kMax, Stat::kMean,   Stat::kVariance, Stat::kL1,
                                  Stat::kL2,    Stat::kZeros, Stat::kNan, Stat::kPosInf, Stat::kNegInf};
  std::vector<double> times;
  for (int i = 0; i < 5; ++i) {
    const Clocks began;
    if (!tornasole::stats(tornasole::TensorView::of(values), all)) return 0;
    times.push_back(Clocks().thread - began.thread);
  }
  return static_cast<double>(values.size() * sizeof(float)) / median(std::move(times));
}

double gradient_bytes(const torch::nn::Module& net) {
  double bytes = 0;
  for (const torch::Tensor& parameter : net.parameters()) bytes += static_cast<double>(parameter.nbytes());
  return bytes;
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: libtorch_bench DIRECTORY [STEPS]\n");
    return 2;
  }
  const int steps = count > 2 ? std::atoi(arguments[2]) : 60;
  torch::set_num_threads(1);
  for (const char* model : {"mlp", "cnn", "deep"}) {
    for (const char* scenario : {"save_all", "weights_gradients", "gradient_stats", "nothing_due"}) {
      Bench bench = make(model);
      torch::optim::SGD optimizer(bench.net->parameters(), 1e-4);
      tornasole::HookOptions options = options_of(scenario);
      options.out_dir = std::string(arguments[1]) + "/" + model + "-" + scenario;
      options.log = nullptr;
      auto hook = tornasole::libtorch::open(std::move(options));
      if (!hook) {
        std::fprintf(stderr, "%s\n", hook.error().message.c_str());
        return 1;
      }
      tornasole::libtorch::register_module(*hook, *bench.net);
      const auto train = [&](const tornasole::StepRef* step) {
        optimizer.zero_grad();
        torch::Tensor loss = torch::nn::functional::cross_entropy(bench.forward(bench.inputs), bench.labels);
        if (step != nullptr) step->save_output("CrossEntropyLoss", loss);
        loss.backward();
        optimizer.step();
      };
      Times bare, captured;
      // The less there is to see, the more is looked at.
      const int turns = steps * more_steps(scenario);
      for (int i = 0; i < turns + 8; ++i) {
        for (int turn = 0; turn < 2; ++turn) {
          const bool is_bare = (i + turn) % 2 == 0;
          const Clocks began;
          if (is_bare) {
            train(nullptr);
          } else {
            const auto step = hook->begin_step(tornasole::Mode::kTrain);
            train(&step);
          }
          const Clocks ended;
          Times& times = is_bare ? bare : captured;
          if (i < 8) continue;
          times.wall.push_back(ended.wall - began.wall);
          times.thread.push_back(ended.thread - began.thread);
        }
      }
      if (!hook->close().ok()) std::fprintf(stderr, "%s %s: something was lost\n", model, scenario);
      std::printf(
          "{\"model\": \"%s\", \"scenario\": \"%s\", \"bare_us\": %.2f, \"extra_us\": %.3f, \"bare_thread_us\": %.2f, "
          "\"extra_thread_us\": %.3f, \"gradients_us\": %.2f}\n",
          model, scenario, median(bare.wall), extra(captured.wall, bare.wall), median(bare.thread),
          extra(captured.thread, bare.thread), gradient_bytes(*bench.net) / bandwidth());
      std::fflush(stdout);
    }
  }
  return 0;
}
