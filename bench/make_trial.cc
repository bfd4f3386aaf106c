// Writes a trial for the readers to be measured on.
//
//   make_trial values|reductions STEPS TENSORS ELEMENTS INTERVAL DIRECTORY [WORKERS]
//
// STEPS steps are saved, every INTERVAL-th one; each has TENSORS tensors of ELEMENTS floats, or l2 and mean of them.
// Of several workers the first has a hook, and the others write values without one.

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <vector>

#include "tornasole/hook.h"
#include "tornasole/step_writer.h"

namespace {

struct Arguments {
  bool is_reduced = false;
  int steps = 0;
  int tensors = 0;
  std::size_t elements = 0;
  int interval = 1;
  std::string directory;
  int workers = 1;
};

tornasole::HookOptions options_of(const Arguments& arguments) {
  tornasole::HookOptions options{.out_dir = arguments.directory,
                                 .save_config = {.save_interval = arguments.interval},
                                 .include_regex = {"^layer"},
                                 .when_full = tornasole::WhenFull::kBlock,
                                 .close_wait_s = 600};
  if (arguments.is_reduced) options.reduction_config = {.reductions = {"mean"}, .norms = {"l2"}};
  if (arguments.workers > 1) {
    options.world_size = arguments.workers;
    options.include_workers = tornasole::IncludeWorkers::kAll;
  }
  return options;
}

tornasole::Status write_other_workers(const Arguments& arguments, const std::vector<std::string>& names) {
  namespace fs = std::filesystem;
  const fs::path collections = fs::path(arguments.directory) / "collections" / "000000000";
  const std::vector<float> values(arguments.elements, 0.5F);
  const tornasole::TensorView view(tornasole::DType::kFloat32, reinterpret_cast<const std::byte*>(values.data()),
                                   tornasole::Shape{static_cast<std::int64_t>(values.size())});
  for (int worker = 1; worker < arguments.workers; ++worker) {
    const std::string name = "worker_" + std::to_string(worker);
    for (int step = 0; step < arguments.steps; ++step) {
      auto writer = tornasole::StepWriter::open({.trial_dir = arguments.directory,
                                                 .step = {std::int64_t{step} * arguments.interval},
                                                 .worker = name,
                                                 .mode = tornasole::Mode::kTrain,
                                                 .mode_step = std::int64_t{step} * arguments.interval});
      if (!writer) return writer.error();
      for (const std::string& tensor : names) {
        if (auto written = writer->write(tensor, view); !written) return written;
      }
      if (auto closed = writer->close(); !closed) return closed;
    }
    fs::copy_file(collections / "worker_0_collections.json", collections / (name + "_collections.json"));
  }
  return tornasole::mark_ended(arguments.directory);
}

int run(const Arguments& arguments) {
  auto hook = tornasole::Hook::open(options_of(arguments));
  if (!hook) {
    std::fprintf(stderr, "make_trial: %s\n", hook.error().message.c_str());
    return 1;
  }
  std::vector<std::string> names;
  for (int i = 0; i < arguments.tensors; ++i) names.push_back("layer" + std::to_string(i) + ".weight");
  std::vector<float> values(arguments.elements);
  for (int step = 0; step < arguments.steps; ++step) {
    for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(step) + static_cast<float>(i) * 0.5F;
    auto scope =
        hook->begin_step(tornasole::Mode::kTrain, tornasole::GlobalStep{std::int64_t{step} * arguments.interval});
    for (const std::string& name : names) scope.save(name, values);
  }
  const auto closed = hook->close();
  const tornasole::CaptureReport report = hook->report();
  if (arguments.workers > 1) {
    if (const auto written = write_other_workers(arguments, names); !written) {
      std::fprintf(stderr, "make_trial: %s\n", written.error().message.c_str());
      return 1;
    }
  }
  const bool is_complete = closed.ok() && report.committed_steps == arguments.steps && report.dropped_values.empty();
  std::printf("{\"complete\": %s, \"steps\": %lld}\n", is_complete ? "true" : "false",
              static_cast<long long>(report.committed_steps));
  return is_complete ? 0 : 1;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string form = count > 1 ? arguments[1] : "";
  if (count < 7 || count > 8 || (form != "values" && form != "reductions")) {
    std::fprintf(stderr, "usage: make_trial values|reductions STEPS TENSORS ELEMENTS INTERVAL DIRECTORY [WORKERS]\n");
    return 2;
  }
  return run({form == "reductions", std::atoi(arguments[2]), std::atoi(arguments[3]),
              std::strtoul(arguments[4], nullptr, 10), std::atoi(arguments[5]), arguments[6],
              count > 7 ? std::atoi(arguments[7]) : 1});
}
