#pragma once

// Summaries: the payloads of the records of a TensorBoard file (docs/format.md 8), and their frames.
//
//   Event { wall_time 1, step 2, file_version 3 | graph_def 4 | summary 5 { value 1 { tag 1, simple_value 2 | image 4 |
//           histo 5 | tensor 8, metadata 9 } } }
//
// Tags must be valid UTF-8.

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

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
// A scalar that no 32-bit float holds.
Bytes encode_wide_scalar(const EventTime& time, std::string_view tag, double value);
// Lines of Markdown; more than one become the rows of a table.
Bytes encode_text(const EventTime& time, std::string_view tag, std::span<const std::string> lines);
struct ImageSize {
  std::int64_t height = 0, width = 0;
};
Bytes encode_image(const EventTime& time, std::string_view tag, ImageSize size, ByteView png);
// What a run was started with: the three events of the plugin for hyperparameters.
using Hyperparameter = std::variant<double, bool, std::string>;
std::vector<Bytes> encode_hyperparameters(double wall_time, const std::map<std::string, Hyperparameter>& values);
// A GraphDef as its framework serialized it.
Bytes encode_graph(double wall_time, ByteView graph_def);
// A Summary that is serialized already, passed through.
Bytes encode_summary(const EventTime& time, ByteView summary);

// The payload in its frame, with its true checksum.
void append_record(ByteView payload, Bytes* out);

}  // namespace tornasole::tensorboard
