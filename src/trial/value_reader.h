#pragma once

// One value from its record. Nothing is trusted: the place is checked against the bytes that are there before memory is
// taken, and the value against its checksum.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "format/event.h"
#include "store/store.h"
#include "tornasole/tensor.h"
#include "trial/index_tables.h"

namespace tornasole::trial {

// kCorrupt if there cannot be a record at the location. Reads at most the head of one that is long.
Status check_record(store::Store& store, const std::string& path, const Location& location);

// The bytes of the record at the location, or fewer if the file ends; kNotFound if there is no file, kCorrupt if what
// is there cannot be the record.
Result<Bytes> read_record(store::Store& store, const std::string& path, const Location& location);

// kCorrupt, with file and offset, unless `bytes` is exactly the record of the location, undamaged as far as anybody can
// tell. Whose value it is, the index says; what the record itself says of it is not looked at. `path` is for messages.
Result<Tensor> decode_value(ByteView bytes, const Location& location, std::string_view path);
// The same without a copy: the content of the event is in `bytes`.
Result<format::Event> decode_event(ByteView bytes, const Location& location, std::string_view path);

}  // namespace tornasole::trial
