// Values, reductions, shapes, names and collections, and every error about them.

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "support/failing_store.h"
#include "trial_world.h"

namespace tornasole::trial {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

float first_of(const Result<Tensor>& value) {
  EXPECT_TRUE(value.ok()) << (value.ok() ? "" : value.error().message);
  return value.ok() ? value->values<float>()[0] : NAN;
}

TEST(Values, TheFirstWorkerInSortedOrderUnlessOneIsNamed) {
  TrialWorld world;
  world.write_collections({"a", "b", "c"});
  world.write({.step = 0, .worker = "b", .tensors = {{"x", {2}}}});
  world.write({.step = 0, .worker = "c", .tensors = {{"x", {3}}, {"y", {30}}}});
  const Trial trial = must_open(world);
  const TrialTensor x = *trial.tensor("x");
  EXPECT_EQ(first_of(x.value(global(0))), 2);
  EXPECT_EQ(first_of(x.value(global(0), "c")), 3);
  EXPECT_THAT(*x.workers(global(0)), ElementsAre("b", "c"));
  EXPECT_THAT(*trial.tensor("y")->workers(global(0)), ElementsAre("c"));
  EXPECT_TRUE(x.has_value(global(0), "c"));
  EXPECT_FALSE(x.has_value(global(0), "a"));
  const auto wrong = x.value(global(0), "a");
  EXPECT_EQ(wrong.error().kind, ErrorKind::kInvalidWorker);
  EXPECT_EQ(wrong.error().details->worker, "a");
  EXPECT_THAT(wrong.error().message, HasSubstr("\"b\", \"c\""));
  EXPECT_EQ(x.workers(global(1)).error().kind, ErrorKind::kTensorUnavailableForStep);
}

TEST(Values, DeviceWorkersHaveTheirOwnNames) {
  const std::string kDevice = "/job:localhost/replica:0/task:0/device:GPU:0";
  TrialWorld world;
  world.write_collections({kDevice});
  world.write({.step = 0, .worker = kDevice});
  const Trial trial = must_open(world);
  EXPECT_THAT(trial.workers(), ElementsAre(kDevice));
  EXPECT_EQ(first_of(trial.tensor("a", global(0), kDevice)), 1);
  EXPECT_EQ(trial.last_complete_step(), 0);
}

struct Asked {
  const char* what;
  const char* tensor;
  ModeStep step;
  ErrorKind kind;
  ErrorCode code;
  const char* message;
};

TEST(Values, WhyOneIsNotThere) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .mode_step = train(0), .tensors = {{"x"}, {"Dense/Weight"}}});
  world.write({.step = 1, .mode_step = train(1), .tensors = {{"y"}, {"smdebug/reductions/l2/x", {5}}}});
  world.write({.step = 3, .mode_step = train(3), .tensors = {{"y"}}, .shapes = {{"z", "orig/z", {4, 5}}}});
  const Asked kAsked[] = {
      {"a name that was never saved", "nothing", global(0), ErrorKind::kTensorUnavailable, ErrorCode::kNotFound,
       "no tensor \"nothing\""},
      {"a name in other letters", "dense/weight", global(0), ErrorKind::kTensorUnavailable, ErrorCode::kNotFound,
       "did you mean \"Dense/Weight\"?"},
      {"a name with a slip", "Dense/Wieght", global(0), ErrorKind::kTensorUnavailable, ErrorCode::kNotFound,
       "did you mean \"Dense/Weight\"?"},
      {"the end of a name", "Weight", global(0), ErrorKind::kTensorUnavailable, ErrorCode::kNotFound,
       "did you mean \"Dense/Weight\"?"},
      {"a step without this tensor", "x", train(3), ErrorKind::kTensorUnavailableForStep, ErrorCode::kNotFound,
       "tensor \"x\" at TRAIN step 3: it was not saved"},
      {"a step that was passed over", "x", global(2), ErrorKind::kStepUnavailable, ErrorCode::kNotFound, "step 2"},
      {"a step of a mode that was passed over", "x", train(2), ErrorKind::kStepUnavailable, ErrorCode::kNotFound,
       "TRAIN step 2 is not available and will not be: it was passed over; the last known one is 3"},
      {"a step still to come", "x", train(9), ErrorKind::kStepNotYetAvailable, ErrorCode::kNotYet, "TRAIN step 9"},
      {"a mode that was never seen", "x", eval(0), ErrorKind::kStepNotYetAvailable, ErrorCode::kNotYet,
       "EVAL step 0 is not available yet; no step is known yet"},
      {"only reductions", "x", global(1), ErrorKind::kTensorUnavailableForStep, ErrorCode::kNotFound,
       "only reductions of it were saved"},
      {"only a shape", "z", global(3), ErrorKind::kTensorUnavailableForStep, ErrorCode::kNotFound, "only its shape"},
  };
  const Trial trial = must_open(world);
  for (const Asked& c : kAsked) {
    const auto value = trial.tensor(c.tensor, c.step);
    ASSERT_FALSE(value.ok()) << c.what;
    EXPECT_EQ(value.error().kind, c.kind) << c.what << ": " << value.error().message;
    EXPECT_EQ(value.error().code, c.code) << c.what;
    EXPECT_THAT(value.error().message, HasSubstr(c.message)) << c.what;
    ASSERT_NE(value.error().details, nullptr) << c.what;
    if (c.kind == ErrorKind::kTensorUnavailableForStep) {
      EXPECT_EQ(value.error().details->tensor, c.tensor) << c.what;
      EXPECT_EQ(value.error().details->step, c.step.number) << c.what;
      EXPECT_EQ(value.error().details->mode, c.step.mode) << c.what;
    }
  }
  EXPECT_TRUE(trial.tensor("x", global(1)).error().details->has_reductions);
  EXPECT_FALSE(trial.tensor("z", global(3)).error().details->has_reductions);
  EXPECT_EQ(trial.tensor("x")->shape(global(1)).error().kind, ErrorKind::kShapeUnavailableForStep);
}

