#include "format/paths.h"

#include <gtest/gtest.h>

namespace tornasole::format {
namespace {

TEST(Paths, AreThoseOfTheReference) {
  EXPECT_EQ(event_path(7, "worker_0"), "events/000000000007/000000000007_worker_0.tfevents");
  EXPECT_EQ(index_path(0, "worker_0"), "index/000000000/000000000000_worker_0.json");
  EXPECT_EQ(index_path(999, "worker_0"), "index/000000000/000000000999_worker_0.json");
  EXPECT_EQ(index_path(1234567, "w"), "index/000001234/000001234567_w.json");
  EXPECT_EQ(index_path(1234567890123, "w"), "index/1234567890/1234567890123_w.json") << "the width is a minimum";
  EXPECT_EQ(collections_path("worker_1"), "collections/000000000/worker_1_collections.json");
  EXPECT_EQ(health_path("worker_1"), "tornasole/worker_1_health.json");
  EXPECT_EQ(model_path("worker_1"), "tornasole/worker_1_model.json");
}

TEST(Paths, DevicesBecomeFileNamesAndBack) {
  const std::string device = "/job:localhost/replica:0/task:0/device:GPU:0";
  EXPECT_EQ(encode_worker(device), "_job-localhost_replica-0_task-0_device-GPU-0");
  EXPECT_EQ(decode_worker(encode_worker(device)), device);
  EXPECT_EQ(encode_worker("worker_0"), "worker_0");
  EXPECT_EQ(decode_worker("my__worker-0"), "my__worker-0") << "only the first character decides";
}

TEST(Paths, WorkersInPathsAreHarmless) {
  for (const char* name : {"worker_0", "chief_0", "_job-a", "a.b-c"}) EXPECT_TRUE(is_safe_worker(name)) << name;
  for (const char* name : {"", "a/b", "a b", "a\\b", "\xC3\xA4", "a\n"}) EXPECT_FALSE(is_safe_worker(name)) << name;
  EXPECT_FALSE(is_safe_worker(std::string_view("a\0", 2)));
  EXPECT_TRUE(is_safe_worker(std::string(200, 'a')));
  EXPECT_FALSE(is_safe_worker(std::string(201, 'a')));
}

TEST(Paths, StepFilesAreRecognised) {
  const auto file = parse_step_file("index/000000001/000000001000_worker_0.json", ".json");
  ASSERT_TRUE(file.has_value());
  EXPECT_EQ(file->step, 1000);
  EXPECT_EQ(file->worker_file_name, "worker_0");
  EXPECT_EQ(parse_step_file("000000000000__job-a.tfevents", ".tfevents")->worker_file_name, "_job-a");
  EXPECT_EQ(parse_step_file("7_w.json", ".json")->step, 7) << "any number of digits";
  for (const char* name : {"notes.json", "000000000001_worker_0.json.tmp", "000000000001.json", "000000000001_.json",
                           "-00000000001_worker_0.json", "99999999999999999999_w.json", "_w.json", ".json", ""}) {
    EXPECT_FALSE(parse_step_file(name, ".json").has_value()) << name;
  }
}

TEST(Paths, ReductionsAreNames) {
  EXPECT_EQ(reduction_tensor_name("l2", "fc1/weight", true), "smdebug/reductions/l2/fc1/weight");
  EXPECT_EQ(reduction_tensor_name("min", "x:0/y:12:z:", true), "smdebug/reductions/min/x/y:z:");
  EXPECT_EQ(reduction_tensor_name("min", "x:0", false), "smdebug/reductions/min/x:0");

  const struct {
    const char* name;
    const char* op;
    bool of_absolute;
    const char* tensor;
  } cases[] = {
      {"smdebug/reductions/l2/fc1/weight", "l2", false, "fc1/weight"},
      {"smdebug/reductions/abs_max/x", "max", true, "x"},
      {"tornasole/reductions/mean/x", "mean", false, "x"},
      {"scope/smdebug/reductions/mean/x", "mean", false, "x"},
      {"smdebug/reductions/median/x", "median", false, "x"},
      {"tornasole/reductions/a/smdebug/reductions/b/x", "a", false, "smdebug/reductions/b/x"},
  };
  for (const auto& c : cases) {
    const auto reduction = parse_reduction_tensor_name(c.name);
    ASSERT_TRUE(reduction.has_value()) << c.name;
    EXPECT_EQ(reduction->op, c.op) << c.name;
    EXPECT_EQ(reduction->of_absolute, c.of_absolute) << c.name;
    EXPECT_EQ(reduction->tensor, c.tensor) << c.name;
  }
  for (const char* name : {"", "x", "smdebug/reductions/", "smdebug/reductions/l2", "smdebug/reductions/l2/",
                           "smdebug/reductions//x", "smdebug/reductions/abs_/x"}) {
    EXPECT_FALSE(parse_reduction_tensor_name(name).has_value()) << name;
  }
}

}  // namespace
}  // namespace tornasole::format
