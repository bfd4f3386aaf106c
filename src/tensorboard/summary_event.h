#pragma once

// Summaries: the payloads of the records of a TensorBoard file (docs/format.md 8), and their frames.
//
//   Event { wall_time 1, step 2, file_version 3 | graph_def 4 | summary 5 { value 1 { tag 1, simple_value 2 | image 4 |
//           histo 5 | tensor 8, metadata 9 } } }
//
// Tags must be valid UTF-8.

#include <cstdint>
#include <span>
#include <string_view>

#include "base/bytes.h"
#include "reduce/histogram.h"

namespace tornasole::tensorboard {

struct EventTime {
  double wall_time = 0;
  std::int64_t step = 0;
};

// What a file begins with, so that every TensorBoard knows what follows.
Bytes encode_version(double wall_time);
Bytes encode_scalar(const EventTime& time, std::string_view tag, float value);
Bytes encode_histogram(const EventTime& time, std::string_view tag, const reduce::Histogram& histogram);
// A GraphDef as its framework serialized it.
Bytes encode_graph(double wall_time, ByteView graph_def);
// A Summary that is serialized already, passed through.
Bytes encode_summary(const EventTime& time, ByteView summary);

// The payload in its frame, with its true checksum.
void append_record(ByteView payload, Bytes* out);

}  // namespace tornasole::tensorboard