TEST(Values, ReductionsAreFiledUnderTheirTensor) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0,
               .tensors = {{"smdebug/reductions/abs_max/w/x", {7}},
                           {"tornasole/reductions/l2/w/x", {8}},
                           {"scope/smdebug/reductions/median/w/x", {9}},
                           {"smdebug/reductions/frobnicate/w/x", {1}},
                           {"full", {1, -2, 3}}}});
  const Trial trial = must_open(world);
  EXPECT_THAT(*trial.tensor_names(), ElementsAre("full", "w/x"));
  const TrialTensor reduced = *trial.tensor("w/x");
  const auto stored = reduced.reduction_values(global(0));
  ASSERT_TRUE(stored.ok());
  EXPECT_EQ(stored->size(), 3U);
  EXPECT_EQ(*reduced.reduction_value(global(0), {ReductionKind::kMax, true}), 7);
  EXPECT_EQ(*reduced.reduction_value(global(0), {ReductionKind::kL2}), 8);
  EXPECT_EQ(*reduced.reduction_value(global(0), {ReductionKind::kMedian}), 9);
  const auto missing = reduced.reduction_value(global(0), {ReductionKind::kMean});
  EXPECT_EQ(missing.error().kind, ErrorKind::kTensorUnavailableForStep);
  EXPECT_EQ(missing.error().details->tensor, "w/x");
  const TrialTensor full = *trial.tensor("full");
  EXPECT_TRUE(full.reduction_values(global(0))->empty());
  EXPECT_EQ(*full.reduction_value(global(0), {ReductionKind::kSum, true}), 6);
  EXPECT_NEAR(*full.reduction_value(global(0), {ReductionKind::kL2}), std::sqrt(14), 1e-6);
}

