// TensorBoard's files: whatever is there is read to its end or refused; what is accepted is consistent, and what is
// made of it again is read as the same.

#include <cstring>

#include "format/record.h"
#include "fuzz_check.h"
#include "tensorboard/summary_decode.h"
#include "tensorboard/summary_event.h"
#include "tensorboard/summary_file.h"
#include "tensorboard/summary_tag.h"

using namespace tornasole;
using namespace tornasole::tensorboard;

namespace {

void check_event(const SummaryEvent& event) {
  for (const SummaryValue& value : event.values) {
    static_cast<void>(clean_tag(value.tag));
    if (value.histogram) FUZZ_CHECK(value.histogram->bucket.size() == value.histogram->bucket_limit.size());
    if (value.tensor && !value.tensor->numbers.empty()) {
      std::int64_t count = 1;
      for (const std::int64_t extent : value.tensor->dims) count *= extent;
      FUZZ_CHECK(count == static_cast<std::int64_t>(value.tensor->numbers.size()));
    }
    if (!value.simple_value) continue;
    const auto again =
        decode_summary_event(encode_scalar({event.wall_time, event.step}, value.tag, *value.simple_value));
    FUZZ_CHECK(again.ok() && again->values.size() == 1 && again->step == event.step);
    FUZZ_CHECK(again->values[0].tag == value.tag);
    FUZZ_CHECK(std::memcmp(&*again->values[0].simple_value, &*value.simple_value, sizeof(float)) == 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const ByteView input = fuzz_text(data, size);
  const auto count = [](const SummaryEvent& event) {
    check_event(event);
    return Status();
  };
  // As a file, and as the payload of a sound record, which a fuzzer would never find the checksums of.
  const auto read = read_events(input, 0, count);
  FUZZ_CHECK(read.ok() ? *read <= input.size() : read.error().code == ErrorCode::kCorrupt);
  Bytes record;
  append_record(input, &record);
  const auto framed = read_events(record, 0, count);
  FUZZ_CHECK(framed.ok() ? *framed == record.size() : framed.error().code == ErrorCode::kCorrupt);
  return 0;
}
