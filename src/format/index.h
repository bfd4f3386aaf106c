#pragma once

// Index files: where each value of one step of one worker lies (docs/format.md 4). The checksum of a file is written
// and checked here.

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::format {

struct IndexEntry {
  std::string name;
  std::uint64_t offset = 0;               // of the record in the event file
  std::uint64_t length = 0;               // of the whole record
  std::optional<std::uint32_t> crc = {};  // masked, of the payload; always written by us
};
struct ShapeEntry {
  std::string name;
  std::string original_name;
  std::vector<std::int64_t> shape;
};
struct Index {
  Mode mode = Mode::kGlobal;
  std::int64_t mode_step = 0;
  std::string event_file = {};  // relative to the trial; empty with shapes only, or if no file holds the values
  bool is_partial = false;
  std::optional<std::int64_t> optimizer_step = {};
  std::optional<bool> training = {}, grad_enabled = {}, backward_in_eval = {};
  std::optional<double> grad_scale = {};
  std::vector<IndexEntry> tensors = {};
  std::vector<ShapeEntry> shapes = {};
  bool is_verified = false;  // decoded: the file had a checksum and it was right
};

// The whole file. With `with_checksum` false it is what the reference writes, byte for byte.
Bytes encode_index(const Index& index, bool with_checksum = true);
// kCorrupt with what is wrong; a checksum that is there and wrong is damage; two documents in one file are damage; an
// event file that is absolute or climbs out is damage. At most 256 MiB.
Result<Index> decode_index(ByteView text);

// Who takes the entries of an index one by one, in the order of the file. What it is given is valid during the call.
class IndexVisitor {
 public:
  struct Tensor {
    std::string_view name = {};
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::optional<std::uint32_t> crc = {};
  };
  struct ShapeRecord {
    std::string_view name = {};
    std::string_view original_name = {};
    std::span<const std::int64_t> shape = {};
  };
  virtual ~IndexVisitor() = default;
  // A list begins, and stands for any before it: the key may come twice.
  virtual void on_tensor_list() = 0;
  virtual void on_shape_list() = 0;
  virtual void on_tensor(const Tensor& tensor) = 0;
  virtual void on_shape(const ShapeRecord& record) = 0;
};

// decode_index for many files: the parser's memory is used again. Not for several threads at once.
class IndexDecoder {
 public:
  IndexDecoder();
  ~IndexDecoder();
  IndexDecoder(const IndexDecoder&) = delete;
  IndexDecoder& operator=(const IndexDecoder&) = delete;
  // The index with empty lists: the entries go to the visitor, and count only if the result is good. `text` may get a
  // larger capacity.
  Result<Index> decode(Bytes& text, IndexVisitor& visitor);

 private:
  struct Parser;
  std::unique_ptr<Parser> parser_;
};

}  // namespace tornasole::format
