// A training loop that can be hurt: killed, starved, cut off from its disk. It logs each finished step by one write
// and, as its last line, a hash of its weights, which must not depend on what happened to the capture.
//
//   survival_train --out DIR --log FILE [--steps N] [--tensors N] [--bytes N] [--think-ms N] [--threads N] [--fork N]
//                  [--store SPEC] [--fsync P] [--when-full P] [--queue-bytes N] [--flush-on-signal] [--resume]
//                  [--spool DIR] [--spool-bytes N] [--rank N --world N] [--keep-steps N]
//                  [--end exception|forward|abort|_exit --end-step N] [--bare] [--fail-new N --fail-new-lasting]
//
// Every value is a function of the step and the tensor, so that survival_check can tell a right one from a wrong one.

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <optional>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "capture/open_hook.h"
#include "store/local/local_store.h"
#include "support/faulty_store.h"
#include "survival/expected_value.h"
#include "survival/failing_new.h"
#include "tornasole/hook.h"

namespace tornasole::survival {
namespace {

constexpr int kLogFailed = 9;  // exit code

struct Arguments {
  std::map<std::string, std::string> values;

  std::string text(const std::string& name, const std::string& fallback = {}) const {
    const auto found = values.find(name);
    return found == values.end() ? fallback : found->second;
  }
  long number(const std::string& name, long fallback) const {
    const auto found = values.find(name);
    return found == values.end() ? fallback : std::atol(found->second.c_str());
  }
  bool has(const std::string& name) const { return values.contains(name); }
};

Arguments parse(int argc, char** argv) {
  Arguments arguments;
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i] + 2;
    const bool has_value = i + 1 < argc && std::strncmp(argv[i + 1], "--", 2) != 0;
    arguments.values[name] = has_value ? argv[++i] : "1";
  }
  return arguments;
}

// The work itself: a recurrence over some weights that nothing outside may change.
struct Training {
  std::vector<double> weights = std::vector<double>(1000, 1.0);

  void step(long number) {
    for (std::size_t i = 0; i < weights.size(); ++i) {
      weights[i] = weights[i] * 0.999 + static_cast<double>((static_cast<std::size_t>(number) * 31 + i) % 97) * 1e-3;
    }
  }
  std::uint64_t hash() const {
    std::uint64_t state = 1469598103934665603ULL;
    for (const double weight : weights) {
      std::uint64_t bits = 0;
      std::memcpy(&bits, &weight, sizeof bits);
      state = (state ^ bits) * 1099511628211ULL;
    }
    return state;
  }
};

class Log {
 public:
  explicit Log(const std::string& path) : file_(open(path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600)) {}
  ~Log() { close(file_); }
  Log(const Log&) = delete;
  Log& operator=(const Log&) = delete;
  void line(const std::string& text) const {
    // An injected fault may hit the log instead of capture: the run then says nothing about capture.
    if (write(file_, (text + "\n").data(), text.size() + 1) < 0) _exit(kLogFailed);
  }

 private:
  int file_;
};

// Without a step, as a bare run does, the values are only made: that is work of the training.
void save_tensors(StepScope* step, long number, long tensors, std::size_t count, long threads) {
  const auto save_from = [&](long first) {
    for (long tensor = first; tensor < tensors; tensor += threads) {
      std::string name;
      std::vector<float> value;
      {
        const ExemptFromFailingNew own;
        name = "t" + std::to_string(tensor);
        value = expected_value(number, tensor, count);
      }
      if (step != nullptr) step->save(name, value);
    }
  };
  if (threads == 1) return save_from(0);
  std::vector<std::thread> workers;
  for (long thread = 0; thread < threads; ++thread) workers.emplace_back(save_from, thread);
  for (std::thread& worker : workers) worker.join();
}

// Children as a data loader makes them: they inherit the hook, use it, and must neither write nor hang.
void fork_children(Hook& hook, long count) {
  for (long i = 0; i < count; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      auto step = hook.begin_step(Mode::kTrain);
      step.save("child", 1.0);
      step.end();
      if (i % 2 == 0) exit(0);
      _exit(0);
    }
    int status = 0;
    waitpid(child, &status, 0);
    if (!WIFEXITED(status) || WEXITSTATUS(status) != 0) std::fprintf(stderr, "a child ended with %d\n", status);
  }
}

void end_early(const std::string& how) {
  if (how == "abort") std::abort();
  if (how == "_exit") _exit(3);
  if (how == "exit") exit(4);
  throw std::runtime_error("the training broke");
}

