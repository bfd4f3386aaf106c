// Reads a trial and prints how long it took and how much memory, as JSON. trial_peer.py does the same with smdebug.
//
//   trial_bench open|values|sweep|list DIRECTORY
//
//   open    until the steps and names are known
//   values  of the first tensor, at all steps; opening is not counted
//   sweep   the stored l2 of all tensors at all steps; opening is not counted
//   list    open, all names, and the steps of the last tensor

#include <chrono>
#include <cstdio>
#include <fstream>
#include <string>

#include "tornasole/trial.h"

namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) { return std::chrono::duration<double>(Clock::now() - start).count(); }

// Of this program alone: what getrusage says begins with the size of the process that started it.
long long peak_resident_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string word; status >> word;) {
    long long kib = 0;
    if (word == "VmHWM:" && status >> kib) return kib * 1024;
  }
  return 0;
}

int fail(const tornasole::Error& error) {
  std::fprintf(stderr, "trial_bench: %s\n", error.message.c_str());
  return 1;
}

struct Measured {
  double seconds = 0;
  long long count = 0;
};

// `count` lets the two contenders be compared: they must have found the same.
tornasole::Result<Measured> measure(const std::string& job, const tornasole::Trial& trial, Clock::time_point opening) {
  const auto names = trial.tensor_names();
  if (!names) return names.error();
  if (job == "open") {
    const auto steps = trial.steps().size();
    return Measured{seconds_since(opening), static_cast<long long>(steps * 1'000'000 + names->size())};
  }
  if (job == "list") {
    const auto last = trial.tensor(names->back());
    if (!last) return last.error();
    const auto steps = last->steps().size();
    return Measured{seconds_since(opening), static_cast<long long>(steps * 1'000'000 + names->size())};
  }
  const auto start = Clock::now();
  if (job == "values") {
    const auto tensor = trial.tensor(names->front());
    if (!tensor) return tensor.error();
    const auto values = tensor->values();
    if (!values) return values.error();
    return Measured{seconds_since(start), static_cast<long long>(values->size())};
  }
  long long count = 0;
  double sum = 0;
  const tornasole::Reduction l2{tornasole::ReductionKind::kL2};
  const auto swept = trial.sweep({.values = false, .reductions = true, .reduction_kinds = {l2}},
                                 [&](const tornasole::SweptValue& value) {
                                   if (value.value == nullptr) return true;
                                   sum += *reinterpret_cast<const float*>(value.value->data());
                                   ++count;
                                   return true;
                                 });
  if (!swept) return swept.error();
  return Measured{seconds_since(start), sum > 0 ? count : 0};
}

}  // namespace

int main(int count, char** arguments) {
  const std::string job = count > 1 ? arguments[1] : "";
  if (count != 3 || (job != "open" && job != "values" && job != "sweep" && job != "list")) {
    std::fprintf(stderr, "usage: trial_bench open|values|sweep|list DIRECTORY\n");
    return 2;
  }
  const auto opening = Clock::now();
  const auto trial = tornasole::Trial::open({.path = arguments[2], .timeout_s = 0, .end_delay_s = 0});
  if (!trial) return fail(trial.error());
  const auto measured = measure(job, *trial, opening);
  if (!measured) return fail(measured.error());
  std::printf("{\"seconds\": %.9g, \"rss_bytes\": %lld, \"count\": %lld, \"index_bytes\": %lld}\n", measured->seconds,
              peak_resident_bytes(), measured->count, static_cast<long long>(trial->index_bytes()));
  return 0;
}