TEST(Values, AShapeAndAValueOfOneNameAreBothKept) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .tensors = {{"x", {1, 2}}}, .shapes = {{"x", "graph/x:0", {2}}, {"s", "s", {3, 4}}}});
  const Trial trial = must_open(world);
  const TrialTensor x = *trial.tensor("x");
  EXPECT_EQ(first_of(x.value(global(0))), 1);
  EXPECT_EQ(*x.shape(global(0)), (Shape{2}));
  EXPECT_EQ(x.original_name(), "graph/x:0");
  EXPECT_EQ(trial.tensor("s")->original_name(), "s");
  EXPECT_EQ(trial.tensor("s")->shapes()->at(0), (Shape{3, 4}));
}

TEST(Values, OfOneNameTwiceInAFileTheLaterCounts) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0, .tensors = {{"x", {1}}, {"y", {2}}, {"x", {3}}}});
  EXPECT_EQ(first_of(must_open(world).tensor("x", global(0))), 3);
}

TEST(Values, AStepOfAModeWrittenTwiceIsTheLaterOneAndEachGlobalStepItsOwn) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 4, .mode_step = train(4), .tensors = {{"x", {1}}, {"only_before", {7}}}});
  world.write({.step = 9, .mode_step = train(4), .tensors = {{"x", {2}}}});
  const Trial trial = must_open(world);
  EXPECT_EQ(trial.global_step(train(4)), GlobalStep{4});
  EXPECT_EQ(first_of(trial.tensor("x", train(4))), 2);
  EXPECT_EQ(first_of(trial.tensor("only_before", train(4))), 7);
  EXPECT_EQ(first_of(trial.tensor("x", global(4))), 1);
  EXPECT_EQ(first_of(trial.tensor("x", global(9))), 2);
  EXPECT_EQ(numbers(trial.tensor("x")->steps(Mode::kTrain)), std::vector<std::int64_t>{4});
}

TEST(Values, AllStepsAtOnceWithWhatIsMissing) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  for (std::int64_t step = 0; step < 1200; ++step) {
    world.write({.step = step, .tensors = {{"other"}, {step % 7 == 3 ? "y" : "x", {static_cast<float>(step)}}}});
  }
  world.remove(format::event_path(10, "worker_0"));
  const Trial trial = must_open(world);
  std::vector<std::pair<ModeStep, Error>> missing;
  const auto values = trial.tensor("x")->values(Mode::kGlobal, {}, &missing);
  ASSERT_TRUE(values.ok());
  for (const auto& [step, value] : *values) EXPECT_EQ(value.values<float>()[0], static_cast<float>(step));
  std::size_t expected = 0;
  for (std::int64_t step = 0; step < 1200; ++step) expected += step % 7 != 3 && step != 10 ? 1U : 0U;
  EXPECT_EQ(values->size(), expected);
  // Step 10 is a 3 of seven, so nothing of x is lost with it.
  EXPECT_TRUE(missing.empty());
  (void)trial.tensor("other")->values(Mode::kGlobal, {}, &missing);
  ASSERT_EQ(missing.size(), 1U);
  EXPECT_EQ(missing[0].first, global(10));
  EXPECT_EQ(missing[0].second.details->reason, "missing file");
}

TEST(Values, KeptInMemoryWhenAsked) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write({.step = 0});
  const Trial caching = must_open(world, {.cache = true, .timeout_s = 0});
  const Trial plain = must_open(world);
  EXPECT_EQ(first_of(caching.tensor("a", global(0))), 1);
  EXPECT_EQ(first_of(plain.tensor("a", global(0))), 1);
  world.remove(format::event_path(0, "worker_0"));
  EXPECT_EQ(first_of(caching.tensor("a", global(0))), 1);
  EXPECT_FALSE(plain.tensor("a", global(0)).ok());
}

TEST(Values, CheckReadsEverything) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write_steps(0, 3, {"worker_0"});
  EXPECT_EQ(must_open(world, {.check = true, .timeout_s = 0}).damage_count(), 0);
  Bytes events = encode_files({.step = 2}).events;
  events[events.size() - 7] ^= 1;
  world.put(format::event_path(2, "worker_0"), events);
  const Trial skipped = must_open(world, {.check = true, .timeout_s = 0});
  ASSERT_EQ(skipped.damage().size(), 1U);
  EXPECT_EQ(skipped.damage()[0].path, format::event_path(2, "worker_0"));
  EXPECT_EQ(skipped.damage()[0].offset, 0U);
  const auto failed = world.open({.on_damage = OnDamage::kFail, .check = true, .timeout_s = 0});
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().details->reason, "damaged");
  EXPECT_THAT(failed.error().message, HasSubstr(format::event_path(2, "worker_0") + " at offset 0"));
}

