#include "format/run_files.h"

#include <gtest/gtest.h>

#include <limits>

namespace tornasole::format {
namespace {

const ProcessIdentity kProcess = {.host = "node-1", .pid = 42, .start = 123456};

Health full_health() {
  Health health;
  health.process = kProcess;
  health.state = RunState::kFailed;
  health.reason = "out of \"memory\"";
  health.run_id = "abc";
  health.start_time = 1700000000.5;
  health.heartbeat = 1700000010.25;
  health.heartbeat_interval_s = 60;
  health.due = 10;
  health.committed = 7;
  health.dropped = {{"queue_full", 2}, {"io", 1}};
  health.dropped_values = {{"too_large", 5}};
  health.last_committed = 90;
  health.queue_peak_bytes = 1 << 20;
  health.requests = {{"get", 3}, {"put", 61}};
  health.mode_steps = {{"EVAL", 2}, {"TRAIN", 9}};
  health.wait_ms = 17;
  health.when_full = "block";
  health.fsync = "step";
  health.errors = {"first", "second"};
  return health;
}

TEST(Health, DecodesWhatItEncoded) {
  for (const RunState state : {RunState::kRunning, RunState::kEnded, RunState::kFailed}) {
    Health health = full_health();
    health.state = state;
    const auto decoded = decode_health(encode_health(health));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->process, health.process);
    EXPECT_EQ(decoded->state, state);
    EXPECT_EQ(encode_health(*decoded), encode_health(health));
    EXPECT_EQ(decoded->dropped, health.dropped);
    EXPECT_EQ(decoded->dropped_values, health.dropped_values);
    EXPECT_EQ(decoded->errors, health.errors);
    EXPECT_EQ(decoded->last_committed, 90);
  }
}

TEST(Health, HasTheDocumentedText) {
  Health health;
  health.process = kProcess;
  health.heartbeat = 2;
  EXPECT_EQ(encode_health(health),
            R"({"version": 1, "host": "node-1", "pid": 42, "start": 123456, "state": "running", "run_id": "", )"
            R"("start_time": 0.0, "heartbeat": 2.0, "heartbeat_interval_s": 10.0, "due": 0, "committed": 0, )"
            R"("dropped": {}, "dropped_values": {}, "last_committed": -1, "queue_peak_bytes": 0, "wait_ms": 0, )"
            R"("when_full": "drop", "fsync": "none", "errors": []})");
  health.errors.assign(30, "e");
  EXPECT_EQ(decode_health(encode_health(health))->errors.size(), 20U) << "never more than a reader takes";
}

TEST(Health, DamageIsNamed) {
  const auto replaced = [](std::string_view from, std::string_view to) {
    Bytes text = encode_health(full_health());
    return text.replace(text.find(from), from.size(), to);
  };
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"nothing", "", "not JSON"},
      {"no object", "3", "not an object"},
      {"an unknown state", replaced("failed", "asleep"), "asleep"},
      {"no heartbeat", replaced("\"heartbeat\"", "\"x\""), "no \"heartbeat\""},
      {"a process of no number", replaced("42", "\"42\""), "\"pid\""},
      {"a process that cannot be", replaced("42", "-1"), "\"pid\""},
      {"an interval that ends no wait", replaced("60.0", "1e300"), "heartbeat_interval_s"},
      {"an interval of nothing", replaced("60.0", "0"), "heartbeat_interval_s"},
      {"a count below zero", replaced("\"due\": 10", "\"due\": -10"), "\"due\""},
      {"a count of a cause that is none", replaced("\"io\": 1", "\"io\": []"), "count from 0 on"},
      {"too many errors",
       replaced("\"first\"",
                "\"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", "
                "\"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\", \"1\""),
       "21 errors"},
      {"too long", std::string(2 << 20, ' '), "more than the limit"},
  };
  for (const auto& [what, text, says] : cases) {
    const auto health = decode_health(text);
    ASSERT_FALSE(health.ok()) << what;
    EXPECT_EQ(health.error().code, ErrorCode::kCorrupt) << what;
    EXPECT_NE(health.error().message.find(says), std::string::npos) << what << ": " << health.error().message;
  }
}

TEST(RunFile, RoundTrip) {
  const Bytes text = encode_run({.run_id = "r1", .start = 1700000000.5, .world_size = 8});
  EXPECT_EQ(text, R"({"run_id": "r1", "start": 1700000000.5, "world_size": 8})");
  const auto run = decode_run(text);
  ASSERT_TRUE(run.ok()) << run.error().message;
  EXPECT_EQ(run->run_id, "r1");
  EXPECT_EQ(run->start, 1700000000.5);
  EXPECT_EQ(run->world_size, 8);
  for (const char* bad :
       {"", "{}", R"({"run_id": 1, "start": 1, "world_size": 1})",
        R"({"run_id": "a", "start": 1, "world_size": 65537})", R"({"run_id": "a", "start": "now", "world_size": 1})"}) {
    EXPECT_EQ(decode_run(bad).error().code, ErrorCode::kCorrupt) << bad;
  }
}

