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