TEST(Values, AFailingStoreIsAnErrorOfItsOwn) {
  TrialWorld world;
  world.write_collections({"worker_0"});
  world.write_steps(0, 99, {"worker_0"});
  const auto control = std::make_shared<store::FailureControl>(store::FailurePlan{.first = 0});
  TrialDependencies dependencies = world.dependencies();
  dependencies.store = std::make_unique<store::FailingStore>(world.store().share(), control);
  auto trial = open_trial({.path = "/x", .timeout_s = 0}, config::Environment(std::map<std::string, std::string>()),
                          std::move(dependencies));
  ASSERT_TRUE(trial.ok());
  control->set_plan({.call = store::Call::kRead, .is_lasting = true});
  EXPECT_EQ(trial->tensor("a", global(0)).error().code, ErrorCode::kIo);
  int errors = 0;
  ASSERT_TRUE(trial
                  ->sweep({},
                          [&](const SweptValue& value) {
                            errors += value.error != nullptr && value.error->code == ErrorCode::kIo ? 1 : 0;
                            return true;
                          })
                  .ok());
  EXPECT_EQ(errors, 100);
  // What could not be read is not lost: it is read by the next refresh that works.
  world.write_steps(100, 299, {"worker_0"});
  control->set_plan({.call = store::Call::kReadAll, .first = 100});
  EXPECT_EQ(trial->refresh().error().code, ErrorCode::kIo);
  EXPECT_GE(trial->steps(Mode::kGlobal, StepFilter::kIncludingIncomplete).size(), 290U);
  control->heal();
  ASSERT_TRUE(trial->refresh().ok());
  EXPECT_EQ(numbers(trial->steps()), range(0, 299));
}

TEST(Names, ByStepModePatternAndCollection) {
  TrialWorld world;
  const format::StoredCollection weights{.name = "weights",
                                         .include_regex = {"^(?!gradient).*weight"},
                                         .exclude_regex = {"frozen"},
                                         .tensor_names = {"extra", "absent"}};
  world.write_collections({"worker_0"}, {weights, {.name = "inputs", .include_regex = {"_input_"}}});
  world.write({.step = 0, .mode_step = train(0), .tensors = {{"a.weight"}, {"gradient/a.weight"}, {"frozen.weight"}}});
  world.write({.step = 1, .mode_step = eval(0), .tensors = {{"a.weight"}, {"extra"}, {"loss"}}});
  Trial trial = must_open(world);
  const std::pair<NameQuery, std::vector<std::string>> kQueries[] = {
      {{}, {"a.weight", "extra", "frozen.weight", "gradient/a.weight", "loss"}},
      {{.mode = Mode::kEval}, {"a.weight", "extra", "loss"}},
      {{.mode = Mode::kPredict}, {}},
      {{.step = global(0)}, {"a.weight", "frozen.weight", "gradient/a.weight"}},
      {{.step = eval(0)}, {"a.weight", "extra", "loss"}},
      {{.step = eval(7)}, {}},
      {{.regex = {"loss", "^gradient"}}, {"gradient/a.weight", "loss"}},
      {{.step = train(0), .regex = {"loss"}}, {}},
      {{.collection = "weights"}, {"a.weight", "extra"}},
      {{.step = global(0), .collection = "weights"}, {"a.weight"}},
      {{.collection = "unheard of"}, {}},
  };
  for (const auto& [query, names] : kQueries) {
    const auto found = trial.tensor_names(query);
    ASSERT_TRUE(found.ok());
    EXPECT_EQ(*found, names);
  }
  EXPECT_EQ(trial.tensor_names({.regex = {"a"}, .collection = "weights"}).error().code, ErrorCode::kInvalid);
  EXPECT_THAT(trial.tensor_names({.regex = {"("}}).error().message, HasSubstr("("));
  trial.collection("mine").tensor_names = {"loss", "a.weight"};
  EXPECT_THAT(*trial.tensor_names({.collection = "mine"}), ElementsAre("a.weight", "loss"));
}