void train(const Arguments& arguments, Training& training, Hook* hook, const Log& log) {
  std::optional<ExemptFromFailingNew> set_up(std::in_place);
  const long threads = arguments.number("threads", 1);
  const long steps = arguments.number("steps", 100);
  const long forks = arguments.number("fork", 0);
  const long tensors = arguments.number("tensors", 4);
  const auto count = static_cast<std::size_t>(arguments.number("bytes", 1000)) / sizeof(float);
  const auto think = std::chrono::milliseconds(arguments.number("think-ms", 0));
  const long end_step = arguments.number("end-step", -1);
  const std::string end = arguments.text("end");
  const long first = arguments.number("first", 0);
  set_up.reset();
  for (long number = first; number < first + steps; ++number) {
    if (hook != nullptr) {
      auto step = hook->begin_step(Mode::kTrain);
      save_tensors(&step, step.global_step(), tensors, count, threads);
      if (number == end_step && end != "exception") end_early(end);
      if (think.count() > 0) std::this_thread::sleep_for(think);
      training.step(number);
      if (number == end_step) end_early(end);
    } else {
      save_tensors(nullptr, number, tensors, count, threads);
      if (think.count() > 0) std::this_thread::sleep_for(think);
      training.step(number);
    }
    {
      const ExemptFromFailingNew own;
      log.line(std::to_string(number));
    }
    if (hook != nullptr && number == first && forks > 0) fork_children(*hook, forks);
  }
}

long resident_kib() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return usage.ru_maxrss;
}

int run(int argc, char** argv) {
  const Arguments arguments = parse(argc, argv);
  const Log log(arguments.text("log", "/dev/null"));
  Training training;
  const auto start = std::chrono::steady_clock::now();
  double close_seconds = 0;
  try {
    if (arguments.has("bare")) {
      train(arguments, training, nullptr, log);
    } else {
      HookOptions options{.out_dir = arguments.text("out"),
                          .save_config = {.save_interval = arguments.number("interval", 1)},
                          .save_all = true};
      if (arguments.has("fsync")) options.fsync = arguments.text("fsync");
      if (arguments.has("when-full")) {
        options.when_full = arguments.text("when-full") == "block" ? WhenFull::kBlock : WhenFull::kDrop;
      }
      if (arguments.has("queue-bytes")) options.queue_bytes = arguments.number("queue-bytes", 0);
      // What a busy disk has not taken within the usual time would look like a loss.
      options.close_wait_s = static_cast<double>(arguments.number("close-wait", 300));
      if (arguments.has("flush-on-signal")) options.flush_on_signal = true;
      if (arguments.has("resume")) options.resume = true;
      if (arguments.has("keep-steps")) options.keep_steps = arguments.number("keep-steps", 0);
      if (arguments.has("world")) {
        options.rank = arguments.number("rank", 0);
        options.world_size = arguments.number("world", 1);
        options.include_workers = IncludeWorkers::kAll;
      }
      if (arguments.has("spool")) options.spool_dir = arguments.text("spool");
      if (arguments.has("spool-bytes")) options.spool_bytes = arguments.number("spool-bytes", 0);
      capture::HookDependencies dependencies;
      if (arguments.has("store")) {
        auto local = store::open_local_store(options.out_dir);
        if (!local.ok()) throw std::runtime_error(local.error().message);
        auto wrapped = store::wrap_store(arguments.text("store"), std::move(*local));
        if (!wrapped.ok()) throw std::runtime_error(wrapped.error().message);
        dependencies.store = std::move(*wrapped);
      }
      auto hook = capture::open_hook(options, std::move(dependencies));
      if (!hook.ok()) {
        std::fprintf(stderr, "refused: %s\n", hook.error().message.c_str());
        return 5;
      }
      const long fail_new = arguments.number("fail-new", 0);
      const bool is_lasting = arguments.has("fail-new-lasting");
      arm_failing_new(fail_new, is_lasting);
      train(arguments, training, &*hook, log);
      const auto closing = std::chrono::steady_clock::now();
      const Status closed = hook->close();
      close_seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - closing).count();
      arm_failing_new(0, false);
      const CaptureReport report = hook->report();
      std::int64_t dropped = 0;
      for (const auto& [cause, steps] : report.dropped_steps) dropped += steps;
      std::printf("due %lld committed %lld dropped %lld first_error %s\n", static_cast<long long>(report.due_steps),
                  static_cast<long long>(report.committed_steps), static_cast<long long>(dropped),
                  closed.ok() ? "none" : closed.error().message.c_str());
      if (report.due_steps != report.committed_steps + dropped) return 6;
    }
  } catch (const std::exception& exception) {
    std::fprintf(stderr, "%s\n", exception.what());
    return 7;
  }
  const double seconds =
      std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() - close_seconds;
  std::printf("seconds %.6f close %.3f rss_kib %ld hash %016llx\n", seconds, close_seconds, resident_kib(),
              static_cast<unsigned long long>(training.hash()));
  return std::fflush(stdout) == 0 ? 0 : kLogFailed;
}

}  // namespace
}  // namespace tornasole::survival

int main(int argc, char** argv) { return tornasole::survival::run(argc, argv); }
