// What a storage service answers: listings, errors, times.

#include "fuzz_check.h"
#include "store/s3/s3_address.h"
#include "store/s3/s3_xml.h"

using namespace tornasole;
using namespace tornasole::store::s3;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz_text(data, size);
  const auto xml = parse_xml(text);
  FUZZ_CHECK(xml.ok() || xml.error().code == ErrorCode::kCorrupt);
  const auto listing = parse_listing(text);
  if (listing.ok()) {
    FUZZ_CHECK(xml.ok());
    for (const ListedObject& object : listing->objects) FUZZ_CHECK(!object.key.empty());
    FUZZ_CHECK(!listing->next_token || !listing->next_token->empty());
  }
  if (!xml.ok()) FUZZ_CHECK(parse_service_error(text).code.empty());
  static_cast<void>(parse_iso_time(text));
  static_cast<void>(parse_http_time(text));
  FUZZ_CHECK(unescape(escape_path(text)) == std::string(text));
  const auto address = parse_address(text);
  if (address.ok()) FUZZ_CHECK(address->bucket.find('/') == std::string::npos && !address->prefix.ends_with('/'));
  return 0;
}
