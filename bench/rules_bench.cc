// Runs rules over a trial and prints how long it took, as JSON. rules_peer.py does `vanishing` in Python and
// with smdebug.
//
//   rules_bench make DIRECTORY ELEMENTS
//   rules_bench vanishing|read|check DIRECTORY
//
//   make       writes the trial: 1,000 steps of 24 gradients of so many floats and a loss
//   vanishing  the rule VanishingGradient
//   read       every value once, looked at by nobody
//   check      all questions of `check`
//
// Opening the trial is part of the work.

#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "tornasole/check.h"
#include "tornasole/hook.h"
#include "tornasole/rule.h"

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kSteps = 1000;
constexpr int kGradients = 24;
// In every hundredth step the first gradient is smaller than the rule allows.
constexpr int kVanishEvery = 100;

int fail(const tornasole::Error& error) {
  std::fprintf(stderr, "rules_bench: %s\n", error.message.c_str());
  return 1;
}

int make(const char* directory, std::size_t elements) {
  auto hook = tornasole::Hook::open({.out_dir = directory,
                                     .save_config = {.save_interval = 1},
                                     .include_collections = {"gradients", "losses"},
                                     .when_full = tornasole::WhenFull::kBlock,
                                     .close_wait_s = 600});
  if (!hook) return fail(hook.error());
  std::vector<float> values(elements);
  for (int step = 0; step < kSteps; ++step) {
    auto scope = hook->begin_step(tornasole::Mode::kTrain);
    for (int i = 0; i < kGradients; ++i) {
      const float size = step % kVanishEvery == 0 && i == 0 ? 1e-9F : 1e-2F;
      for (std::size_t k = 0; k < elements; ++k) {
        values[k] = size * std::sin(static_cast<float>(k) + static_cast<float>(step * (i + 1)));
      }
      scope.save("gradient/layer" + std::to_string(i) + ".weight", values);
    }
    scope.save("loss", 1 / (1 + 0.01F * static_cast<float>(step)));
  }
  const auto closed = hook->close();
  const bool is_complete = closed.ok() && hook->report().committed_steps == kSteps;
  std::printf("{\"complete\": %s}\n", is_complete ? "true" : "false");
  return is_complete ? 0 : 1;
}

// How much was looked at or found, so that contenders can be compared.
tornasole::Result<long long> work(const std::string& job, tornasole::Trial& trial) {
  long long count = 0;
  if (job == "read") {
    const auto swept = trial.sweep({}, [&](const tornasole::SweptValue& value) {
      count += value.value != nullptr;
      return true;
    });
    if (!swept) return swept.error();
    return count;
  }
  if (job == "check") {
    const auto report = tornasole::check(trial);
    if (!report) return report.error();
    return report->steps;
  }
  auto rule = tornasole::make_rule("VanishingGradient", {}, {.base = &trial});
  if (!rule) return rule.error();
  tornasole::RuleRunner runner(&trial);
  runner.add(std::move(*rule));
  if (const auto done = runner.run(); !done) return done.error();
  return static_cast<long long>(runner.outcome(0).steps_met.size());
}

}  // namespace

int main(int count, char** arguments) {
  const std::string job = count > 1 ? arguments[1] : "";
  const std::size_t elements = count == 4 ? std::strtoul(arguments[3], nullptr, 10) : 0;
  if (job == "make" && elements > 0) return make(arguments[2], elements);
  if (count != 3 || (job != "vanishing" && job != "read" && job != "check")) {
    std::fprintf(stderr, "usage: rules_bench make DIRECTORY ELEMENTS | vanishing|read|check DIRECTORY\n");
    return 2;
  }
  const auto start = Clock::now();
  auto trial = tornasole::Trial::open({.path = arguments[2], .timeout_s = 0, .end_delay_s = 0});
  if (!trial) return fail(trial.error());
  const auto done = work(job, *trial);
  if (!done) return fail(done.error());
  const double seconds = std::chrono::duration<double>(Clock::now() - start).count();
  std::printf("{\"seconds\": %.9g, \"met\": %lld}\n", seconds, *done);
  return 0;
}
