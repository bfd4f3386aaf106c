// Follows a run of survival_train while it is written, and checks what a reader is promised: a committed step is seen
// by every later refresh, never changes, never disappears, and is right.
//
//   live_reader DIR
//
// Ends when the run has. Prints one JSON line: steps and values read, violations, and how long after its commit a step
// was seen (milliseconds, from the time stamp of its index file).

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "format/paths.h"
#include "survival/expected_value.h"
#include "tornasole/trial.h"

namespace tornasole::survival {
namespace {

double now_s() { return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count(); }

class Follower {
 public:
  explicit Follower(Trial trial) : trial_(std::move(trial)) {}

  void follow() {
    while (true) {
      const bool is_last = trial_.loaded_all_steps();
      look();
      if (is_last || violations_ > 0) return;
      if (const Status refreshed = trial_.refresh(); !refreshed) return violation(refreshed.error().message);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    }
  }

  int report() {
    std::ranges::sort(latencies_ms_);
    const auto at = [&](double share) {
      return latencies_ms_.empty()
                 ? 0.0
                 : latencies_ms_[static_cast<std::size_t>(share * static_cast<double>(latencies_ms_.size() - 1))];
    };
    std::printf("{\"steps\": %zu, \"values\": %ld, \"violations\": %ld, \"p50_ms\": %.2f, \"p99_ms\": %.2f}\n",
                known_.size(), values_, violations_, at(0.5), at(0.99));
    return violations_ == 0 ? 0 : 1;
  }

 private:
  void look() {
    const double seen = now_s();
    const std::vector<ModeStep> steps = trial_.steps();
    std::size_t old = 0;
    for (const ModeStep step : steps) {
      const auto known = known_.find(step.number);
      if (known != known_.end()) {
        ++old;
        continue;
      }
      note_latency(step.number, seen);
      known_[step.number] = check(step);
    }
    if (old != known_.size() - (steps.size() - old)) violation("a step disappeared");
    // What was read before is still there and still the same: one old step a look, in turn.
    if (!steps.empty()) {
      const ModeStep step = steps[again_++ % steps.size()];
      if (check(step) != known_[step.number]) violation("step " + std::to_string(step.number) + " changed");
    }
  }

  // The number of values of the step; each is compared with what was written.
  std::size_t check(ModeStep step) {
    const auto names = trial_.tensor_names({.step = step});
    if (!names) {
      violation(names.error().message);
      return 0;
    }
    for (const std::string& name : *names) {
      const auto value = trial_.tensor(name, step);
      if (!value) {
        violation(value.error().message);
        continue;
      }
      ++values_;
      const std::span<const float> floats = value->values<float>();
      if (!std::ranges::equal(floats, expected_value(step.number, std::stol(name.substr(1)), floats.size()))) {
        violation(name + " at step " + std::to_string(step.number) + " is wrong");
      }
    }
    return names->size();
  }

  void note_latency(std::int64_t step, double seen) {
    const std::string path = trial_.path() + "/" + format::index_path(step, trial_.workers().front());
    struct stat status{};
    if (stat(path.c_str(), &status) != 0) return;
    const double written =
        static_cast<double>(status.st_mtim.tv_sec) + static_cast<double>(status.st_mtim.tv_nsec) / 1e9;
    latencies_ms_.push_back(std::max(0.0, (seen - written) * 1e3));
  }

  void violation(const std::string& what) {
    if (++violations_ <= 10) std::fprintf(stderr, "live_reader: %s\n", what.c_str());
  }

  Trial trial_;
  std::map<std::int64_t, std::size_t> known_;  // step -> values
  std::vector<double> latencies_ms_;
  std::size_t again_ = 0;
  long values_ = 0, violations_ = 0;
};

}  // namespace
}  // namespace tornasole::survival

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: live_reader DIR\n");
    return 2;
  }
  auto trial = tornasole::Trial::open(
      {.path = argv[1], .on_damage = tornasole::OnDamage::kFail, .timeout_s = 30, .poll_s = 0.02});
  if (!trial) {
    std::fprintf(stderr, "live_reader: %s\n", trial.error().message.c_str());
    return 2;
  }
  tornasole::survival::Follower follower(*std::move(trial));
  follower.follow();
  return follower.report();
}
