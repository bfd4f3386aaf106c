// What statistics of every gradient at every step cost a training. Prints JSON.
//
//   hook_share_bench DIRECTORY
//
// A fully connected network of 25 layers of 128 units learns on random data, with plain loops, first alone, then with a
// hook that saves mean, mean magnitude and l2 of every gradient at each step. `bare` and `hooked` are seconds a step,
// medians over turns of each.

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "tornasole/hook.h"

namespace {

constexpr std::size_t kLayers = 25, kUnits = 128, kBatch = 32;

class Network {
 public:
  Network() {
    std::mt19937 random(1);
    std::normal_distribution<float> normal(0, 1 / std::sqrt(static_cast<float>(kUnits)));
    for (auto& weights : weights_) {
      weights.resize(kUnits * kUnits);
      for (float& weight : weights) weight = normal(random);
    }
    for (auto& gradients : gradients_) gradients.resize(kUnits * kUnits);
    for (auto& outputs : outputs_) outputs.resize(kBatch * kUnits);
    for (float& input : outputs_[0]) input = normal(random) * 8;
  }
  void learn() {
    for (std::size_t layer = 0; layer < kLayers; ++layer) forward(layer);
    std::vector<float> errors = outputs_[kLayers];
    for (std::size_t layer = kLayers; layer-- > 0;) errors = backward(layer, errors);
    for (std::size_t layer = 0; layer < kLayers; ++layer) {
      for (std::size_t i = 0; i < kUnits * kUnits; ++i) weights_[layer][i] -= 1e-4F * gradients_[layer][i];
    }
  }
  const std::vector<float>& gradient(std::size_t layer) const { return gradients_[layer]; }

 private:
  void forward(std::size_t layer) {
    std::vector<float>& out = outputs_[layer + 1];
    std::ranges::fill(out, 0.0F);
    for (std::size_t b = 0; b < kBatch; ++b) {
      for (std::size_t i = 0; i < kUnits; ++i) {
        const float input = outputs_[layer][b * kUnits + i];
        for (std::size_t o = 0; o < kUnits; ++o) out[b * kUnits + o] += input * weights_[layer][i * kUnits + o];
      }
      for (std::size_t o = 0; o < kUnits; ++o) out[b * kUnits + o] = std::max(out[b * kUnits + o], 0.0F);
    }
  }
  std::vector<float> backward(std::size_t layer, const std::vector<float>& errors) {
    std::vector<float> before(kBatch * kUnits);
    std::ranges::fill(gradients_[layer], 0.0F);
    for (std::size_t b = 0; b < kBatch; ++b) {
      for (std::size_t i = 0; i < kUnits; ++i) {
        const float input = outputs_[layer][b * kUnits + i];
        float sum = 0;
        for (std::size_t o = 0; o < kUnits; ++o) {
          const float error = outputs_[layer + 1][b * kUnits + o] > 0 ? errors[b * kUnits + o] : 0;
          gradients_[layer][i * kUnits + o] += input * error;
          sum += weights_[layer][i * kUnits + o] * error;
        }
        before[b * kUnits + i] = sum;
      }
    }
    return before;
  }
  std::vector<float> weights_[kLayers], gradients_[kLayers], outputs_[kLayers + 1];
};

double seconds_a_step(int steps, tornasole::Hook* hook, const std::vector<std::string>& names) {
  Network network;
  const auto start = std::chrono::steady_clock::now();
  for (int i = 0; i < steps; ++i) {
    if (hook == nullptr) {
      network.learn();
      continue;
    }
    auto step = hook->begin_step(tornasole::Mode::kTrain);
    network.learn();
    for (std::size_t layer = 0; layer < kLayers; ++layer) step.save(names[layer], network.gradient(layer));
  }
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / steps;
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: hook_share_bench DIRECTORY\n");
    return 2;
  }
  std::vector<std::string> names;
  for (std::size_t layer = 0; layer < kLayers; ++layer) names.push_back("gradient/fc" + std::to_string(layer));
  auto hook = tornasole::Hook::open(
      {.out_dir = arguments[1],
       .reduction_config = {{.reductions = {"mean"}, .abs_reductions = {"mean"}, .norms = {"l2"}}},
       .save_config = {.save_interval = 1},
       .include_collections = {"gradients"}});
  if (!hook) {
    std::fprintf(stderr, "hook_share_bench: %s\n", hook.error().message.c_str());
    return 1;
  }
  constexpr int kSteps = 40, kTurns = 7;
  std::vector<double> bare, hooked;
  seconds_a_step(kSteps, &*hook, names);  // everything was seen once
  for (int turn = 0; turn < kTurns; ++turn) {
    bare.push_back(seconds_a_step(kSteps, nullptr, names));
    hooked.push_back(seconds_a_step(kSteps, &*hook, names));
  }
  const bool is_closed = hook->close().ok();
  const tornasole::CaptureReport report = hook->report();
  const bool is_complete =
      is_closed && report.committed_steps == kSteps * (kTurns + 1) && report.dropped_values.empty();
  std::printf("{\"complete\": %s, \"bare\": %.9g, \"hooked\": %.9g}\n", is_complete ? "true" : "false", median(bare),
              median(hooked));
  return 0;
}
