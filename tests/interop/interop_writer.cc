// Writes trials through the public interface alone, one for each thing a reader may stumble over, and what has to be
// found in them. interop_test.py opens every one with the real smdebug.
//
//   interop_writer DIRECTORY      (which must not exist)

#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <limits>
#include <stdexcept>

#include "interop/expectations.h"
#include "interop/samples.h"
#include "tornasole/hook.h"

namespace interop {
namespace {

using tornasole::DType;
using tornasole::Hook;
using tornasole::HookOptions;
using tornasole::Mode;
using tornasole::ReductionConfig;
using tornasole::Shape;
using tornasole::StepScope;
using tornasole::TensorView;

[[noreturn]] void die(const std::string& what) {
  std::fprintf(stderr, "interop_writer: %s\n", what.c_str());
  std::_Exit(1);
}

const std::vector<std::string> kEveryReduction = {"min", "max", "median", "mean", "std", "variance", "sum", "prod"};
const std::vector<std::string> kEveryNorm = {"l1", "l2"};
std::vector<std::string> every_operation() {
  std::vector<std::string> operations;
  for (const char* prefix : {"", "abs_"}) {
    for (const auto* names : {&kEveryReduction, &kEveryNorm}) {
      for (const std::string& name : *names) operations.push_back(prefix + name);
    }
  }
  return operations;
}
ReductionConfig everything_reduced() {
  return {.reductions = kEveryReduction,
          .abs_reductions = kEveryReduction,
          .norms = kEveryNorm,
          .abs_norms = kEveryNorm,
          .save_shape = true};
}

// A hook together with what it is expected to leave behind.
class Run {
 public:
  Run(const std::string& root, const std::string& directory, HookOptions options) : root_(root) {
    trial.directory = directory;
    options.out_dir = root + "/" + directory;
    options.when_full = tornasole::WhenFull::kBlock;
    options.close_wait_s = 120;
    auto opened = Hook::open(std::move(options));
    if (!opened.ok()) die(directory + ": " + opened.error().message);
    hook_.emplace(std::move(opened).value());
  }

  Hook& hook() { return *hook_; }
  std::string path() const { return root_ + "/" + trial.directory; }
  void expect_step(std::int64_t global_step, const char* mode, std::int64_t mode_step) {
    trial.steps.push_back({global_step, mode, mode_step});
  }
  void expect(const std::string& name, std::int64_t step, const Sample& read, const std::string& worker = "worker_0") {
    Value value{.name = name, .step = step, .worker = worker, .shape = read.shape, .bytes = read.bytes};
    value.dtype = smdebug_dtype(read.dtype);
    if (value.dtype.empty()) {
      value.dtype = tornasole::dtype_name(read.dtype);
      value.unreadable = "smdebug knows no type of this code";
    }
    trial.values.push_back(std::move(value));
  }
  void expect_texts(const std::string& name, std::int64_t step, const std::vector<std::string>& texts) {
    trial.values.push_back({.name = name,
                            .step = step,
                            .dtype = "string",
                            .shape = {static_cast<std::int64_t>(texts.size())},
                            .texts = texts});
  }
  void expect_reductions(const std::string& name, std::int64_t step, const Sample& of, bool is_exact,
                         std::vector<std::string> operations) {
    trial.reductions.push_back({.name = name,
                                .step = step,
                                .dtype = std::string(tornasole::dtype_name(of.dtype)),
                                .shape = of.shape,
                                .bytes = of.bytes,
                                .operations = std::move(operations),
                                .is_exact = is_exact});
  }
  // A scalar is a float64 of shape [1].
  void expect_scalar(const std::string& name, std::int64_t step, double value) {
    expect(name, step, sample_of<double>({value}, {1}));
  }

