#pragma once

// Reading TensorBoard's files to their end: frames, checksums, events.

#include <functional>
#include <string>

#include "store/store.h"
#include "tensorboard/summary_decode.h"

namespace tornasole::tensorboard {

using OnEvent = std::function<Status(SummaryEvent event)>;

// The events of the whole records at the front of `bytes`, which stand at `offset` of the file; gives the bytes they
// take. kCorrupt names the offset. What is left over is a record that is cut short, or nothing.
Result<std::uint64_t> read_events(ByteView bytes, std::uint64_t offset, const OnEvent& on_event);

// The events of a file, in pieces of a few MiB. Gives the bytes of a record at the end that is cut short, 0 if there is
// none: a program that still writes leaves one. kCorrupt names file and offset.
Result<std::uint64_t> read_file(store::Store& store, const std::string& path, const OnEvent& on_event);

}  // namespace tornasole::tensorboard
