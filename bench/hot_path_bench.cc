// What capture costs the training thread at the calls it makes most, as JSON: median nanoseconds of one call.
//
//   hot_path_bench DIRECTORY
//
//   save_not_due    save of a tensor at a step at which nothing is due
//   step_not_due    beginning and ending such a step
//   scalar_due      save of one number at a step that is due, new names excluded
//   save_scalar     save_scalar, whatever is due

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string>
#include <thread>
#include <vector>

#include "tornasole/hook.h"

namespace {

using Clock = std::chrono::steady_clock;

// The median over `rounds` of the nanoseconds one call takes. `before` and `after` are not measured.
template <typename Before, typename Call, typename After>
double median_ns(int rounds, int calls, Before before, Call call, After after) {
  std::vector<double> results;
  for (int round = 0; round < rounds; ++round) {
    before();
    const auto start = Clock::now();
    for (int i = 0; i < calls; ++i) {
      call(i);
      asm volatile("" ::: "memory");  // or what does nothing would be measured as nothing
    }
    results.push_back(std::chrono::duration<double, std::nano>(Clock::now() - start).count() / calls);
    after();
  }
  std::nth_element(results.begin(), results.begin() + rounds / 2, results.end());
  return results[static_cast<std::size_t>(rounds / 2)];
}

void pause_for_the_writer() { std::this_thread::sleep_for(std::chrono::milliseconds(5)); }
void nothing() {}

tornasole::Result<tornasole::Hook> open_hook(const std::string& directory, std::int64_t interval) {
  return tornasole::Hook::open({.out_dir = directory,
                                .save_config = {.save_interval = interval},
                                .include_regex = {"^(layer|number)"},
                                .close_wait_s = 60});
}

bool is_complete(tornasole::Hook& hook) {
  const auto closed = hook.close();
  const tornasole::CaptureReport report = hook.report();
  return closed.ok() && report.dropped_steps.empty() && report.dropped_values.empty();
}

int run(const std::string& directory) {
  auto idle = open_hook(directory + "/idle", 1'000'000'000);
  auto busy = open_hook(directory + "/busy", 1);
  if (!idle || !busy) {
    std::fprintf(stderr, "hot_path_bench: %s\n", (!idle ? idle : busy).error().message.c_str());
    return 1;
  }
  const std::vector<float> weight(4096, 0.5F);
  constexpr int kNames = 1000;
  std::vector<std::string> names;
  for (int i = 0; i < kNames; ++i) names.push_back("number" + std::to_string(i));

  idle->begin_step(tornasole::Mode::kTrain).save("layer", weight);  // step 0 is due; the others are not
  auto step = idle->begin_step(tornasole::Mode::kTrain);
  const double save_not_due =
      median_ns(41, 1'000'000, nothing, [&](int) { step.save("layer1.weight", weight); }, nothing);
  step.end();
  const double step_not_due = median_ns(
      41, 100'000, nothing, [&](int) { idle->begin_step(tornasole::Mode::kTrain).save("layer", weight); }, nothing);

  std::optional<tornasole::StepScope> due;
  const auto begin = [&] { due.emplace(busy->begin_step(tornasole::Mode::kTrain)); };
  const auto end = [&] {
    due.reset();
    pause_for_the_writer();
  };
  const auto save_number = [&](int i) { due->save(names[static_cast<std::size_t>(i)], 0.25F); };
  begin();
  for (int i = 0; i < kNames; ++i) save_number(i);
  end();
  const double scalar_due = median_ns(101, kNames, begin, save_number, end);
  const double save_scalar =
      median_ns(101, kNames, begin, [&](int i) { busy->save_scalar(names[static_cast<std::size_t>(i)], 0.25); }, end);

  const bool is_whole = is_complete(*idle) && is_complete(*busy);
  std::printf(
      "{\"complete\": %s, \"save_not_due\": %.4g, \"step_not_due\": %.4g, \"scalar_due\": %.4g, \"save_scalar\": "
      "%.4g}\n",
      is_whole ? "true" : "false", save_not_due, step_not_due, scalar_due, save_scalar);
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: hot_path_bench DIRECTORY\n");
    return 2;
  }
  return run(arguments[1]);
}
