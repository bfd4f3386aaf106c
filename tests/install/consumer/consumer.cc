// A program of somebody else: captures three steps into the directory it is given.

#include <tornasole/hook.h>

#include <cstdio>
#include <vector>

int main(int count, char** arguments) {
  if (count != 2) return 2;
  auto hook = tornasole::Hook::open(
      {.out_dir = arguments[1], .save_config = {.save_interval = 1}, .include_regex = {"^weight$"}});
  if (!hook) {
    std::fprintf(stderr, "%s\n", hook.error().message.c_str());
    return 1;
  }
  std::vector<float> weight = {1, 2, 3};
  for (int i = 0; i < 3; ++i) {
    auto step = hook->begin_step(tornasole::Mode::kTrain);
    step.save("weight", weight);
    step.save("loss", 1.0F / static_cast<float>(i + 1));
  }
  if (auto closed = hook->close(); !closed) {
    std::fprintf(stderr, "%s\n", closed.error().message.c_str());
    return 1;
  }
  std::printf("%lld\n", static_cast<long long>(hook->report().committed_steps));
  return 0;
}
