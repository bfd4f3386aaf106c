#include "tensorboard/summary_event.h"

#include <protozero/pbf_writer.hpp>

#include "base/crc32c.h"
#include "format/record.h"

namespace tornasole::tensorboard {
namespace {

using protozero::pbf_writer;

pbf_writer begin_event(Bytes* out, const EventTime& time) {
  pbf_writer event(*out);
  event.add_double(1, time.wall_time);
  if (time.step != 0) event.add_int64(2, time.step);
  return event;
}

// Types of tensors, and the classes of data that TensorBoard sorts plugins into.
constexpr std::uint32_t kFloats = 1;
constexpr std::uint32_t kDoubles = 2;
constexpr std::uint32_t kTexts = 7;
constexpr std::int32_t kScalarData = 1;
constexpr std::int32_t kTensorData = 2;

void add_plugin(pbf_writer* entry, std::string_view name, ByteView content, std::int32_t data_class) {
  pbf_writer metadata(*entry, 9);
  {
    pbf_writer plugin(metadata, 1);
    plugin.add_string(1, name.data(), name.size());
    if (!content.empty()) plugin.add_bytes(2, content.data(), content.size());
  }
  metadata.add_int32(4, data_class);
}

// All that is said is in the plugin's own message; the tensor is a zero.
Bytes plugin_event(double wall_time, std::string_view tag, ByteView content) {
  Bytes out;
  pbf_writer event(out);
  event.add_double(1, wall_time);
  pbf_writer summary(event, 5);
  pbf_writer entry(summary, 1);
  entry.add_string(1, tag.data(), tag.size());
  {
    pbf_writer tensor(entry, 8);
    tensor.add_uint32(1, kFloats);
    {
      const pbf_writer shape(tensor, 2);
    }
    const float zero = 0;
    tensor.add_packed_float(5, &zero, &zero + 1);
  }
  add_plugin(&entry, "hparams", content, kTensorData);
  return out;
}

// A field that holds its default is left out.
void add_number(pbf_writer* message, protozero::pbf_tag_type field, double value) {
  if (std::bit_cast<std::uint64_t>(value) != 0) message->add_double(field, value);
}

}  // namespace

Bytes encode_version(double wall_time) {
  Bytes out;
  begin_event(&out, {wall_time, 0}).add_string(3, "brain.Event:2");
  return out;
}

Bytes encode_scalar(const EventTime& time, std::string_view tag, float value) {
  Bytes out;
  pbf_writer event = begin_event(&out, time);
  pbf_writer summary(event, 5);
  pbf_writer entry(summary, 1);
  entry.add_string(1, tag.data(), tag.size());
  entry.add_float(2, value);
  return out;
}

Bytes encode_histogram(const EventTime& time, std::string_view tag, const reduce::Histogram& histogram) {
  Bytes out;
  out.reserve(128 + tag.size() + 16 * histogram.bucket.size());
  pbf_writer event = begin_event(&out, time);
  pbf_writer summary(event, 5);
  pbf_writer entry(summary, 1);
  entry.add_string(1, tag.data(), tag.size());
  pbf_writer histo(entry, 5);
  add_number(&histo, 1, histogram.min);
  add_number(&histo, 2, histogram.max);
  add_number(&histo, 3, histogram.num);
  add_number(&histo, 4, histogram.sum);
  add_number(&histo, 5, histogram.sum_squares);
  histo.add_packed_double(6, histogram.bucket_limit.begin(), histogram.bucket_limit.end());
  histo.add_packed_double(7, histogram.bucket.begin(), histogram.bucket.end());
  return out;
}

Bytes encode_wide_scalar(const EventTime& time, std::string_view tag, double value) {
  Bytes out;
  pbf_writer event = begin_event(&out, time);
  pbf_writer summary(event, 5);
  pbf_writer entry(summary, 1);
  entry.add_string(1, tag.data(), tag.size());
  {
    pbf_writer tensor(entry, 8);
    tensor.add_uint32(1, kDoubles);
    {
      const pbf_writer shape(tensor, 2);
    }
    tensor.add_packed_double(6, &value, &value + 1);
  }
  add_plugin(&entry, "scalars", {}, kScalarData);
  return out;
}

Bytes encode_text(const EventTime& time, std::string_view tag, std::span<const std::string> lines) {
  Bytes out;
  pbf_writer event = begin_event(&out, time);
  pbf_writer summary(event, 5);
  pbf_writer entry(summary, 1);
  entry.add_string(1, tag.data(), tag.size());
  {
    pbf_writer tensor(entry, 8);
    tensor.add_uint32(1, kTexts);
    {
      pbf_writer shape(tensor, 2);
      if (lines.size() != 1) {
        pbf_writer dim(shape, 2);
        dim.add_uint64(1, lines.size());
      }
    }
    for (const std::string& line : lines) tensor.add_string(8, line);
  }
  add_plugin(&entry, "text", {}, kTensorData);
  return out;
}

Bytes encode_image(const EventTime& time, std::string_view tag, ImageSize size, ByteView png) {
  Bytes out;
  pbf_writer event = begin_event(&out, time);
  pbf_writer summary(event, 5);
  pbf_writer entry(summary, 1);
  entry.add_string(1, tag.data(), tag.size());
  pbf_writer image(entry, 4);
  image.add_int64(1, size.height);
  image.add_int64(2, size.width);
  image.add_int32(3, 3);  // red, green, blue
  image.add_bytes(4, png.data(), png.size());
  return out;
}

std::vector<Bytes> encode_hyperparameters(double wall_time, const std::map<std::string, Hyperparameter>& values) {
  Bytes experiment;
  pbf_writer(experiment).add_message(2, std::string());
  Bytes start;
  {
    pbf_writer data(start);
    pbf_writer info(data, 3);
    for (const auto& [name, value] : values) {
      pbf_writer pair(info, 1);
      pair.add_string(1, name);
      pbf_writer field(pair, 2);
      if (const auto* number = std::get_if<double>(&value)) field.add_double(2, *number);
      if (const auto* text = std::get_if<std::string>(&value)) field.add_string(3, *text);
      if (const auto* flag = std::get_if<bool>(&value)) field.add_bool(4, *flag);
    }
    info.add_double(5, wall_time);
  }
  Bytes end;
  {
    pbf_writer data(end);
    pbf_writer info(data, 4);
    info.add_int32(1, 1);  // success
    info.add_double(2, wall_time);
  }
  return {plugin_event(wall_time, "_hparams_/experiment", experiment),
          plugin_event(wall_time, "_hparams_/session_start_info", start),
          plugin_event(wall_time, "_hparams_/session_end_info", end)};
}

Bytes encode_graph(double wall_time, ByteView graph_def) {
  Bytes out;
  begin_event(&out, {wall_time, 0}).add_bytes(4, graph_def.data(), graph_def.size());
  return out;
}

Bytes encode_summary(const EventTime& time, ByteView summary) {
  Bytes out;
  begin_event(&out, time).add_message(5, summary.data(), summary.size());
  return out;
}

void append_record(ByteView payload, Bytes* out) {
  const auto header = format::encode_record_header(payload.size());
  const auto trailer = format::encode_trailer(masked_crc32c(payload));
  out->append(header.data(), header.size());
  out->append(payload);
  out->append(trailer.data(), trailer.size());
}

}  // namespace tornasole::tensorboard