TEST(Names, InputsLabelsAndPredictionsByTheirNumber) {
  TrialWorld world;
  world.write_collections({"worker_0"}, {{.name = "inputs", .include_regex = {"_input_"}}});
  world.write({.step = 0,
               .mode_step = eval(5),
               .tensors = {{"net_input_10", {10}},
                           {"net_input_9", {9}},
                           {"labels", {0}},
                           {"labels_2", {2}},
                           {"labels_11", {11}},
                           {"predictions_1", {1}}}});
  const Trial trial = must_open(world);
  const auto firsts = [](const Result<std::vector<Tensor>>& tensors) {
    std::vector<float> found;
    for (const Tensor& tensor : *tensors) found.push_back(tensor.values<float>()[0]);
    return found;
  };
  EXPECT_THAT(firsts(trial.inputs(eval(5))), ElementsAre(9, 10));
  EXPECT_THAT(firsts(trial.labels(eval(5))), ElementsAre(0, 2, 11));
  EXPECT_THAT(firsts(trial.predictions(global(0))), ElementsAre(1));
  EXPECT_TRUE(trial.inputs(eval(6))->empty());
}

TEST(Collections, AllWorkersFilesTogether) {
  TrialWorld world;
  const auto put = [&](const char* worker, std::int64_t workers, std::vector<format::StoredCollection> all) {
    world.put(format::collections_path(worker), format::encode_collections({std::move(all), workers}));
  };
  put("a", 2, {{.name = "w", .include_regex = {"^x"}, .tensor_names = {"p", "q"}, .save_histogram = false}});
  put("b", 3, {{.name = "w", .include_regex = {"^x", "^y"}, .tensor_names = {"q", "r"}}, {.name = "only_b"}});
  put("c", 3, {});
  const Trial trial = must_open(world);
  EXPECT_EQ(trial.num_workers(), 3);
  EXPECT_EQ(trial.collections().size(), 2U);
  const TrialCollection& merged = trial.collections().at("w");
  EXPECT_THAT(merged.include_regex, ElementsAre("^x", "^y"));
  EXPECT_THAT(merged.tensor_names, ElementsAre("p", "q", "r"));
  ASSERT_EQ(trial.damage().size(), 1U) << "the files disagree about the number of workers";
  EXPECT_THAT(trial.damage()[0].what, HasSubstr("3 workers"));
}

TEST(Collections, TheirConfigurationAsText) {
  TrialWorld world;
  format::StoredCollection stored{.name = "w"};
  stored.reductions = ReductionSpec{.reductions = {{ReductionKind::kMin}, {ReductionKind::kL2, true}}};
  stored.schedules.emplace();
  (*stored.schedules)[0] = format::StoredSchedule{.save_interval = 3, .save_steps = {1, 5}};
  world.write_collections({"a"}, {stored});
  const Trial trial = must_open(world);
  const TrialCollection& read = trial.collections().at("w");
  EXPECT_EQ(read.reduction_config,
            R"({"save_raw_tensor": true, "reductions": "min,abs_l2_norm", "save_shape": false})");
  EXPECT_EQ(read.save_config,
            R"({"TRAIN": {"save_interval": 3, "save_steps": [1, 5], "start_step": 0, "end_step": null}, )"
            R"("EVAL": null, "PREDICT": null, "GLOBAL": null})");
}

