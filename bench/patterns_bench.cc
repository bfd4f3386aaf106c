// The first pass over 10,000 new names against the default collections: what a hook does when it sees a model first.
// Prints {"names": ..., "seconds": ..., "members": ...}; patterns_peer.py does the same with Python's re.

#include <malloc.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "plan/plan.h"

namespace {

// The shape of names of a transformer; patterns_peer.py makes the same.
std::vector<std::string> make_names(int count) {
  const char* kParts[] = {"attention.query.weight", "attention.query.bias", "attention.output.weight",
                          "mlp.dense.weight",       "mlp.dense.bias",       "norm_output_0",
                          "gelu_output_0",          "dropout_input_0",      "gradient"};
  std::vector<std::string> names;
  for (int i = 0; static_cast<int>(names.size()) < count; ++i) {
    const std::string layer = "Model_encoder.layers." + std::to_string(i) + ".";
    for (std::size_t part = 0; part < std::size(kParts) && static_cast<int>(names.size()) < count; ++part) {
      names.push_back(part == 8 ? "gradient/" + layer + kParts[0] : layer + kParts[part]);
    }
  }
  return names;
}

}  // namespace

int main() {
  using namespace tornasole;
  // Memory freed by a round stays with the process, as in a training that has run for a while, and as Python keeps it.
  mallopt(M_MMAP_THRESHOLD, 1 << 30);
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  const std::vector<std::string> names = make_names(10000);
  double best = 1e9;
  std::size_t members = 0;
  for (int round = 0; round < 20; ++round) {
    config::Config config{.framework = Framework::kPytorch,
                          .include_regex = {"gelu"},
                          .include_collections = {"weights", "gradients", "biases", "default"}};
    auto collections = plan::Collections::make(config);
    if (!collections) return 1;
    auto prepared = plan::Plan::prepare(config, &*collections);
    if (!prepared) return 1;
    const plan::CollectionBits due = prepared->due(Mode::kTrain, 0);
    const auto start = std::chrono::steady_clock::now();
    std::size_t count = 0;
    for (const std::string& name : names) count += prepared->order(prepared->name_id(name), due).collections.size();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    best = std::min(best, took.count());
    members = count;
  }
  std::printf("{\"names\": %zu, \"seconds\": %.9f, \"members\": %zu}\n", names.size(), best, members);
  return 0;
}
