#pragma once

// EventFile: the records of one event file, read in pieces and checked as a reader of values checks them.

#include <cstdint>
#include <optional>
#include <string>

#include "base/bytes.h"
#include "format/event.h"
#include "format/index.h"
#include "format/record.h"
#include "store/store.h"
#include "tornasole/result.h"

namespace tornasole::tools {

class EventFile {
 public:
  // `store` must outlive this. The size is that of the listing; kNotFound if there is no such file.
  static Result<EventFile> open(store::Store& store, std::string path);

  const std::string& path() const noexcept { return path_; }
  std::uint64_t size_bytes() const noexcept { return size_bytes_; }
  std::uint64_t read_bytes() const noexcept { return read_bytes_; }  // from the store so far

  struct Value {
    format::Event event;       // borrows from the file until the next call
    std::uint64_t length = 0;  // of the whole record
    std::uint32_t crc = 0;     // masked, of the payload
    bool is_verified = false;  // a checksum was there, and right
  };
  // The value an index entry points at. kCorrupt says what is wrong; every length is checked against the file first.
  Result<Value> value(const format::IndexEntry& entry);
  // The record that begins at `offset`. kEnded at the end of the file, kNotYet if the file ends inside the record.
  Result<Value> record_at(std::uint64_t offset);
  // The same, but only its frame is checked: the length of the whole record.
  Result<std::uint64_t> frame_at(std::uint64_t offset);

 private:
  EventFile(store::Store& store, std::string path, std::uint64_t size_bytes)
      : store_(&store), path_(std::move(path)), size_bytes_(size_bytes) {}
  Result<format::Record> read_record(std::uint64_t offset);
  Result<Value> decode(const format::Record& record) const;
  // The bytes [offset, offset + length), which lie in the file.
  Result<ByteView> bytes(std::uint64_t offset, std::uint64_t length);

  store::Store* store_;
  std::string path_;
  std::uint64_t size_bytes_;
  std::uint64_t read_bytes_ = 0;
  Bytes window_;
  std::uint64_t window_offset_ = 0;
};

}  // namespace tornasole::tools