TEST(Claim, AForeignOneNamesNobody) {
  const auto owner = decode_claim(encode_claim(kProcess));
  ASSERT_TRUE(owner.ok()) << owner.error().message;
  EXPECT_EQ(*owner, kProcess);
  for (const char* foreign :
       {"", "{}", "mine", R"({"host": "a", "pid": "b", "start": 1})", R"({"host": "a", "pid": 0, "start": 1})"}) {
    EXPECT_EQ(decode_claim(foreign).error().code, ErrorCode::kNotFound) << foreign;
  }
}

TEST(StopRequest, RoundTrip) {
  const StopRequest request{.reason = "loss is NaN", .rule = "NotFinite", .step = 12, .time = 1.5, .prefix = "job"};
  const Bytes text = encode_stop_request(request);
  EXPECT_EQ(text, R"({"rule": "NotFinite", "step": 12, "message": "loss is NaN", "time": 1.5, "prefix": "job"})");
  const auto decoded = decode_stop_request(text);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_EQ(encode_stop_request(*decoded), text);
  EXPECT_TRUE(decode_stop_request("{}").ok()) << "the wish alone is enough";
  EXPECT_EQ(decode_stop_request("").error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(decode_stop_request(R"({"rule": 5})").error().code, ErrorCode::kCorrupt);
}

std::vector<CheckpointRecord> two_records() {
  return {{.training_run = 0, .last_saved = std::nullopt, .last_seen = -1, .mode_steps = {{Mode::kGlobal, -1}}},
          {.training_run = 1,
           .last_saved = 3,
           .last_seen = 4,
           .mode_steps = {{Mode::kGlobal, 4}, {Mode::kTrain, 3}, {Mode::kEval, 0}}}};
}

TEST(CheckpointState, HasTheDocumentedText) {
  EXPECT_EQ(encode_checkpoint_state(two_records()),
            R"([{"training-run": 0, "latest-global-step-saved": null, "latest-global-step-seen": -1, )"
            R"("latest-mode-step": {"GLOBAL": -1}}, {"training-run": 1, "latest-global-step-saved": 3, )"
            R"("latest-global-step-seen": 4, "latest-mode-step": {"GLOBAL": 4, "TRAIN": 3, "EVAL": 0}}])");
  EXPECT_EQ(encode_checkpoint_state({}), "[]");
}

TEST(CheckpointState, ACutFileGivesItsWholeRecords) {
  const Bytes text = encode_checkpoint_state(two_records());
  const std::size_t first_end = text.find("}}") + 2;
  for (std::size_t cut = 0; cut <= text.size(); ++cut) {
    bool was_cut = false;
    const auto records = decode_checkpoint_state(ByteView(text).substr(0, cut), &was_cut);
    ASSERT_TRUE(records.ok()) << cut << ": " << records.error().message;
    EXPECT_EQ(was_cut, cut < text.size()) << cut;
    const std::size_t expected = cut < first_end ? 0 : cut < text.size() - 1 ? 1 : 2;
    ASSERT_EQ(records->size(), expected) << cut;
    EXPECT_TRUE(
        text.starts_with(encode_checkpoint_state(*records).substr(0, encode_checkpoint_state(*records).size() - 1)));
  }
}

TEST(CheckpointState, DamageIsNamed) {
  const std::pair<const char*, const char*> cases[] = {
      {"{}", "offset 0"},
      {"[1]", "an object is expected"},
      {"[{}]", "training-run"},
      {"[]x", "offset 2"},
      {"[] []", "offset 3"},
      {"[{\"training-run\": x}]", "not JSON"},
      {R"([{"training-run": 0, "latest-global-step-seen": 0, "latest-mode-step": {"X": 0}}])", "\"X\""},
      {R"([{"training-run": 0, "latest-global-step-seen": 0, "latest-mode-step": {"EVAL": null}}])", "EVAL"},
      {R"([{"training-run": 0, "latest-global-step-seen": 0, "latest-mode-step": {}} {)", ", or ]"},
      {R"([{"training-run": 0, "latest-global-step-seen": "0", "latest-mode-step": {}}])", "latest-global-step-seen"},
  };
  for (const auto& [text, says] : cases) {
    bool was_cut = false;
    const auto records = decode_checkpoint_state(text, &was_cut);
    ASSERT_FALSE(records.ok()) << text;
    EXPECT_EQ(records.error().code, ErrorCode::kCorrupt) << text;
    EXPECT_NE(records.error().message.find(says), std::string::npos) << text << ": " << records.error().message;
  }
}

TEST(Metric, IsALine) {
  EXPECT_EQ(
      encode_metric({.name = "loss", .mode = Mode::kTrain, .value = 1, .timestamp = 1794772136.588837, .mode_step = 0}),
      "{\"MetricName\": \"loss_TRAIN\", \"Value\": 1.0, \"Timestamp\": 1794772136.588837, \"IterationNumber\": 0}\n");
  EXPECT_NE(encode_metric({.name = "x", .value = std::numeric_limits<double>::quiet_NaN()}).find("\"Value\": NaN,"),
            Bytes::npos);
  EXPECT_NE(
      encode_metric({.name = "x", .value = -std::numeric_limits<double>::infinity()}).find("\"Value\": -Infinity,"),
      Bytes::npos);
}

}  // namespace
}  // namespace tornasole::format
