#pragma once

// FlatBuilder: writes a FlatBuffers message, as far as Arrow's metadata needs it: tables, strings, vectors of tables
// and of structs. The message is built from its end, so that what is referred to comes before what refers to it.

#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

#include "base/bytes.h"

namespace tornasole::tools {

class FlatBuilder {
 public:
  // How far from the end of the message a finished part lies; 0 is none.
  using Part = std::uint32_t;

  Part add_string(std::string_view text);
  Part add_vector(std::span<const Part> parts);
  // `count` structs, their bytes one after the other, aligned to 8.
  Part add_structs(ByteView bytes, std::size_t count);

  // A table: its fields between begin and end, in any order. Parts it refers to are finished before begin.
  void begin_table();
  template <typename T>
  void set(std::size_t slot, T value) {
    static_assert(std::is_arithmetic_v<T>);
    align(sizeof(T), 0);
    push_number(value);
    note_slot(slot);
  }
  void set_part(std::size_t slot, Part part);
  Part end_table();

  // The whole message; its length is a multiple of 8.
  Bytes finish(Part root);

 private:
  void push(ByteView bytes);
  template <typename T>
  void push_number(T value) {
    char bytes[sizeof(T)];
    __builtin_memcpy(bytes, &value, sizeof(T));
    push({bytes, sizeof(T)});
  }
  // Pads so that after `more` further bytes the position is a multiple of `alignment`.
  void align(std::size_t alignment, std::size_t more);
  void note_slot(std::size_t slot);
  Part position() const { return static_cast<Part>(reversed_.size()); }

  std::vector<char> reversed_;  // the last byte of the message first
  std::vector<Part> slots_;     // of the table at hand; 0: absent
  Part table_end_ = 0;          // position before the table
};

}  // namespace tornasole::tools