  // A run in which anything was lost proves nothing.
  Trial finish(bool is_failed = false) {
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

  Trial trial;

 private:
  std::string root_;
  std::optional<Hook> hook_;
};

HookOptions save_everything() { return {.save_config = {.save_interval = 1}, .include_regex = {".*"}}; }

// ---- element types

Trial exact_types(const std::string& root) {
  Run run(root, "exact_types", save_everything());
  std::mt19937_64 random(1);
  const std::vector<std::string> texts = {"", "plain", "dr\xc3\xa9i \"quoted\" \\ \t\n", "\xe6\x97\xa5\xe6\x9c\xac"};
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  for (std::int64_t i = 0; i < 2; ++i) {
    auto step = run.hook().begin_step(Mode::kTrain);
    run.expect_step(i, "TRAIN", i);
    for (const DType dtype : tornasole::kNumericDTypes) {
      const Sample sample = random_sample(dtype, {2, 50}, &random);
      const std::string name = "type/" + std::string(tornasole::dtype_name(dtype));
      step.save(name, view_of(sample));
      run.expect(name, i, sample);
    }
    step.save("type/string", TensorView::strings(views));
    run.expect_texts("type/string", i, texts);
    step.save("type/one_string", TensorView::strings(std::span(views).subspan(2, 1)));
    run.expect_texts("type/one_string", i, {texts[2]});
  }
  return run.finish();
}

Trial widened_types(const std::string& root) {
  HookOptions options = save_everything();
  options.readable_by_smdebug = true;
  Run run(root, "widened_types", std::move(options));
  std::mt19937_64 random(2);
  auto step = run.hook().begin_step(Mode::kTrain);
  run.expect_step(0, "TRAIN", 0);
  for (const DType dtype : tornasole::kNumericDTypes) {
    const bool is_small = dtype == DType::kBfloat16 || tornasole::dtype_name(dtype).starts_with("float8");
    Sample sample = is_small ? all_patterns(dtype) : random_sample(dtype, {7, 3}, &random);
    if (dtype == DType::kUint64) {
      for (std::size_t i = 7; i < sample.bytes.size(); i += 8) sample.bytes[i] &= 0x7F;
    }
    if (dtype == DType::kComplex64) sample = sample_of<std::complex<float>>({{1.5F, -2}, {-0.0F, 3e-40F}}, {2, 1});
    const std::string name = "wide/" + std::string(tornasole::dtype_name(dtype));
    step.save(name, view_of(sample));
    run.expect(name, 0, widened(sample));
  }
  // Beyond int64 nothing wider is left: the value stays what it is, and unreadable for smdebug.
  const Sample beyond = sample_of<std::uint64_t>({1, std::numeric_limits<std::uint64_t>::max()}, {2});
  step.save("wide/beyond", view_of(beyond));
  run.expect("wide/beyond", 0, beyond);
  step.end();
  return run.finish();
}

// ---- shapes and layouts

Trial shapes(const std::string& root) {
  HookOptions options = save_everything();
  options.queue_bytes = std::int64_t{8} << 20;
  Run run(root, "shapes", std::move(options));
  std::mt19937_64 random(3);
  auto step = run.hook().begin_step(Mode::kTrain);
  run.expect_step(0, "TRAIN", 0);
  const std::vector<std::vector<std::int64_t>> kShapes = {
      {}, {1}, {7}, {1, 1, 1}, {3, 1, 2}, {2, 1, 2, 1, 2, 1, 2, 1, 2, 1, 2, 1}, {5000}, {300, 200}, {1024, 1024}};
  for (std::size_t i = 0; i < kShapes.size(); ++i) {
    const Sample sample = random_sample(DType::kFloat32, kShapes[i], &random);
    step.save("shape/" + std::to_string(i), view_of(sample));
    run.expect("shape/" + std::to_string(i), 0, sample);
  }
  // Larger than the queue: it goes through in pieces.
  const Sample large = random_sample(DType::kUint8, {12, 1 << 20}, &random);
  step.save("shape/larger_than_the_queue", view_of(large));
  run.expect("shape/larger_than_the_queue", 0, large);
  // No element, no value.
  step.save("shape/empty", TensorView(DType::kFloat32, nullptr, Shape{0, 3}));

  const std::vector<float> grid = {1, 2, 3, 4, 5, 6};
  const auto strided = [&](const char* name, const void* data, std::vector<std::int64_t> shape,
                           std::vector<std::int64_t> strides, const std::vector<float>& row_major) {
    step.save(name, TensorView(DType::kFloat32, data, Shape(shape), strides));
    run.expect(name, 0, sample_of(row_major, std::move(shape)));
  };
  strided("strided/transposed", grid.data(), {3, 2}, {4, 12}, {1, 4, 2, 5, 3, 6});
  strided("strided/backwards", grid.data() + 5, {6}, {-4}, {6, 5, 4, 3, 2, 1});
  strided("strided/broadcast", grid.data() + 1, {2, 3}, {0, 0}, {2, 2, 2, 2, 2, 2});
  strided("strided/sliced", grid.data() + 1, {2, 1}, {12, 8}, {2, 5});
  strided("strided/contiguous", grid.data(), {2, 3}, {12, 4}, grid);
  std::vector<float> wide(200 * 300);
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<float>(i);
  std::vector<float> turned;
  for (std::size_t column = 0; column < 300; ++column) {
    for (std::size_t row = 0; row < 200; ++row) turned.push_back(wide[row * 300 + column]);
  }
  strided("strided/large", wide.data(), {300, 200}, {4, 1200}, turned);
  step.end();
  return run.finish();
}

Trial odd_names(const std::string& root) {
  HookOptions options = save_everything();
  options.include_regex = {"(?s).*"};
  Run run(root, "odd_names", std::move(options));
  const std::vector<std::string> kNames = {"x",
                                           "a b",
                                           " leading",
                                           "trailing ",
                                           "a/b/c",
                                           "/absolute",
                                           "../up",
                                           "a/../b",
                                           "..",
                                           ".",
                                           "a//b",
                                           "a\nb",
                                           "a\tb",
                                           "quote\"d",
                                           "back\\slash",
                                           "gr\xc3\xbc\xc3\x9f"
                                           "e",
                                           "\xe5\xbc\xb5\xe9\x87\x8f",
                                           "\xf0\x9f\x94\xa5",
                                           "colon:0",
                                           "a:b:12",
                                           "comma,name",
                                           "{brace}",
                                           "[bracket]",
                                           "100%",
                                           "dollar$",
                                           "relu_input_0",
                                           "x_1",
                                           "scalar/x",
                                           std::string(2000, 'n'),
                                           "smdebug",
                                           "index",
                                           "nul\xc2\xa0space",
                                           "\x7f",
                                           "e\xcc\x81"};
  for (std::int64_t i = 0; i < 2; ++i) {
    auto step = run.hook().begin_step(Mode::kTrain);
    run.expect_step(i, "TRAIN", i);
    for (std::size_t n = 0; n < kNames.size(); ++n) {
      const Sample sample = sample_of<std::int64_t>({static_cast<std::int64_t>(n), i}, {2});
      step.save(kNames[n], view_of(sample));
      run.expect(kNames[n], i, sample);
    }
  }
  run.trial.collections["default"] = kNames;
  return run.finish();
}

// ---- reductions

// Every result of these is exact in every type that holds it.
Sample exact_sample(DType dtype) {
  switch (dtype) {
    case DType::kFloat32: return sample_of<float>({-4, 3}, {2});
    case DType::kFloat64: return sample_of<double>({-4, 3}, {2, 1});
    case DType::kFloat16: return {DType::kFloat16, {2}, std::string("\x00\xC4\x00\x42", 4)};
    case DType::kBfloat16: return {DType::kBfloat16, {1, 2}, std::string("\x80\xC0\x40\x40", 4)};
    case DType::kInt8: return sample_of<std::int8_t>({-4, 3}, {2});
    case DType::kInt16: return sample_of<std::int16_t>({-4, 3}, {2});
    case DType::kInt32: return sample_of<std::int32_t>({-4, 3}, {2});
    case DType::kInt64: return sample_of<std::int64_t>({-4, 3}, {2});
    case DType::kUint8: return sample_of<std::uint8_t>({4, 3}, {2});
    case DType::kUint32: return sample_of<std::uint32_t>({4, 3}, {2});
    case DType::kUint64: return sample_of<std::uint64_t>({4, 3}, {2});
    case DType::kBool: return {DType::kBool, {2}, std::string("\x01\x00", 2)};
    default: die("no exact sample of " + std::string(tornasole::dtype_name(dtype)));
  }
}

void save_reduced(Run& run, StepScope& step, const std::string& name, std::int64_t at, const Sample& sample,
                  bool exact) {
  step.save(name, view_of(sample));
  run.expect_reductions(name, at, sample, exact, every_operation());
  run.trial.shapes.push_back({.name = name, .step = at, .shape = sample.shape});
}

Trial reductions(const std::string& root) {
  HookOptions options = save_everything();
  options.reduction_config = everything_reduced();
  options.include_collections = {"both"};
  Run run(root, "reductions", std::move(options));
  run.trial.texts.emplace_back("collections/000000000/worker_0_collections.json", "\"tornasole_reductions\": ");
  auto both = run.hook().collection("both");
  if (!both.add("both/x").ok() ||
      !both.set_reduction_config({.reductions = {"min", "median"}, .norms = {"l2"}, .save_raw_tensor = true}).ok()) {
    die("reductions: the collection refuses its settings");
  }
  std::mt19937_64 random(4);
  std::uniform_real_distribution<float> around_one(-1.5F, 1.5F);
  for (std::int64_t i = 0; i < 3; ++i) {
    auto step = run.hook().begin_step(Mode::kTrain);
    run.expect_step(i, "TRAIN", i);
    for (const DType dtype : {DType::kFloat32, DType::kFloat64, DType::kFloat16, DType::kBfloat16, DType::kInt32,
                              DType::kInt64, DType::kBool}) {
      save_reduced(run, step, "exact/" + std::string(tornasole::dtype_name(dtype)), i, exact_sample(dtype), true);
    }
    std::vector<float> numbers(37 * 11);
    for (float& number : numbers) number = around_one(random);
    save_reduced(run, step, "random/float32", i, sample_of(numbers, {37, 11}), false);
    save_reduced(run, step, "random/float64", i, sample_of(std::vector<double>(numbers.begin(), numbers.end()), {407}),
                 false);
    numbers[100] = std::numeric_limits<float>::quiet_NaN();
    save_reduced(run, step, "random/nan", i, sample_of(numbers, {11, 37}), false);
    save_reduced(run, step, "random/one", i, sample_of<float>({-2.5F}, {}), true);
    save_reduced(run, step, "random/empty", i, sample_of<float>({}, {0, 4}), true);
    // In `default` too, which asks for all reductions: the union, once each, and the value instead of the shape.
    const Sample raw = exact_sample(DType::kFloat32);
    step.save("both/x", view_of(raw));
    run.expect("both/x", i, raw);
    run.expect_reductions("both/x", i, raw, true, every_operation());
  }
  run.trial.collections["both"] = {"both/x"};
  return run.finish();
}

Trial widened_reductions(const std::string& root) {
  HookOptions options = save_everything();
  options.reduction_config = everything_reduced();
  options.readable_by_smdebug = true;
  Run run(root, "widened_reductions", std::move(options));
  auto step = run.hook().begin_step(Mode::kTrain);
  run.expect_step(0, "TRAIN", 0);
  for (const DType dtype : {DType::kInt8, DType::kInt16, DType::kUint8, DType::kUint32, DType::kUint64, DType::kBool}) {
    save_reduced(run, step, "exact/" + std::string(tornasole::dtype_name(dtype)), 0, exact_sample(dtype), true);
  }
  step.end();
  return run.finish();
}

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
                          .world_size = 3});
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

// ---- everything that is ours only, beside values that smdebug has to find all the same

void die_in_the_middle(const std::string& directory) {
  auto hook = Hook::open({.out_dir = directory, .save_config = {.save_interval = 1}, .include_regex = {"^old$"}});
  if (!hook.ok()) die("first attempt: " + hook.error().message);
  for (int i = 0; i < 3; ++i) hook->begin_step(Mode::kTrain).save("old", static_cast<double>(i));
  // A step is written by another thread; the process may only die when two of them are there.
  while (!std::filesystem::exists(directory + "/index/000000000/000000000002_worker_0.json")) usleep(1000);
  std::_Exit(0);
}

Trial first_attempt() {
  Trial trial{.directory = "ours_only/attempts/1", .is_ended = false};
  for (std::int64_t i = 0; i < 3; ++i) {
    const Sample sample = sample_of<double>({static_cast<double>(i)}, {1});
    trial.steps.push_back({i, "TRAIN", i});
    trial.values.push_back({"old", i, "worker_0", "float64", sample.shape, sample.bytes, {}, {}});
  }
  return trial;
}

void request_stop(const std::string& directory) {
  std::ofstream(directory + "/stop_request.json") << "{\"reason\": \"a rule fired\", \"rule\": \"Test\", \"step\": 0}";
}

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
    if (i == 1) request_stop(run.path());
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

int write_all(const std::string& root) {
  if (std::filesystem::exists(root)) die(root + " exists");
  std::filesystem::create_directories(root);
  std::vector<Trial> trials;
  trials.push_back(workers(root));    // forks: while this process has one thread
  trials.push_back(ours_only(root));  // likewise
  trials.push_back(first_attempt());
  for (Trial (*write)(const std::string&) : {exact_types, widened_types, shapes, odd_names, reductions,
                                             widened_reductions, modes, late_names, watched, failed}) {
    trials.push_back(write(root));
  }
  trials.push_back(flight_recorder(root, /*is_raw=*/true));
  trials.push_back(flight_recorder(root, /*is_raw=*/false));
  write_expectations(root, trials);
  return 0;
}

}  // namespace
}  // namespace interop

int main(int count, char** arguments) {
  if (count != 2) {
    std::fprintf(stderr, "usage: interop_writer DIRECTORY\n");
    return 2;
  }
  return interop::write_all(arguments[1]);
}
