#include "tensorboard/summary_event.h"
#include "support/tests_dir.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <protozero/pbf_writer.hpp>
#include <sstream>

#include "base/errors.h"
#include "format/record.h"
#include "tensorboard/summary_decode.h"

namespace tornasole::tensorboard {
namespace {

using protozero::pbf_writer;

constexpr EventTime kTime = {1700000000.5, 7};

Result<SummaryValue> only_value(const Bytes& payload) {
  TORNASOLE_TRY(SummaryEvent event, decode_summary_event(payload));
  EXPECT_EQ(event.values.size(), 1U);
  return event.values.at(0);
}

TEST(SummaryEvent, AScalarHasTheBytesOfTheReference) {
  Bytes record;
  append_record(encode_scalar({1700000000.5, 2}, "loss", 0.0F), &record);
  std::ifstream file(
      tests_dir() + "/golden/smdebug/tensorboard_numpy/trial/tensorboard/EVAL/000000000002_4242_trainer-host.tfevents",
      std::ios::binary);
  std::ostringstream golden;
  golden << file.rdbuf();
  EXPECT_EQ(record, golden.str());
}

TEST(SummaryEvent, AVersionIsReadAsOne) {
  const auto event = decode_summary_event(encode_version(3.5));
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->file_version, "brain.Event:2");
  EXPECT_EQ(event->wall_time, 3.5);
  EXPECT_TRUE(event->values.empty());
}

TEST(SummaryEvent, ScalarsComeBackBitByBit) {
  for (const float value : {0.0F, -0.0F, 1.5F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
    const auto read = only_value(encode_scalar(kTime, "a/b", value));
    ASSERT_TRUE(read.ok() && read->simple_value);
    EXPECT_EQ(std::bit_cast<std::uint32_t>(*read->simple_value), std::bit_cast<std::uint32_t>(value));
    EXPECT_EQ(read->tag, "a/b");
  }
}

TEST(SummaryEvent, HistogramsComeBackBitByBit) {
  const reduce::Histogram histogram{
      .min = -1, .max = 4, .sum = 2.25, .sum_squares = 19, .num = 3, .bucket_limit = {-1.1, 0, 5}, .bucket = {0, 1, 2}};
  const Bytes payload = encode_histogram(kTime, "h", histogram);
  const auto event = decode_summary_event(payload);
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->step, 7);
  EXPECT_EQ(event->wall_time, 1700000000.5);
  const auto read = event->values.at(0).histogram;
  ASSERT_TRUE(read);
  EXPECT_EQ(read->bucket_limit, histogram.bucket_limit);
  EXPECT_EQ(read->bucket, histogram.bucket);
  EXPECT_EQ(read->min, -1);
  EXPECT_EQ(read->max, 4);
  EXPECT_EQ(read->num, 3);
  EXPECT_EQ(read->sum, 2.25);
  EXPECT_EQ(read->sum_squares, 19);
}

TEST(SummaryEvent, GraphsAndReadySummariesPassThrough) {
  const Bytes graph = encode_graph(1, "graph");
  EXPECT_EQ(decode_summary_event(graph)->graph_def, "graph");
  Bytes summary;
  pbf_writer(summary).add_message(1, std::string("\x0a\x01x"));
  const auto event = decode_summary_event(encode_summary(kTime, summary));
  ASSERT_TRUE(event.ok());
  EXPECT_EQ(event->step, 7);
  EXPECT_EQ(event->values.at(0).tag, "x");
}

TEST(SummaryEvent, RecordsCarryTheTrueChecksum) {
  Bytes record;
  append_record(encode_scalar(kTime, "a", 1), &record);
  const auto read = format::decode_record(record, 0);
  ASSERT_TRUE(read.ok());
  EXPECT_TRUE(read->is_verified);
}

// A value with a tensor, as TensorFlow 2 writes it.
Bytes tensor_event(const std::function<void(pbf_writer&)>& fill) {
  Bytes out;
  pbf_writer event(out);
  pbf_writer summary(event, 5);
  pbf_writer value(summary, 1);
  value.add_string(1, "t");
  {
    pbf_writer tensor(value, 8);
    fill(tensor);
  }
  pbf_writer metadata(value, 9);
  pbf_writer plugin(metadata, 1);
  plugin.add_string(1, "scalars");
  return out;
}
void add_shape(pbf_writer& tensor, const std::vector<std::int64_t>& dims) {
  pbf_writer shape(tensor, 2);
  for (const std::int64_t extent : dims) {
    pbf_writer dim(shape, 2);
    dim.add_int64(1, extent);
  }
}

TEST(SummaryDecode, TensorsOfEveryFormAreNumbers) {
  struct Case {
    const char* what;
    std::function<void(pbf_writer&)> fill;
    std::vector<double> numbers;
  };
  const std::vector<float> floats = {0.5F, 2};
  const std::vector<double> doubles = {0.5, 2, 3};
  const Case cases[] = {
      {"a float in a list",
       [](pbf_writer& t) {
         t.add_uint32(1, 1);
         t.add_float(5, 0.25F);
       },
       {0.25}},
      {"floats packed",
       [&](pbf_writer& t) {
         t.add_uint32(1, 1);
         add_shape(t, {2});
         t.add_packed_float(5, floats.begin(), floats.end());
       },
       {0.5, 2}},
      {"content of doubles",
       [&](pbf_writer& t) {
         t.add_uint32(1, 2);
         add_shape(t, {1, 3});
         t.add_bytes(4, reinterpret_cast<const char*>(doubles.data()), 24);
       },
       {0.5, 2, 3}},
      {"one number for all elements",
       [](pbf_writer& t) {
         t.add_uint32(1, 1);
         add_shape(t, {3});
         t.add_float(5, 1);
       },
       {1, 1, 1}},
      {"an int64",
       [](pbf_writer& t) {
         t.add_uint32(1, 9);
         t.add_int64(10, -5);
       },
       {-5}},
      {"no numbers at all", [](pbf_writer& t) { t.add_uint32(1, 1); }, {}},
  };
  for (const Case& c : cases) {
    const auto value = only_value(tensor_event(c.fill));
    ASSERT_TRUE(value.ok()) << c.what << ": " << value.error().message;
    ASSERT_TRUE(value->tensor) << c.what;
    EXPECT_EQ(value->tensor->numbers, c.numbers) << c.what;
    EXPECT_EQ(value->plugin, "scalars") << c.what;
  }
}

TEST(SummaryDecode, WhatContradictsItselfIsRefused) {
  struct Case {
    const char* what;
    Bytes payload;
  };
  Bytes crooked;
  {
    pbf_writer event(crooked);
    pbf_writer summary(event, 5);
    pbf_writer value(summary, 1);
    pbf_writer histo(value, 5);
    const std::vector<double> one = {1};
    histo.add_packed_double(6, one.begin(), one.end());
  }
  const Case cases[] = {
      {"a length beyond the end", Bytes("\x2a\x7f", 2)},
      {"a histogram with more limits than buckets", crooked},
      {"a negative extent", tensor_event([](pbf_writer& t) { add_shape(t, {-1}); })},
      {"a shape that cannot be counted", tensor_event([](pbf_writer& t) { add_shape(t, {1LL << 62, 1LL << 62}); })},
      {"one number for a billion", tensor_event([](pbf_writer& t) {
         t.add_uint32(1, 1);
         add_shape(t, {1LL << 30});
         t.add_float(5, 1);
       })},
      {"half a number", tensor_event([](pbf_writer& t) {
         t.add_uint32(1, 1);
         t.add_bytes(4, "abc");
       })},
      {"more numbers than the shape has", tensor_event([](pbf_writer& t) {
         t.add_uint32(1, 1);
         t.add_float(5, 1);
         t.add_float(5, 1);
       })},
  };
  for (const Case& c : cases) {
    const auto event = decode_summary_event(c.payload);
    ASSERT_FALSE(event.ok()) << c.what;
    EXPECT_EQ(event.error().code, ErrorCode::kCorrupt) << c.what;
  }
}

}  // namespace
}  // namespace tornasole::tensorboard
