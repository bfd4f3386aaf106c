// Trials of whole runs: modes, workers, collections that grow, watched tensors, and what only we write.

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

#include "interop/trial_run.h"
#include "interop/trials.h"

namespace interop {

using tornasole::DType;
using tornasole::Hook;
using tornasole::HookOptions;
using tornasole::Mode;

// ---- modes, schedules, scalars

Trial modes(const std::string& root) {
  HookOptions options{.include_regex = {"^w$"}};
  options.save_config.modes[Mode::kGlobal].save_interval = 2;
  options.save_config.modes[Mode::kTrain].save_interval = 3;
  options.save_config.modes[Mode::kEval] = {.save_interval = 1000, .start_step = 5, .save_steps = {{1}}};
  options.save_config.modes[Mode::kPredict] = {.save_interval = 1, .end_step = 2};
  Run run(root, "modes", std::move(options));
  std::int64_t global_step = -1;
  std::int64_t last_saved = -1;
  const auto take_steps = [&](std::optional<Mode> mode, int count) {
    for (int i = 0; i < count; ++i) {
      ++global_step;
      auto step = mode ? run.hook().begin_step(*mode) : run.hook().begin_step();
      step.save("w", global_step);
      run.hook().save_scalar("progress", static_cast<double>(global_step) / 8);
    }
  };
  const auto saved = [&](std::int64_t step, const char* mode, std::int64_t mode_step) {
    run.expect_step(step, mode, mode_step);
    run.expect("w", step, sample_of<std::int64_t>({step}, {1}));
    // Those of the steps before that were not saved are in it too; a reader sees the last.
    run.expect_scalar("scalar/progress", step, static_cast<double>(step) / 8);
    last_saved = step;
  };
  take_steps(std::nullopt, 3);    // 0 .. 2
  take_steps(Mode::kTrain, 7);    // 3 .. 9
  take_steps(Mode::kEval, 3);     // 10 .. 12
  take_steps(Mode::kPredict, 4);  // 13 .. 16
  take_steps(Mode::kTrain, 3);    // 17 .. 19
  saved(0, "GLOBAL", 0);
  saved(2, "GLOBAL", 2);
  saved(3, "TRAIN", 0);
  saved(6, "TRAIN", 3);
  saved(9, "TRAIN", 6);
  saved(11, "EVAL", 1);
  saved(13, "PREDICT", 0);
  saved(14, "PREDICT", 1);
  saved(19, "TRAIN", 9);
  if (last_saved != run.hook().last_saved_step() && last_saved != global_step) die("modes: the last step is not saved");
  // The last step is published: what comes later gets a step of its own.
  run.hook().save_scalar("after_the_end", 0.25, {.timestamp = 1700000000.5});
  run.expect_step(20, "GLOBAL", 20);
  run.expect_scalar("scalar/after_the_end", 20, 0.25);
  return run.finish();
}

namespace {

// ---- several workers, in processes of their own

Sample worker_sample(int rank, std::int64_t step) {
  return sample_of<std::int32_t>({rank, static_cast<std::int32_t>(step), -1}, {3});
}

[[noreturn]] void be_worker(const std::string& directory, int rank) {
  auto hook = Hook::open({.out_dir = directory,
                          .save_config = {.save_interval = 2},
                          .include_regex = {"^(shared|own_.*)$"},
                          .include_workers = tornasole::IncludeWorkers::kAll,
                          .rank = rank,
                          .world_size = 3,
                          .close_wait_s = 120});
  if (!hook.ok()) die("worker " + std::to_string(rank) + ": " + hook.error().message);
  for (std::int64_t i = 0; i < 5; ++i) {
    auto step = hook->begin_step(Mode::kTrain);
    step.save("shared", view_of(worker_sample(rank, i)));
    step.save("own_" + std::to_string(rank), static_cast<float>(i));
  }
  const auto closed = hook->close();
  if (!closed.ok()) die("worker " + std::to_string(rank) + ": " + closed.error().message);
  std::_Exit(hook->report().committed_steps == 3 ? 0 : 1);
}

// Before any hook is opened here: a process is forked while it has one thread.
void in_process(const std::function<void()>& work, std::vector<pid_t>* children) {
  const pid_t child = fork();
  if (child < 0) die("cannot fork");
  if (child == 0) {
    work();
    std::_Exit(0);
  }
  children->push_back(child);
}

void wait_for(const std::vector<pid_t>& children) {
  for (const pid_t child : children) {
    int status = 0;
    if (waitpid(child, &status, 0) != child || !WIFEXITED(status) || WEXITSTATUS(status) != 0) die("a child failed");
  }
}

}  // namespace

Trial workers(const std::string& root) {
  Trial trial{.directory = "workers", .workers = {"worker_0", "worker_1", "worker_2"}};
  std::vector<pid_t> children;
  for (int rank = 0; rank < 3; ++rank) in_process([&] { be_worker(root + "/workers", rank); }, &children);
  wait_for(children);
  for (const std::int64_t i : {0, 2, 4}) {
    trial.steps.push_back({i, "TRAIN", i});
    for (int rank = 0; rank < 3; ++rank) {
      const std::string worker = "worker_" + std::to_string(rank);
      const Sample shared = worker_sample(rank, i);
      trial.values.push_back({"shared", i, worker, "int32", shared.shape, shared.bytes, {}, {}});
      const Sample own = sample_of<float>({static_cast<float>(i)}, {1});
      trial.values.push_back({"own_" + std::to_string(rank), i, worker, "float32", own.shape, own.bytes, {}, {}});
    }
    trial.files.push_back("index/000000000/00000000000" + std::to_string(i) + "_worker_2.json");
  }
  trial.collections["default"] = {"own_0", "own_1", "own_2", "shared"};
  return trial;
}

// ---- collections that grow, watched tensors, the flight recorder

Trial late_names(const std::string& root) {
  HookOptions options{.save_config = {.save_interval = 1}, .include_collections = {"mine", "by_call"}};
  Run run(root, "late_names", std::move(options));
  auto mine = run.hook().collection("mine");
  if (!mine.include("^early|^late").ok() || !mine.exclude("secret").ok()) die("late_names: patterns were refused");
  for (std::int64_t i = 0; i < 4; ++i) {
    auto step = run.hook().begin_step(i == 3 ? Mode::kEval : Mode::kTrain);
    i == 3 ? run.expect_step(3, "EVAL", 0) : run.expect_step(i, "TRAIN", i);
    const Sample sample = sample_of<std::int64_t>({i}, {1});
    const auto save = [&](const char* name) {
      step.save(name, view_of(sample));
      run.expect(name, i, sample);
    };
    save("early");
    step.save("early_secret", view_of(sample));  // excluded
    step.save("nobody", view_of(sample));        // in no collection
    if (i >= 2) save("late");
    if (i == 3) save("late_in_eval");
    if (i == 2) {
      run.hook().save_tensor("given", view_of(sample), {"by_call"});
      run.expect("given", i, sample);
    }
  }
  run.trial.collections["mine"] = {"early", "late", "late_in_eval"};
  run.trial.collections["by_call"] = {"given"};
  run.trial.texts.emplace_back("collections/000000000/worker_0_collections.json", "\"exclude_regex\": [\"secret\"]");
  run.trial.texts.emplace_back("collections/000000000/worker_0_collections.json", "\"late_in_eval\"");
  return run.finish();
}

Trial watched(const std::string& root) {
  HookOptions options{.include_regex = {"^layer$"}};
  options.save_config = {.save_interval = 1000, .when_nan = {{"^objective$"}}};
  Run run(root, "watched", std::move(options));
  const Sample layer = sample_of<float>({1, 2, 3}, {3});
  const Sample bad = sample_of<float>({1, std::numeric_limits<float>::infinity()}, {2});
  const Sample good = sample_of<float>({1, 2}, {2});
  for (std::int64_t i = 0; i < 7; ++i) {
    auto step = run.hook().begin_step(Mode::kTrain);
    step.save("layer", view_of(layer));
    step.save("objective", view_of(i == 5 ? bad : good));
    if (i == 0 || i == 5) {
      run.expect_step(i, "TRAIN", i);
      run.expect("layer", i, layer);
    }
    if (i == 5) run.expect("objective", i, bad);
  }
  run.trial.texts.emplace_back("collections/000000000/worker_0_collections.json", "\"when_nan\": [\"^objective$\"]");
  return run.finish();
}

Trial flight_recorder(const std::string& root, bool is_raw) {
  HookOptions options{.save_config = {.save_interval = 1000}, .include_regex = {"^x$"}};
  options.flight_recorder_steps = 3;
  options.flight_recorder_raw = is_raw;
  Run run(root, is_raw ? "recorder_raw" : "recorder_statistics", std::move(options));
  const Sample sample = exact_sample(DType::kFloat32);
  for (int i = 0; i < 10; ++i) {
    auto step = run.hook().begin_step(Mode::kTrain);
    step.save("x", view_of(sample));
  }
  run.hook().dump_flight_recorder();
  run.expect_step(0, "TRAIN", 0);
  run.expect("x", 0, sample);
  for (std::int64_t i = 7; i < 10; ++i) {
    run.expect_step(i, "TRAIN", i);
    if (is_raw) {
      run.expect("x", i, sample);
    } else {
      run.expect_reductions("x", i, sample, true, {"min", "max", "mean", "std", "l1", "l2"});
    }
  }
  return run.finish();
}

namespace {

// ---- everything that is ours only, beside values that smdebug has to find all the same

void die_in_the_middle(const std::string& directory) {
  auto hook = Hook::open({.out_dir = directory, .save_config = {.save_interval = 1}, .include_regex = {"^old$"}});
  if (!hook.ok()) die("first attempt: " + hook.error().message);
  for (int i = 0; i < 3; ++i) hook->begin_step(Mode::kTrain).save("old", static_cast<double>(i));
  // A step is written by another thread; the process may only die when two of them are there.
  while (!std::filesystem::exists(directory + "/index/000000000/000000000002_worker_0.json")) usleep(1000);
  std::_Exit(0);
}

}  // namespace

Trial first_attempt() {
  Trial trial{.directory = "ours_only/attempts/1", .is_ended = false};
  for (std::int64_t i = 0; i < 3; ++i) {
    const Sample sample = sample_of<double>({static_cast<double>(i)}, {1});
    trial.steps.push_back({i, "TRAIN", i});
    trial.values.push_back({"old", i, "worker_0", "float64", sample.shape, sample.bytes, {}, {}});
  }
  return trial;
}

namespace {

void request_stop(const std::string& directory) {
  std::ofstream(directory + "/stop_request.json") << "{\"reason\": \"a rule fired\", \"rule\": \"Test\", \"step\": 0}";
}

}  // namespace

Trial ours_only(const std::string& root) {
  std::vector<pid_t> children;
  in_process([&] { die_in_the_middle(root + "/ours_only"); }, &children);
  wait_for(children);
  Run run(root, "ours_only", save_everything());
  run.hook().describe_model({.modules = {{.path = "fc", .type = "Linear", .parent = ""}},
                             .parameters = {{.name = "fc.weight", .module = "fc", .shape = {2}, .dtype = "float32"}},
                             .losses = {{.name = "nll", .type = "NLLLoss"}},
                             .optimizers = {{.type = "SGD", .hyperparameters = {{"lr", 0.5}}}},
                             .device = "cpu"});
  const Sample sample = sample_of<float>({1, -0.0F}, {2});
  for (std::int64_t i = 0; i < 3; ++i) {
    try {
      auto step = run.hook().begin_step(Mode::kTrain);
      run.hook().set_facts({.optimizer_step = i, .training = true, .grad_enabled = true, .grad_scale = 65536.0});
      step.save("fc.weight", view_of(sample));
      run.expect_step(i, "TRAIN", i);
      run.expect("fc.weight", i, sample);
      if (i == 1) throw std::runtime_error("the batch was bad");
    } catch (const std::runtime_error&) {
      // The step is published, marked partial; training goes on.
    }
    if (i == 1) {
      // The directory is taken by the writer's thread, which moves what it finds there aside.
      while (run.hook().report().committed_steps < 2) usleep(1000);
      request_stop(run.path());
    }
  }
  run.trial.files = {"tornasole/run.json",
                     "tornasole/worker_0_health.json",
                     "tornasole/worker_0_model.json",
                     "stop_request.json",
                     "attempts/1/index/000000000/000000000002_worker_0.json",
                     "training_job_end.ts",
                     "attempts/1/tornasole/run.json"};
  const std::string index = "index/000000000/00000000000";
  run.trial.texts = {{index + "1_worker_0.json", "\"partial\": true"},
                     {index + "2_worker_0.json", "\"grad_scale\": 65536.0"},
                     {index + "2_worker_0.json", "\"optimizer_step\": 2"},
                     {index + "2_worker_0.json", "\"crc32c\": "},
                     {"collections/000000000/worker_0_collections.json", "\"crc32c\": "},
                     {"collections/000000000/worker_0_collections.json", "\"exclude_regex\": "}};
  Hook& hook = run.hook();
  Trial trial = run.finish();
  if (!hook.stop_requested()) die("ours_only: the request to stop was not seen");
  return trial;
}

Trial failed(const std::string& root) {
  Run run(root, "failed", save_everything());
  auto step = run.hook().begin_step(Mode::kTrain);
  const Sample sample = sample_of<double>({0.1}, {1});
  step.save("x", view_of(sample));
  run.expect_step(0, "TRAIN", 0);
  run.expect("x", 0, sample);
  run.trial.texts.emplace_back("tornasole/worker_0_health.json", "\"failed\"");
  run.trial.texts.emplace_back("index/000000000/000000000000_worker_0.json", "\"partial\": true");
  return run.finish(/*is_failed=*/true);
}

}  // namespace interop
