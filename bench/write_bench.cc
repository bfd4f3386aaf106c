// Writes steps of equal tensors and prints how long each took, as JSON. write_peer.py does the same with smdebug.
//
//   write_bench sync|async|memory COUNT BYTES STEPS DIRECTORY
//
//   sync    seconds from the first save of a step until its files have their names
//   async   seconds the calling thread spends; between steps it waits until everything is written
//   memory  bytes by which the largest resident size grows while one step is saved

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tornasole/hook.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// The index file is published last.
void wait_for_step(const std::string& directory, int step) {
  char name[64];
  std::snprintf(name, sizeof name, "/index/%09d/%012d_worker_0.json", step / 1000, step);
  const std::string path = directory + name;
  const auto start = Clock::now();
  while (access(path.c_str(), F_OK) != 0) {
    if (seconds_since(start) > 60) {
      std::fprintf(stderr, "write_bench: %s did not appear within 60 s\n", path.c_str());
      std::_Exit(1);
    }
    std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
}

std::int64_t peak_resident_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return std::int64_t{usage.ru_maxrss} * 1024;
}

struct Arguments {
  std::string mode;
  std::size_t count = 0;
  std::size_t bytes = 0;
  int steps = 0;
  std::string directory;
};

// What one step takes of the caller's time.
double save_step(tornasole::Hook& hook, const std::vector<std::string>& names, const std::vector<float>& values) {
  const auto start = Clock::now();
  auto step = hook.begin_step(tornasole::Mode::kTrain);
  for (const std::string& name : names) step.save(name, values);
  step.end();
  return seconds_since(start);
}

int run(const Arguments& arguments) {
  auto hook = tornasole::Hook::open({.out_dir = arguments.directory,
                                     .save_config = {.save_interval = 1},
                                     .include_regex = {"^layer"},
                                     .close_wait_s = 60});
  if (!hook) {
    std::fprintf(stderr, "write_bench: %s\n", hook.error().message.c_str());
    return 1;
  }
  std::vector<float> values(arguments.bytes / sizeof(float));
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i % 1000) * 0.001F;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < arguments.count; ++i) names.push_back("layer" + std::to_string(i) + ".weight");

  std::vector<double> results;
  const std::int64_t resident = peak_resident_bytes();
  for (int i = 0; i < arguments.steps; ++i) {
    const auto start = Clock::now();
    const double caller = save_step(*hook, names, values);
    wait_for_step(arguments.directory, i);
    results.push_back(arguments.mode == "sync" ? seconds_since(start) : caller);
  }
  if (arguments.mode == "memory") results = {static_cast<double>(peak_resident_bytes() - resident)};

  const auto closed = hook->close();
  const tornasole::CaptureReport report = hook->report();
  const bool is_complete = closed.ok() && report.dropped_steps.empty() && report.dropped_values.empty() &&
                           report.committed_steps == arguments.steps;
  std::printf("{\"complete\": %s, \"results\": [", is_complete ? "true" : "false");
  for (std::size_t i = 0; i < results.size(); ++i) std::printf("%s%.9g", i == 0 ? "" : ", ", results[i]);
  std::printf("]}\n");
  return 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string mode = count > 1 ? arguments[1] : "";
  if (count != 6 || (mode != "sync" && mode != "async" && mode != "memory")) {
    std::fprintf(stderr, "usage: write_bench sync|async|memory COUNT BYTES STEPS DIRECTORY\n");
    return 2;
  }
  return run({mode, std::strtoul(arguments[2], nullptr, 10), std::strtoul(arguments[3], nullptr, 10),
              std::atoi(arguments[4]), arguments[5]});
}
