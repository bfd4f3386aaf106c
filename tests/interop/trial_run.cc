#include "interop/trial_run.h"

#include <cstdio>
#include <cstdlib>

namespace interop {
namespace {

const std::vector<std::string> kEveryReduction = {"min", "max", "median", "mean", "std", "variance", "sum", "prod"};
const std::vector<std::string> kEveryNorm = {"l1", "l2"};

}  // namespace

void die(const std::string& what) {
  std::fprintf(stderr, "interop_writer: %s\n", what.c_str());
  std::_Exit(1);
}

tornasole::HookOptions save_everything() { return {.save_config = {.save_interval = 1}, .include_regex = {".*"}}; }

std::vector<std::string> every_operation() {
  std::vector<std::string> operations;
  for (const char* prefix : {"", "abs_"}) {
    for (const auto* names : {&kEveryReduction, &kEveryNorm}) {
      for (const std::string& name : *names) operations.push_back(prefix + name);
    }
  }
  return operations;
}
tornasole::ReductionConfig everything_reduced() {
  return {.reductions = kEveryReduction,
          .abs_reductions = kEveryReduction,
          .norms = kEveryNorm,
          .abs_norms = kEveryNorm,
          .save_shape = true};
}

Run::Run(const std::string& root, const std::string& directory, tornasole::HookOptions options) : root_(root) {
  trial.directory = directory;
  options.out_dir = root + "/" + directory;
  options.when_full = tornasole::WhenFull::kBlock;
  options.close_wait_s = 120;
  auto opened = tornasole::Hook::open(std::move(options));
  if (!opened.ok()) die(directory + ": " + opened.error().message);
  hook_.emplace(std::move(opened).value());
}

void Run::expect(const std::string& name, std::int64_t step, const Sample& read, const std::string& worker) {
  Value value{.name = name, .step = step, .worker = worker, .shape = read.shape, .bytes = read.bytes};
  value.dtype = smdebug_dtype(read.dtype);
  if (value.dtype.empty()) {
    value.dtype = tornasole::dtype_name(read.dtype);
    value.unreadable = "smdebug knows no type of this code";
  }
  trial.values.push_back(std::move(value));
}

void Run::expect_texts(const std::string& name, std::int64_t step, const std::vector<std::string>& texts) {
  trial.values.push_back({.name = name,
                          .step = step,
                          .dtype = "string",
                          .shape = {static_cast<std::int64_t>(texts.size())},
                          .texts = texts});
}

void Run::expect_reductions(const std::string& name, std::int64_t step, const Sample& of, bool is_exact,
                            std::vector<std::string> operations) {
  trial.reductions.push_back({.name = name,
                              .step = step,
                              .dtype = std::string(tornasole::dtype_name(of.dtype)),
                              .shape = of.shape,
                              .bytes = of.bytes,
                              .operations = std::move(operations),
                              .is_exact = is_exact});
}

Trial Run::finish(bool is_failed) {
  const auto closed = is_failed ? hook_->fail("the writer says so") : hook_->close();
  if (!closed.ok()) die(trial.directory + ": " + closed.error().message);
  const tornasole::CaptureReport report = hook_->report();
  if (!report.dropped_steps.empty() || !report.dropped_values.empty() ||
      report.committed_steps != static_cast<std::int64_t>(trial.steps.size())) {
    die(trial.directory + ": " + std::to_string(report.committed_steps) + " steps were committed, expected " +
        std::to_string(trial.steps.size()) + (report.errors.empty() ? "" : ": " + report.errors.front()));
  }
  return std::move(trial);
}

}  // namespace interop
