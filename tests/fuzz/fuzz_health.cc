// The small files of a run: health, run, claim and stop request, all of which others may have written.

#include "format/run_files.h"
#include "fuzz_check.h"

using namespace tornasole;
using namespace tornasole::format;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz_text(data, size);
  const auto health = decode_health(text);
  if (health.ok()) {
    FUZZ_CHECK(health->process.pid > 0 && health->errors.size() <= 20 && health->due >= 0);
    FUZZ_CHECK(health->heartbeat_interval_s > 0 && health->heartbeat_interval_s <= 3600);
    const Bytes written = encode_health(*health);
    const auto again = decode_health(written);
    FUZZ_CHECK(again.ok() && encode_health(*again) == written);
  }
  const auto run = decode_run(text);
  if (run.ok()) {
    FUZZ_CHECK(run->world_size >= 1 && run->world_size <= 65536);
    FUZZ_CHECK(decode_run(encode_run(*run))->run_id == run->run_id);
  }
  const auto claim = decode_claim(text);
  FUZZ_CHECK(claim.ok() || claim.error().code == ErrorCode::kNotFound);
  if (claim.ok()) FUZZ_CHECK(*decode_claim(encode_claim(*claim)) == *claim);
  const auto stop = decode_stop_request(text);
  if (stop.ok())
    FUZZ_CHECK(encode_stop_request(*decode_stop_request(encode_stop_request(*stop))) == encode_stop_request(*stop));
  return 0;
}
