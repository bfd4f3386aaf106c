#include "tensorboard/step_summaries.h"

#include <gtest/gtest.h>

#include "format/record.h"
#include "store/memory/memory_store.h"
#include "tensorboard/summary_decode.h"
#include "tensorboard/summary_event.h"

namespace tornasole::tensorboard {
namespace {

std::vector<SummaryEvent> read_events(store::Store& store, const std::string& path) {
  const auto bytes = store.read_all(path, 1 << 30);
  EXPECT_TRUE(bytes.ok()) << path;
  std::vector<SummaryEvent> events;
  for (std::size_t at = 0; bytes.ok() && at < bytes->size();) {
    const auto record = format::decode_record(ByteView(*bytes).substr(at), at);
    EXPECT_TRUE(record.ok() && record->is_verified);
    if (!record.ok()) break;
    events.push_back(*decode_summary_event(record->payload));
    at += record->payload.size() + format::kRecordFrameBytes;
  }
  return events;
}

TEST(StepSummaries, AFileHasAVersionThenItsSummaries) {
  store::MemoryStore store;
  const SummaryPlace place{.store = &store, .directory = "tensorboard", .process = 42, .host = "a host/x"};
  StepSummaries step(Mode::kTrain, 12);
  step.add(5, encode_scalar({5, 12}, "a", 1));
  ASSERT_TRUE(step.flush(place).ok());
  step.add(6, encode_scalar({6, 12}, "b", 2));
  ASSERT_TRUE(step.publish(place).ok());
  EXPECT_EQ(step.count(), 2);
  const auto events = read_events(store, "tensorboard/TRAIN/000000000012_42_a_host_x.tfevents");
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[0].file_version, "brain.Event:2");
  EXPECT_EQ(events[0].wall_time, 5);
  EXPECT_EQ(events[1].values.at(0).tag, "a");
  EXPECT_EQ(events[2].values.at(0).tag, "b");
}

TEST(StepSummaries, WithoutSummariesThereIsNoFile) {
  store::MemoryStore store;
  StepSummaries step(Mode::kTrain, 0);
  ASSERT_TRUE(step.publish({.store = &store, .process = 1, .host = "h"}).ok());
  EXPECT_TRUE(store.list("", true)->empty());
}

TEST(StepSummaries, OneThatIsNotPublishedLeavesNothing) {
  store::MemoryStore store;
  {
    StepSummaries step(Mode::kTrain, 0);
    step.add(1, encode_scalar({1, 0}, "a", 1));
    ASSERT_TRUE(step.flush({.store = &store, .process = 1, .host = "h"}).ok());
    EXPECT_EQ(store.list("", true)->size(), 1U);
  }
  EXPECT_TRUE(store.list("", true)->empty());
}

TEST(StepSummaries, WhatADeadProcessOfTheSameNumberLeftIsReplaced) {
  store::MemoryStore store;
  ASSERT_TRUE(store.create_exclusive("EVAL/000000000003_1_h.tfevents.tmp", "rest").ok());
  StepSummaries step(Mode::kEval, 3);
  step.add(1, encode_scalar({1, 3}, "a", 1));
  ASSERT_TRUE(step.publish({.store = &store, .process = 1, .host = "h"}).ok());
  EXPECT_EQ(read_events(store, "EVAL/000000000003_1_h.tfevents").size(), 2U);
  EXPECT_EQ(store.list("", true)->size(), 1U);
}

}  // namespace
}  // namespace tornasole::tensorboard