TEST(Sweep, InOrderWithEveryFilter) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  for (std::int64_t step = 0; step < 30; ++step) {
    for (const char* worker : {"b", "a"}) {
      const ModeStep at = step % 2 == 0 ? train(step) : eval(step);
      world.write(
          {.step = step,
           .worker = worker,
           .mode_step = at,
           .tensors = {{"z", {1}}, {"y", {2}}, {"smdebug/reductions/l2/y", {3}}, {"smdebug/reductions/min/y", {4}}}});
    }
  }
  const Trial trial = must_open(world);
  const auto sweep = [&](const SweepQuery& query) {
    std::vector<std::string> seen;
    const Status swept = trial.sweep(query, [&](const SweptValue& value) {
      seen.push_back(fmt::format("{}{}{}{}", value.global_step.number, value.worker, value.name,
                                 value.reduction ? reduction_name(*value.reduction) : ""));
      return true;
    });
    EXPECT_TRUE(swept.ok());
    return seen;
  };
  EXPECT_EQ(sweep({.reductions = true}).size(), 240U);
  EXPECT_THAT(sweep({.first_step = 3, .end_step = 5, .reductions = true}),
              ElementsAre("3az", "3ay", "3ayl2", "3aymin", "3bz", "3by", "3byl2", "3bymin", "4az", "4ay", "4ayl2",
                          "4aymin", "4bz", "4by", "4byl2", "4bymin"));
  EXPECT_THAT(sweep({.names = {"y"}, .mode = Mode::kEval, .end_step = 4, .worker = "b"}), ElementsAre("1by", "3by"));
  EXPECT_THAT(sweep({.end_step = 1, .values = false, .reductions = true, .reduction_kinds = {{ReductionKind::kL2}}}),
              ElementsAre("0ayl2", "0byl2"));
  EXPECT_EQ(trial.sweep({.names = {"x"}}, [](const SweptValue&) { return true; }).error().kind,
            ErrorKind::kTensorUnavailable);
  int calls = 0;
  ASSERT_TRUE(trial.sweep({}, [&](const SweptValue&) { return ++calls < 5; }).ok());
  EXPECT_EQ(calls, 5);
}

TEST(Sweep, ADigestIsMadeOfEachFullValueAndMayTakeItsPlace) {
  TrialWorld world;
  world.write_collections({"a"});
  constexpr std::int64_t kSteps = 300;  // several jobs of the reader
  for (std::int64_t step = 0; step < kSteps; ++step) {
    world.write({.step = step,
                 .worker = "a",
                 .mode_step = train(step),
                 // Names of many lengths: elements lie in the file wherever it happens.
                 .tensors = {{std::string(static_cast<std::size_t>(step % 17) + 1, 'n'), {1, static_cast<float>(step)}},
                             {"kept", {static_cast<float>(-step)}},
                             {"smdebug/reductions/l2/kept", {7}}}});
  }
  const Trial trial = must_open(world);
  const SweepQuery query{
      .reductions = true,
      .digest = [](std::string_view name, const TensorView& value, bool* keep) -> std::shared_ptr<void> {
        const auto* elements = reinterpret_cast<const float*>(value.data());
        EXPECT_EQ(reinterpret_cast<std::uintptr_t>(elements) % alignof(float), 0U);
        *keep = name == "kept";
        return std::make_shared<float>(elements[value.element_count() - 1]);
      }};
  std::int64_t digests = 0;
  std::int64_t reductions = 0;
  const Status swept = trial.sweep(query, [&](const SweptValue& value) {
    const auto step = static_cast<float>(value.global_step.number);
    EXPECT_EQ(value.error, nullptr);
    if (value.reduction) {
      ++reductions;
      EXPECT_EQ(value.digest, nullptr);
      EXPECT_NE(value.value, nullptr);
      return true;
    }
    ++digests;
    EXPECT_EQ(*std::static_pointer_cast<float>(value.digest), value.name == "kept" ? -step : step);
    EXPECT_EQ(value.value != nullptr, value.name == "kept");
    EXPECT_EQ(value.tensor != nullptr, value.name == "kept");
    return true;
  });
  EXPECT_TRUE(swept.ok());
  EXPECT_EQ(digests, 2 * kSteps);
  EXPECT_EQ(reductions, kSteps);
}

