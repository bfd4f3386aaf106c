// What TensorBoard gets of a run, beside the files that the reference wrote of the same values.

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <limits>

#include "base/process.h"
#include "capture/open_hook.h"
#include "capture/written_trial.h"
#include "reduce/reduce.h"
#include "store/local/local_store.h"
#include "store/memory/memory_store.h"
#include "support/faulty_store.h"
#include "support/tests_dir.h"
#include "tensorboard/summary_decode.h"
#include "tensorboard/summary_file.h"

namespace tornasole::capture {
namespace {

using tensorboard::SummaryEvent;
using tensorboard::SummaryHistogram;
using tensorboard::SummaryValue;

struct Point {
  std::string directory;
  std::int64_t step = 0;
  std::string tag;
  bool operator<(const Point& other) const {
    return std::tie(directory, step, tag) < std::tie(other.directory, other.step, other.tag);
  }
};
using Points = std::map<Point, SummaryValue>;

// Everything in the files below a directory, each read to its end.
Points read_points(store::Store& store, const std::string& root, bool has_version) {
  Points points;
  const auto entries = store.list(root, /*recursive=*/true);
  EXPECT_TRUE(entries.ok());
  for (const store::Entry& entry : *entries) {
    const std::string rest = entry.path.substr(root.empty() ? 0 : root.size() + 1);
    const auto bytes = store.read_all(entry.path, kReadLimit);
    bool is_first = true;
    for (std::size_t at = 0; at < bytes->size();) {
      const auto record = format::decode_record(ByteView(*bytes).substr(at), at);
      EXPECT_TRUE(record.ok() && record->is_verified) << entry.path;
      if (!record.ok()) break;
      at += record->payload.size() + format::kRecordFrameBytes;
      const auto event = tensorboard::decode_summary_event(record->payload);
      EXPECT_TRUE(event.ok());
      EXPECT_EQ(event->file_version, is_first && has_version ? "brain.Event:2" : "");
      if (event->file_version.empty()) {
        EXPECT_EQ(rest.substr(rest.find('/') + 1, 12), fmt::format("{:012}", event->step));
      }
      is_first = false;
      for (const SummaryValue& value : event->values) {
        EXPECT_TRUE(points.emplace(Point{rest.substr(0, rest.find('/')), event->step, value.tag}, value).second)
            << value.tag << " is there twice";
      }
    }
  }
  return points;
}

// Equal to the bit, apart from sums, whose last bits depend on the order.
void expect_equal(const Points& ours, const Points& reference) {
  std::vector<std::string> our_tags;
  std::vector<std::string> their_tags;
  for (const auto& [point, value] : ours)
    our_tags.push_back(fmt::format("{} {} {}", point.directory, point.step, point.tag));
  for (const auto& [point, value] : reference) {
    their_tags.push_back(fmt::format("{} {} {}", point.directory, point.step, point.tag));
  }
  ASSERT_EQ(our_tags, their_tags);
  const auto near = [](double a, double b) {
    return (std::isnan(a) && std::isnan(b)) || a == b ||
           std::fabs(a - b) <= 1e-12 * std::max(std::fabs(a), std::fabs(b));
  };
  for (const auto& [point, value] : reference) {
    const SummaryValue& own = ours.at(point);
    ASSERT_EQ(own.simple_value.has_value(), value.simple_value.has_value()) << point.tag;
    if (value.simple_value) {
      EXPECT_EQ(std::bit_cast<std::uint32_t>(*own.simple_value), std::bit_cast<std::uint32_t>(*value.simple_value));
      continue;
    }
    ASSERT_TRUE(own.histogram && value.histogram) << point.tag;
    const SummaryHistogram& a = *own.histogram;
    const SummaryHistogram& b = *value.histogram;
    EXPECT_EQ(a.bucket_limit, b.bucket_limit) << point.tag;
    EXPECT_EQ(a.bucket, b.bucket) << point.tag;
    EXPECT_EQ(a.num, b.num) << point.tag;
    EXPECT_TRUE(near(a.min, b.min) && near(a.max, b.max)) << point.tag;
    EXPECT_TRUE(near(a.sum, b.sum) && near(a.sum_squares, b.sum_squares))
        << point.tag << ": " << a.sum << " " << b.sum << " " << a.sum_squares << " " << b.sum_squares;
  }
}

HookOptions quiet(std::string tensorboard_dir = {}) {
  HookOptions options{.out_dir = "/nowhere/run",
                      .export_tensorboard = true,
                      .tensorboard_dir = std::move(tensorboard_dir),
                      .save_config = {.save_interval = 1}};
  options.log = nullptr;
  return options;
}

class Goldens : public ::testing::TestWithParam<const char*> {};

TEST_P(Goldens, TheSameValuesGiveTheSameSummaries) {
  const std::string root = fmt::format("{}/golden/smdebug/{}/trial", tests_dir(), GetParam());
  auto golden = store::open_local_store(root, {.read_only = true});
  ASSERT_TRUE(golden.ok());
  const auto text = (*golden)->read_all(format::collections_path("worker_0"), kReadLimit);
  const auto stored = format::decode_collections(*text);
  ASSERT_TRUE(stored.ok());

  store::MemoryStore store;
  auto hook = open_hook(quiet(), {.store = store.share()});
  ASSERT_TRUE(hook.ok());
  for (const format::StoredCollection& collection : stored->collections) {
    // What was given to save_tensor: the reference stores it raw and does nothing else with it.
    if (collection.include_regex.empty() && collection.name == "default") continue;
    if (collection.include_regex.empty() && collection.tensor_names.empty()) continue;
    ASSERT_TRUE(hook->set_collection({.name = collection.name,
                                      .include_regex = collection.include_regex,
                                      .tensor_names = {collection.tensor_names.begin(), collection.tensor_names.end()},
                                      .save_histogram = collection.save_histogram})
                    .ok());
    hook->include_collection(collection.name);
  }
  const auto entries = (*golden)->list("index", true);
  for (const store::Entry& entry : *entries) {
    const auto index = format::decode_index(*(*golden)->read_all(entry.path, kReadLimit));
    ASSERT_TRUE(index.ok());
    auto step = hook->begin_step(index->mode, GlobalStep{format::parse_step_file(entry.path, ".json")->step});
    for (const format::IndexEntry& tensor : index->tensors) {
      const auto bytes = (*golden)->read(index->event_file, tensor.offset, tensor.length);
      const Tensor value = format::decode_event(format::decode_record(*bytes, 0)->payload)->to_tensor();
      if (tensor.name.starts_with("scalar/")) {
        hook->save_scalar(tensor.name.substr(7), reduce::mean_of({value.dtype(), value.bytes().data(), value.shape()}));
      } else {
        step.save(tensor.name, TensorView(value.dtype(), value.bytes().data(), value.shape()));
      }
    }
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_TRUE(hook->report().dropped_values.empty());
  expect_equal(read_points(store, "tensorboard", true), read_points(**golden, "tensorboard", false));
}
INSTANTIATE_TEST_SUITE_P(Summaries, Goldens, ::testing::Values("tensorboard_numpy", "tensorboard_pytorch"),
                         [](const auto& golden) { return std::string(golden.param); });

std::vector<float> ramp(std::size_t count) {
  std::vector<float> values(count);
  for (std::size_t i = 0; i < count; ++i) values[i] = static_cast<float>(i % 1000) - 400.5F;
  return values;
}

// The summaries of one tensor in a collection of the given form.
Points summaries_of(const std::vector<float>& values, const ReductionConfig& form, HookOptions options) {
  store::MemoryStore store;
  auto hook = open_hook(std::move(options), {.store = store.share()});
  EXPECT_TRUE(hook.ok());
  EXPECT_TRUE(hook->set_collection({.name = "mine", .include_regex = {"x"}, .reduction_config = form}).ok());
  hook->include_collection("mine");
  hook->begin_step(Mode::kTrain).save("x", values);
  EXPECT_TRUE(hook->close().ok());
  EXPECT_TRUE(hook->report().dropped_values.empty());
  return read_points(store, "tensorboard", true);
}

TEST(Summaries, ATensorHasTheSameHistogramWhateverIsStoredOfIt) {
  const ReductionConfig reduced{.norms = {"l2"}};
  for (const std::size_t count : {std::size_t{5}, std::size_t{100'000}, std::size_t{3'000'000}}) {
    const std::vector<float> values = ramp(count);
    const Points raw = summaries_of(values, {}, quiet());
    ASSERT_EQ(raw.size(), 1U);
    EXPECT_EQ(raw.begin()->first.tag, "mine/x");
    EXPECT_EQ(raw.begin()->second.histogram->num, static_cast<double>(count));
    expect_equal(summaries_of(values, reduced, quiet()), raw);
    HookOptions small = quiet();  // larger than the queue: in pieces
    small.queue_bytes = 4 << 20;
    expect_equal(summaries_of(values, {}, small), raw);
    expect_equal(summaries_of(values, reduced, small), raw);
  }
}

TEST(Summaries, WhatIsSentForTensorBoardAloneIsNotStored) {
  store::MemoryStore store;
  auto hook = open_hook(quiet(), {.store = store.share()});
  ASSERT_TRUE(hook.ok());
  const ReductionConfig form{.norms = {"l2"}};
  ASSERT_TRUE(hook->set_collection({.name = "mine", .include_regex = {"x"}, .reduction_config = form}).ok());
  hook->include_collection("mine");
  hook->begin_step(Mode::kTrain).save("x", ramp(50'000));
  ASSERT_TRUE(hook->close().ok());
  const auto steps = read_steps(store);
  EXPECT_EQ(steps.at(0).order, std::vector<std::string>{"smdebug/reductions/l2/x"});
}

TEST(Summaries, WithoutOrderOrBucketThereIsNoHistogramAndNoLoss) {
  store::MemoryStore store;
  HookOptions options = quiet();
  options.save_all = true;
  auto hook = open_hook(std::move(options), {.store = store.share()});
  ASSERT_TRUE(hook.ok());
  {
    auto step = hook->begin_step(Mode::kTrain);
    const std::vector<std::string_view> texts = {"a"};
    const std::byte flags[2] = {std::byte{1}, std::byte{0}};
    const double complex[2] = {1, 2};
    step.save("texts", TensorView::strings(texts));
    step.save("flags", TensorView(DType::kBool, flags, Shape{2}));
    step.save("complex", TensorView(DType::kComplex128, reinterpret_cast<const std::byte*>(complex), Shape{1}));
    step.save("empty", std::vector<float>{});
    step.save("nan", std::vector<float>(3, std::nanf("")));
    step.save("infinite", std::vector<float>(3, std::numeric_limits<float>::infinity()));
  }
  ASSERT_TRUE(hook->close().ok());
  EXPECT_TRUE(hook->report().dropped_values.empty());
  EXPECT_TRUE(read_points(store, "tensorboard", true).empty());
  EXPECT_EQ(step_numbers(store), std::vector<std::int64_t>{0});
}

TEST(Summaries, GoWhereTheyAreToldWithTheProcessInTheirName) {
  const auto root = std::filesystem::temp_directory_path() / fmt::format("summaries-{}", this_process().pid);
  store::MemoryStore store;
  HookOptions options = quiet((root / "boards").string());
  options.save_all = true;
  {
    auto hook = open_hook(std::move(options), {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    EXPECT_FALSE(std::filesystem::exists(root)) << "nothing is touched before there is a summary";
    hook->begin_step(Mode::kEval).save("x", ramp(5));
  }
  auto files = store::open_local_store((root / "boards").string(), {.read_only = true});
  const auto entries = (*files)->list("", true);
  ASSERT_EQ(entries->size(), 1U);
  EXPECT_TRUE(entries->at(0).path.starts_with(fmt::format("EVAL/000000000000_{}_", this_process().pid)));
  EXPECT_EQ(read_points(**files, "", true).size(), 1U);
  EXPECT_TRUE(store.list("tensorboard", true)->empty());
  std::filesystem::remove_all(root);
}

TEST(Summaries, APlaceThatCannotBeWrittenToCostsNoStep) {
  const auto root = std::filesystem::temp_directory_path() / fmt::format("summaries-{}", this_process().pid);
  std::ofstream(root) << "a file where a directory is wanted";
  store::MemoryStore store;
  HookOptions options = quiet((root / "boards").string());
  options.save_all = true;
  auto hook = open_hook(std::move(options), {.store = store.share()});
  ASSERT_TRUE(hook.ok()) << hook.error().message;
  for (int i = 0; i < 7; ++i) hook->begin_step(Mode::kTrain).save("x", ramp(5));
  hook->close().ok();
  const CaptureReport report = hook->report();
  EXPECT_EQ(report.committed_steps, 7);
  EXPECT_EQ(report.dropped_values.at("tensorboard"), 7);
  ASSERT_EQ(report.errors.size(), 1U);
  EXPECT_NE(report.errors[0].find("boards"), std::string::npos) << report.errors[0];
  EXPECT_EQ(read_steps(store).size(), 7U);
  std::filesystem::remove(root);
}

TEST(Summaries, AStepThatIsLostHasNone) {
  store::MemoryStore store;
  auto wrapped = store::wrap_store("fail:1@append", store.share());
  ASSERT_TRUE(wrapped.ok());
  HookOptions options = quiet();
  options.save_all = true;
  auto hook = open_hook(std::move(options), {.store = std::move(*wrapped)});
  ASSERT_TRUE(hook.ok());
  for (int i = 0; i < 6; ++i) hook->begin_step(Mode::kTrain).save("x", ramp(5));
  hook->close().ok();
  std::vector<std::int64_t> shown;
  for (const auto& [point, value] : read_points(store, "tensorboard", true)) shown.push_back(point.step);
  const CaptureReport report = hook->report();
  const auto lost = report.dropped_values.contains("tensorboard") ? report.dropped_values.at("tensorboard") : 0;
  EXPECT_EQ(static_cast<std::int64_t>(shown.size()) + lost, report.committed_steps);
  for (const std::int64_t step : shown) EXPECT_TRUE(read_steps(store).contains(step));
}

TEST(Summaries, GraphsAndReadySummariesGoIntoTheNextFile) {
  store::MemoryStore store;
  HookOptions options = quiet();
  options.save_all = true;
  const std::string summary("\x0a\x05\x0a\x03old", 7);  // one value, with the tag "old"
  {
    auto hook = open_hook(std::move(options), {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    hook->save_graph("a graph");
    hook->begin_step(Mode::kTrain).save("x", ramp(5));
    hook->begin_step(Mode::kTrain).save("x", ramp(5));
    hook->save_summary(summary);
  }
  std::vector<std::string> found;
  const auto entries = store.list("tensorboard", true);
  for (const store::Entry& entry : *entries) {
    const auto rest = tensorboard::read_file(store, entry.path, [&](const SummaryEvent& event) {
      if (!event.graph_def.empty()) found.push_back(std::string(event.graph_def));
      for (const SummaryValue& value : event.values) found.push_back(fmt::format("{} {}", event.step, value.tag));
      return Status();
    });
    EXPECT_TRUE(rest.ok() && *rest == 0) << entry.path;
  }
  std::ranges::sort(found);
  EXPECT_EQ(found, (std::vector<std::string>{"0 all/x", "1 all/x", "1 old", "a graph"}));
}

TEST(Summaries, WithoutTensorBoardThereIsNothingOfIt) {
  store::MemoryStore store;
  HookOptions options{.out_dir = "/nowhere/run", .save_config = {.save_interval = 1}, .save_all = true};
  {
    auto hook = open_hook(std::move(options), {.store = store.share()});
    ASSERT_TRUE(hook.ok());
    hook->begin_step(Mode::kTrain).save("x", ramp(5));
    hook->save_scalar("s", 1);
    hook->save_graph("a graph");
  }
  EXPECT_TRUE(store.list("tensorboard", true)->empty());
}

}  // namespace
}  // namespace tornasole::capture
