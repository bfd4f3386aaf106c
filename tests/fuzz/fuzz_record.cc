// Records: a stream is taken apart to its end; a record lies inside the bytes and frames to itself.

#include "format/record.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes = fuzz_text(data, size);
  std::size_t at = 0;
  while (true) {
    const auto record = decode_record(bytes.substr(at), at);
    if (!record.ok()) {
      FUZZ_CHECK(record.error().code == ErrorCode::kNotYet || record.error().code == ErrorCode::kCorrupt);
      break;
    }
    FUZZ_CHECK(record->payload.size() + kRecordFrameBytes <= bytes.size() - at);
    const auto header = encode_record_header(record->payload.size());
    FUZZ_CHECK(bytes.substr(at, header.size()) == std::string_view(header.data(), header.size()));
    // Cut anywhere, the same record is not there yet.
    const std::size_t whole = record->payload.size() + kRecordFrameBytes;
    FUZZ_CHECK(decode_record(bytes.substr(at, whole - 1), at).error().code == ErrorCode::kNotYet);
    at += whole;
  }
  return 0;
}
