// Trials of values: element types, shapes, names, reductions.

#include <complex>
#include <limits>
#include <random>
#include <span>

#include "interop/trial_run.h"
#include "interop/trials.h"

namespace interop {

using tornasole::DType;
using tornasole::HookOptions;
using tornasole::Mode;
using tornasole::Shape;
using tornasole::StepScope;
using tornasole::TensorView;

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
    if (i == 0) {
      // Neither its length nor its place is a round number.
      const Sample large = random_sample(DType::kUint8, {(std::int64_t{17} << 20) + 13}, &random);
      const std::string shifted = "x" + large.bytes;
      step.save("type/large", TensorView(DType::kUint8, shifted.data() + 1, Shape(large.shape)));
      run.expect("type/large", 0, large);
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

namespace {

// ---- reductions

void save_reduced(Run& run, StepScope& step, const std::string& name, std::int64_t at, const Sample& sample,
                  bool exact) {
  step.save(name, view_of(sample));
  run.expect_reductions(name, at, sample, exact, every_operation());
  run.trial.shapes.push_back({.name = name, .step = at, .shape = sample.shape});
}

}  // namespace

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

}  // namespace interop