TEST(Reading, AListOfValuesAnswersAsEachOfThemAlone) {
  TrialWorld world;
  world.write_collections({"a", "b"});
  for (std::int64_t step = 0; step < 40; ++step) {
    for (const char* worker : {"a", "b"}) {
      const float at = static_cast<float>(step) + (worker[0] == 'b' ? 0.5F : 0.0F);
      world.write({.step = step,
                   .worker = worker,
                   .mode_step = train(step * 2),
                   .tensors = {{"z", {at}}, {"y", {-at}}, {"smdebug/reductions/l2/r", {at + 100}}}});
    }
  }
  ASSERT_TRUE(world.store().remove(format::event_path(7, "b")).ok());
  const Trial trial = must_open(world);
  const Reduction l2{ReductionKind::kL2};
  std::vector<ValueQuery> queries = {{.name = "nobody", .step = global(0)},
                                     {.name = "z", .step = global(99)},
                                     {.name = "z", .step = global(3), .worker = "c"},
                                     {.name = "r", .step = global(3)},
                                     {.name = "z", .step = global(3), .reduction = l2},
                                     {.name = "z", .step = global(7), .worker = "b"}};
  for (std::int64_t step = 39; step >= 0; --step) {
    queries.push_back({.name = "z", .step = global(step), .worker = "b"});
    queries.push_back({.name = "y", .step = train(step * 2)});
    queries.push_back({.name = "r", .step = global(step), .worker = "b", .reduction = l2});
    queries.push_back({.name = "z", .step = global(step), .worker = "b"});  // once more
  }
  std::vector<int> answers(queries.size());
  const Status read = trial.read(queries, [&](std::size_t place, const Result<Tensor>& value) {
    ++answers[place];
    const ValueQuery& query = queries[place];
    const auto tensor = trial.tensor(query.name);
    const auto alone = !tensor.ok() ? Result<Tensor>(tensor.error()) : [&]() -> Result<Tensor> {
      if (!query.reduction) return tensor->value(query.step, query.worker);
      auto stored = tensor->reduction_values(query.step, query.worker);
      if (!stored.ok()) return stored.error();
      if (!stored->contains(l2)) return Error{.code = ErrorCode::kNotFound, .message = "its l2 was not saved"};
      return stored->at(l2);
    }();
    EXPECT_EQ(value.ok(), alone.ok()) << place;
    if (value.ok() && alone.ok()) {
      EXPECT_EQ(first_of(value), first_of(alone)) << place;
    } else if (!value.ok() && !alone.ok()) {
      EXPECT_THAT(value.error().message, HasSubstr(alone.error().message)) << place;
      EXPECT_EQ(value.error().code, alone.error().code) << place;
    }
    return true;
  });
  ASSERT_TRUE(read.ok());
  EXPECT_THAT(answers, testing::Each(1));
  int calls = 0;
  ASSERT_TRUE(trial.read(queries, [&](std::size_t, const Result<Tensor>&) { return ++calls < 9; }).ok());
  EXPECT_EQ(calls, 9);
}

TEST(Reading, WhichReductionsAreStoredIsKnownWithoutReading) {
  TrialWorld world;
  world.write_collections({"a"});
  world.write({.step = 0,
               .worker = "a",
               .tensors = {{"smdebug/reductions/abs_min/x", {1}}, {"smdebug/reductions/l2/x", {2}}, {"y", {3}}}});
  ASSERT_TRUE(world.store().remove(format::event_path(0, "a")).ok());
  const Trial trial = must_open(world);
  EXPECT_THAT(*trial.tensor("x")->stored_reductions(global(0)),
              testing::UnorderedElementsAre(Reduction{ReductionKind::kMin, true}, Reduction{ReductionKind::kL2}));
  EXPECT_THAT(*trial.tensor("y")->stored_reductions(global(0)), ElementsAre());
  EXPECT_FALSE(trial.tensor("x")->stored_reductions(global(1)).ok());
}

}  // namespace
}  // namespace tornasole::trial
