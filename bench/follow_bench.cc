// How long a step that has ended takes until a reader sees it, as JSON: p50 and p99 in seconds.
//
//   follow_bench DIRECTORY
//
// One thread trains (a step of ten small tensors every two milliseconds), another follows the trial and looks for new
// steps without a pause. The time runs from the return of the call that ended the step, so it holds the writer's queue,
// the files, their publication and the reader's refresh.

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tornasole/hook.h"
#include "tornasole/trial.h"

namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t kSteps = 2000;

int fail(const tornasole::Error& error) {
  std::fprintf(stderr, "follow_bench: %s\n", error.message.c_str());
  return 1;
}

void train(tornasole::Hook& hook, std::vector<std::atomic<Clock::rep>>& ended) {
  const std::vector<float> weight(256, 1.0F);
  for (std::size_t i = 0; i < kSteps; ++i) {
    {
      auto step = hook.begin_step(tornasole::Mode::kTrain);
      for (int k = 0; k < 10; ++k) step.save("layer" + std::to_string(k) + ".weight", weight);
    }
    ended[i].store(Clock::now().time_since_epoch().count(), std::memory_order_release);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
  }
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) return std::fprintf(stderr, "usage: follow_bench DIRECTORY\n"), 2;
  auto hook = tornasole::Hook::open(
      {.out_dir = argv[1], .save_config = {.save_interval = 1}, .include_collections = {"weights"}});
  if (!hook) return fail(hook.error());

  std::vector<std::atomic<Clock::rep>> ended(kSteps);
  std::jthread training([&] { train(*hook, ended); });
  auto trial = tornasole::Trial::open({.path = argv[1], .poll_s = 0.001});
  if (!trial) return fail(trial.error());
  std::vector<double> seconds;
  // What was there when the trial was opened was not waited for.
  for (std::size_t seen = trial->steps().size(); seen < kSteps;) {
    if (auto refreshed = trial->refresh(); !refreshed) return fail(refreshed.error());
    const auto now = Clock::now().time_since_epoch().count();
    for (const std::size_t count = trial->steps().size(); seen < count; ++seen) {
      const auto start = ended[seen].load(std::memory_order_acquire);
      // A step may be seen before its writer noted that the call returned.
      seconds.push_back(
          start == 0 ? 0 : std::max(0.0, std::chrono::duration<double>(Clock::duration(now - start)).count()));
    }
  }
  training.join();
  const bool is_complete = hook->close().ok() && hook->report().dropped_steps.empty();
  std::sort(seconds.begin(), seconds.end());
  const auto at = [&](double share) {
    return seconds[static_cast<std::size_t>(share * static_cast<double>(seconds.size() - 1))];
  };
  std::printf("{\"p50\": %.9f, \"p99\": %.9f, \"steps\": %zu, \"complete\": %s}\n", at(0.5), at(0.99), seconds.size(),
              is_complete ? "true" : "false");
  return 0;
}
