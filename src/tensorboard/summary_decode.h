#pragma once

// Reading summaries: what TensorFlow 1 and 2, Keras, PyTorch's SummaryWriter and this project write.
//
//   in:  the payload of one record, of any origin
//   out: its values, numbers widened to double
//   who: import
//
// kCorrupt with what is wrong. Nothing is allocated that the payload's own length does not bound.

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/bytes.h"
#include "tornasole/result.h"

namespace tornasole::tensorboard {

// A TensorProto of numbers or texts.
struct SummaryTensor {
  std::vector<std::int64_t> dims = {};
  std::vector<double> numbers = {};
  std::vector<std::string> texts = {};
};

// A HistogramProto: bucket[i] counts what lies between limit[i-1] and limit[i].
struct SummaryHistogram {
  double min = 0;
  double max = 0;
  double num = 0;
  double sum = 0;
  double sum_squares = 0;
  std::vector<double> bucket_limit = {};
  std::vector<double> bucket = {};
};

struct SummaryValue {
  std::string tag = {};
  std::string plugin = {};          // "scalars", "histograms", ...; mostly only in the first value of a tag
  std::string plugin_content = {};  // a message of the plugin's own
  std::optional<float> simple_value = {};
  std::optional<SummaryHistogram> histogram = {};
  std::optional<SummaryTensor> tensor = {};
  bool has_image = false;
  bool has_audio = false;
};

struct SummaryEvent {
  double wall_time = 0;
  std::int64_t step = 0;
  std::string file_version = {};
  ByteView graph_def = {};  // points into the payload
  std::vector<SummaryValue> values = {};
};
Result<SummaryEvent> decode_summary_event(ByteView payload);

}  // namespace tornasole::tensorboard
