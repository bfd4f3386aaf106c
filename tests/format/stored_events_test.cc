#include "tornasole/stored_events.h"

#include <gtest/gtest.h>

#include <array>

#include "format/event.h"
#include "format/record.h"

namespace tornasole {
namespace {

Bytes record_of(const Bytes& payload) {
  const auto head = format::encode_record_header(payload.size());
  const auto trailer = format::encode_trailer(format::kConstantTrailer);
  return Bytes(head.data(), head.size()) + payload + Bytes(trailer.data(), trailer.size());
}

Bytes record_of(const format::EventHeader& header, const std::array<float, 2>& values) {
  const auto event = format::encode_event(header, DType::kFloat32, {2}, sizeof(values));
  return record_of(event->before + Bytes(reinterpret_cast<const char*>(values.data()), sizeof(values)) + event->after);
}

// A message with a version and no tensor, as at the front of files of other programs.
Bytes version_record() {
  return record_of(
      "\x1a\x0d"
      "brain.Event:2");
}

TEST(StoredEvents, EveryTensorInOrder) {
  const Bytes file = version_record() +
                     record_of({.name = "a", .global_step = 7, .mode_step = 7, .wall_time = 1.5}, {1, 2}) +
                     record_of({.name = "b", .global_step = 8, .mode = Mode::kEval, .mode_step = 3}, {3, 4});
  const auto events = decode_events(file);
  ASSERT_TRUE(events.ok()) << events.error().message;
  ASSERT_EQ(events->size(), 2U);
  const StoredEvent& first = events->front();
  EXPECT_EQ(first.name, "a");
  EXPECT_EQ(first.global_step, GlobalStep{7});
  EXPECT_EQ(first.step, (ModeStep{Mode::kGlobal, 7}));
  EXPECT_EQ(first.wall_time_s, 1.5);
  EXPECT_EQ(events->back().step, (ModeStep{Mode::kEval, 3}));
  EXPECT_EQ(events->back().value.values<float>()[1], 4);
  EXPECT_EQ(decode_events("")->size(), 0U);
}

TEST(StoredEvents, WhatIsWrong) {
  const Bytes one = record_of({.name = "a"}, {1, 2});
  const Bytes two = one + one;
  for (std::size_t cut = one.size() + 1; cut < two.size(); ++cut) {
    EXPECT_EQ(decode_events(std::string_view(two).substr(0, cut)).error().code, ErrorCode::kNotYet) << cut;
  }
  Bytes damaged = two;
  damaged[one.size() + 3] = 'x';
  const auto events = decode_events(damaged);
  EXPECT_EQ(events.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(events.error().message.find(std::to_string(one.size())), std::string::npos) << events.error().message;
  EXPECT_EQ(decode_events(record_of("no message at all")).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tornasole
