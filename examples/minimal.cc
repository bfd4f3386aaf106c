// minimal: the smallest useful program. Minimises (w - 3)^2 and saves the weight and the loss of every second step.
//
//   usage: tornasole_minimal OUT_DIR
//
// minimal.c is the same program in C and writes the same values.

#include <cstdio>
#include <vector>

#include "tornasole/hook.h"

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: tornasole_minimal OUT_DIR\n");
    return 2;
  }
  auto hook = tornasole::Hook::open(
      {.out_dir = arguments[1], .save_config = {.save_interval = 2}, .include_regex = {"^weight$", "^loss$"}});
  if (!hook) {
    std::fprintf(stderr, "%s\n", hook.error().message.c_str());
    return 1;
  }

  std::vector<float> weight = {0.0F};
  for (int i = 0; i < 10 && !hook->stop_requested(); ++i) {
    auto step = hook->begin_step(tornasole::Mode::kTrain);  // published when it goes out of scope
    const float distance = weight[0] - 3.0F;
    step.save("weight", weight);
    step.save("loss", distance * distance);
    weight[0] -= 0.25F * 2.0F * distance;
  }
  hook->save_scalar("final_weight", weight[0]);

  // Training need not look at this: what went wrong has been logged and is part of the run.
  if (auto closed = hook->close(); !closed) std::fprintf(stderr, "%s\n", closed.error().message.c_str());
  std::printf("%lld steps saved in %s\n", static_cast<long long>(hook->report().committed_steps), arguments[1]);
  return 0;
}
