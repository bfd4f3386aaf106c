// Every trial the original debugger wrote, opened so that damage fails, against what is recorded beside it.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <sstream>

#include "base/json.h"
#include "golden_hash.h"
#include "support/tests_dir.h"
#include "tornasole/trial.h"

namespace tornasole::trial {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kFixtures = 45;

fs::path golden_root() { return fs::path(tests_dir()) / "golden" / "smdebug"; }

std::vector<fs::path> fixtures() {
  std::vector<fs::path> found;
  for (const auto& entry : fs::recursive_directory_iterator(golden_root())) {
    if (entry.path().filename() == "expected.json") found.push_back(entry.path().parent_path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

Json read_json(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream text;
  text << in.rdbuf();
  auto json = parse_json(text.str(), {.max_bytes = std::size_t{256} << 20U});
  EXPECT_TRUE(json.ok()) << path << ": " << (json.ok() ? "" : json.error().message);
  return json.ok() ? std::move(*json) : Json();
}

Mode mode_of(std::string_view name) {
  for (const Mode mode : kAllModes) {
    if (mode_name(mode) == name) return mode;
  }
  ADD_FAILURE() << "no mode " << name;
  return Mode::kGlobal;
}

std::vector<std::int64_t> integers(const Json& list) {
  std::vector<std::int64_t> numbers;
  for (const Json& item : *list.as_array()) numbers.push_back(*item.as_int());
  return numbers;
}
std::vector<std::string> texts(const Json& list) {
  std::vector<std::string> found;
  for (const Json& item : *list.as_array()) found.push_back(*item.as_string());
  return found;
}
std::vector<std::int64_t> numbers_of(const std::vector<ModeStep>& steps) {
  std::vector<std::int64_t> numbers;
  for (const ModeStep step : steps) numbers.push_back(step.number);
  return numbers;
}

std::string hash_of(const Tensor& tensor) {
  Sha256 hash;
  for (const std::string& text : tensor.texts()) hash.update(text + '\0');
  hash.update(tensor.bytes());
  return hash.hex();
}

bool is_ok(const Json* value) {
  const Json* status = value == nullptr ? nullptr : value->find("status");
  return status != nullptr && *status->as_string() == "ok";
}

// What one fixture holds, counted, so that a test which looks at nothing is noticed.
struct Checked {
  int values = 0;
  int reductions = 0;
  int shapes = 0;
  int unavailable = 0;
};

class Comparison {
 public:
  Comparison(const Trial& trial, const Json& expected, std::string name, Checked* checked)
      : trial_(trial), expected_(expected), name_(std::move(name)), checked_(*checked) {}

  void compare_all() {
    SCOPED_TRACE(name_);
    compare_trial(*expected_.find("trial"));
    compare_collections(*expected_.find("collections"));
    for (const Json& tensor : *expected_.find("tensors")->as_array()) compare_tensor(tensor);
  }

 private:
  void compare_steps(const Json& steps, StepFilter filter) {
    for (const Json::Member& mode : *steps.as_object()) {
      EXPECT_EQ(numbers_of(trial_.steps(mode_of(mode.key), filter)), integers(mode.value)) << mode.key;
    }
  }

  void compare_trial(const Json& trial) {
    EXPECT_EQ(trial_.loaded_all_steps(), *trial.find("training_ended")->as_bool());
    EXPECT_EQ(trial_.num_workers(), *trial.find("num_workers")->as_int());
    EXPECT_EQ(trial_.workers(), texts(*trial.find("workers")));
    std::vector<std::string> modes;
    for (const Mode mode : trial_.modes()) modes.emplace_back(mode_name(mode));
    EXPECT_THAT(modes, testing::UnorderedElementsAreArray(texts(*trial.find("modes"))));
    compare_steps(*trial.find("steps"), StepFilter::kComplete);
    compare_steps(*trial.find("steps_including_incomplete"), StepFilter::kIncludingIncomplete);
    EXPECT_EQ(trial_.last_complete_step(), *trial.find("last_complete_step")->as_int());
    for (const Json& row : *trial.find("global_step_to_mode_step")->as_array()) {
      const Json::Array& parts = *row.as_array();
      const GlobalStep global{*parts[0].as_int()};
      const ModeStep step{mode_of(*parts[1].as_string()), *parts[2].as_int()};
      EXPECT_EQ(trial_.mode_step(global), step);
      EXPECT_EQ(trial_.global_step(step), global);
    }
    compare_names(trial);
  }

  void compare_names(const Json& trial) {
    EXPECT_EQ(*trial_.tensor_names(), texts(*trial.find("tensor_names")));
    for (const Json::Member& mode : *trial.find("tensor_names_by_mode")->as_object()) {
      EXPECT_EQ(*trial_.tensor_names({.mode = mode_of(mode.key)}), texts(mode.value)) << mode.key;
    }
    for (const Json::Member& step : *trial.find("tensor_names_by_global_step")->as_object()) {
      const ModeStep at{Mode::kGlobal, std::stoll(step.key)};
      EXPECT_EQ(*trial_.tensor_names({.step = at}), texts(step.value)) << step.key;
    }
  }

  void compare_collections(const Json& collections) {
    for (const Json::Member& member : *collections.as_object()) {
      ASSERT_TRUE(trial_.collections().contains(member.key)) << member.key;
      const auto names = trial_.tensor_names({.collection = member.key});
      ASSERT_TRUE(names.ok()) << names.error().message;
      EXPECT_EQ(*names, texts(*member.value.find("saved_tensors"))) << member.key;
      const TrialCollection& collection = trial_.collections().at(member.key);
      EXPECT_EQ(collection.include_regex, texts(*member.value.find("include_regex")));
      EXPECT_EQ(collection.save_histogram, *member.value.find("save_histogram")->as_bool());
    }
  }

  void compare_tensor(const Json& expected) {
    const std::string& name = *expected.find("name")->as_string();
    SCOPED_TRACE(name);
    const auto tensor = trial_.tensor(name);
    ASSERT_TRUE(tensor.ok()) << tensor.error().message;
    const Json& original = *expected.find("original_name");
    EXPECT_EQ(tensor->original_name(), original.is_null() ? "" : *original.as_string());
    for (const Json::Member& mode : *expected.find("steps")->as_object()) {
      EXPECT_EQ(numbers_of(tensor->steps(mode_of(mode.key), StepFilter::kIncludingIncomplete)), integers(mode.value));
    }
    for (const Json& entry : *expected.find("entries")->as_array()) compare_entry(*tensor, entry);
  }

  void compare_entry(const TrialTensor& tensor, const Json& entry) {
    const std::string& worker = *entry.find("worker")->as_string();
    const ModeStep global{Mode::kGlobal, *entry.find("global_step")->as_int()};
    const ModeStep step{mode_of(*entry.find("mode")->as_string()), *entry.find("mode_step")->as_int()};
    SCOPED_TRACE(testing::Message() << "step " << global.number << " of " << worker);
    const Json* value = entry.find("true_value") != nullptr ? entry.find("true_value") : entry.find("value");
    for (const ModeStep at : {global, step}) compare_value(tensor.value(at, worker), value);
    compare_shape(tensor.shape(step, worker), entry);
    const auto reductions = tensor.reduction_values(step, worker);
    ASSERT_TRUE(reductions.ok()) << reductions.error().message;
    const Json::Object& stored = *entry.find("reductions")->as_object();
    EXPECT_EQ(reductions->size(), stored.size());
    for (const Json::Member& member : stored) {
      const auto reduction = parse_reduction(member.key);
      ASSERT_TRUE(reduction) << member.key;
      compare_value(tensor.reduction_tensor(step, *reduction, worker), &member.value);
      ++checked_.reductions;
    }
  }

  void compare_value(const Result<Tensor>& value, const Json* expected) {
    if (!is_ok(expected)) {
      EXPECT_FALSE(value.ok());
      if (value.ok()) return;
      EXPECT_EQ(value.error().kind, ErrorKind::kTensorUnavailableForStep) << value.error().message;
      EXPECT_FALSE(value.error().details->reason.empty());
      ++checked_.unavailable;
      return;
    }
    ASSERT_TRUE(value.ok()) << value.error().message;
    EXPECT_EQ(dtype_name(value->dtype()), *expected->find("dtype")->as_string());
    const auto dims = value->shape().dims();
    EXPECT_EQ(std::vector(dims.begin(), dims.end()), integers(*expected->find("shape")));
    EXPECT_EQ(hash_of(*value), *expected->find("sha256")->as_string());
    ++checked_.values;
  }

  void compare_shape(const Result<Shape>& shape, const Json& entry) {
    const Json* expected = entry.find("true_shape") != nullptr ? entry.find("true_shape") : entry.find("shape");
    if (expected == nullptr || expected->as_array() == nullptr) return;
    ASSERT_TRUE(shape.ok()) << shape.error().message;
    const auto dims = shape->dims();
    EXPECT_EQ(std::vector(dims.begin(), dims.end()), integers(*expected));
    ++checked_.shapes;
  }

  const Trial& trial_;
  const Json& expected_;
  const std::string name_;
  Checked& checked_;
};

TrialOptions options_for(const fs::path& fixture) {
  return {.path = (fixture / "trial").string(), .on_damage = OnDamage::kFail, .timeout_s = 0, .end_delay_s = 0};
}

TEST(GoldenTrials, EveryOneIsReadAsRecorded) {
  const auto all = fixtures();
  EXPECT_EQ(all.size(), kFixtures);
  Checked checked;
  int refused = 0;
  for (const fs::path& fixture : all) {
    const Json expected = read_json(fixture / "expected.json");
    const std::string name = fs::relative(fixture, golden_root()).string();
    auto trial = Trial::open(options_for(fixture));
    if (expected.find("open") != nullptr) {
      EXPECT_FALSE(trial.ok()) << name;
      ++refused;
      continue;
    }
    ASSERT_TRUE(trial.ok()) << name << ": " << trial.error().message;
    EXPECT_TRUE(trial->damage().empty()) << name;
    Comparison(*trial, expected, name, &checked).compare_all();
  }
  EXPECT_GT(refused, 8);
  EXPECT_GT(checked.values, 1000);
  EXPECT_GT(checked.reductions, 100);
  EXPECT_GT(checked.shapes, 500);
  EXPECT_GT(checked.unavailable, 5);
}

TEST(GoldenTrials, ARefusedOneNamesTheFileAndOpensWhenDamageIsSkipped) {
  const std::map<std::string, std::pair<ErrorKind, std::string>> kRefused = {
      {"collections_missing", {ErrorKind::kMissingCollectionFiles, "0 of 1"}},
      {"collections_too_few", {ErrorKind::kMissingCollectionFiles, "1 of 2"}},
      {"collections_unknown_top_key", {ErrorKind::kIndexReader, "worker_0_collections.json"}},
      {"index_bad_mode", {ErrorKind::kIndexReader, "000000000001_worker_0.json"}},
      {"index_cut", {ErrorKind::kIndexReader, "000000000002_worker_0.json"}},
      {"index_foreign_json", {ErrorKind::kIndexReader, "notes.json"}},
      {"index_meta_empty", {ErrorKind::kIndexReader, "000000000001_worker_0.json"}},
      {"index_meta_missing", {ErrorKind::kIndexReader, "000000000001_worker_0.json"}},
      {"index_payloads_missing", {ErrorKind::kIndexReader, "000000000001_worker_0.json"}},
      {"index_two_documents", {ErrorKind::kIndexReader, "000000000001_worker_0.json"}},
      {"index_zero_bytes", {ErrorKind::kIndexReader, "000000000001_worker_0.json"}},
  };
  for (const auto& [name, expected] : kRefused) {
    TrialOptions options = options_for(golden_root() / "corrupt" / name);
    const auto refused = Trial::open(options);
    ASSERT_FALSE(refused.ok()) << name;
    EXPECT_EQ(refused.error().kind, expected.first) << name << ": " << refused.error().message;
    EXPECT_THAT(refused.error().message, testing::HasSubstr(expected.second)) << name;
    options.on_damage = OnDamage::kSkip;
    const auto opened = Trial::open(options);
    ASSERT_TRUE(opened.ok()) << name << ": " << opened.error().message;
    EXPECT_EQ(opened->damage_count(), 1) << name;
    EXPECT_THAT(numbers_of(opened->steps()), testing::SizeIs(testing::Ge(2U))) << name;
    EXPECT_EQ(opened->workers(), std::vector<std::string>{"worker_0"}) << name;
  }
}

TEST(GoldenTrials, SweepsGiveEachValueThatQueriesGive) {
  for (const fs::path& fixture : fixtures()) {
    TrialOptions options = options_for(fixture);
    options.on_damage = OnDamage::kSkip;
    const auto trial = Trial::open(options);
    ASSERT_TRUE(trial.ok()) << fixture << ": " << trial.error().message;
    int swept_count = 0;
    const Status swept = trial->sweep({.reductions = true}, [&](const SweptValue& swept_value) {
      ++swept_count;
      const auto tensor = trial->tensor(swept_value.name);
      EXPECT_TRUE(tensor.ok());
      const ModeStep at{Mode::kGlobal, swept_value.global_step.number};
      const auto value = swept_value.reduction
                             ? tensor->reduction_tensor(at, *swept_value.reduction, swept_value.worker)
                             : tensor->value(at, swept_value.worker);
      EXPECT_EQ(value.ok(), swept_value.value != nullptr) << fixture << swept_value.name;
      EXPECT_EQ(value.ok(), swept_value.error == nullptr);
      if (value.ok()) {
        EXPECT_EQ(*value, Tensor(*swept_value.value)) << fixture << swept_value.name;
      }
      return true;
    });
    EXPECT_TRUE(swept.ok());
    EXPECT_GT(swept_count, 0) << fixture;
  }
}

}  // namespace
}  // namespace tornasole::trial
