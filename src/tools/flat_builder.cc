#include "tools/flat_builder.h"

#include <algorithm>

namespace tornasole::tools {

void FlatBuilder::push(ByteView bytes) { reversed_.insert(reversed_.end(), bytes.rbegin(), bytes.rend()); }

void FlatBuilder::align(std::size_t alignment, std::size_t more) {
  const std::size_t rest = (reversed_.size() + more) % alignment;
  if (rest != 0) reversed_.resize(reversed_.size() + alignment - rest, '\0');
}

FlatBuilder::Part FlatBuilder::add_string(std::string_view text) {
  align(4, text.size() + 1);
  push_number<char>('\0');
  push(text);
  push_number(static_cast<std::uint32_t>(text.size()));
  return position();
}

FlatBuilder::Part FlatBuilder::add_vector(std::span<const Part> parts) {
  align(4, 4 * parts.size());
  // References are counted from where they stand.
  for (std::size_t i = parts.size(); i-- > 0;) push_number<std::uint32_t>(position() + 4 - parts[i]);
  push_number(static_cast<std::uint32_t>(parts.size()));
  return position();
}

FlatBuilder::Part FlatBuilder::add_structs(ByteView bytes, std::size_t count) {
  align(8, bytes.size());
  push(bytes);
  push_number(static_cast<std::uint32_t>(count));
  return position();
}

void FlatBuilder::begin_table() {
  slots_.clear();
  table_end_ = position();
}

void FlatBuilder::note_slot(std::size_t slot) {
  if (slots_.size() <= slot) slots_.resize(slot + 1);
  slots_[slot] = position();
}

void FlatBuilder::set_part(std::size_t slot, Part part) {
  if (part == 0) return;
  align(4, 4);
  push_number<std::uint32_t>(position() + 4 - part);
  note_slot(slot);
}

// The table begins with the distance to its list of fields, which is put right before it.
FlatBuilder::Part FlatBuilder::end_table() {
  align(4, 4);
  push_number<std::int32_t>(0);
  const Part table = position();
  for (std::size_t slot = slots_.size(); slot-- > 0;) {
    push_number<std::uint16_t>(static_cast<std::uint16_t>(slots_[slot] == 0 ? 0 : table - slots_[slot]));
  }
  push_number(static_cast<std::uint16_t>(table - table_end_));
  push_number(static_cast<std::uint16_t>(4 + 2 * slots_.size()));
  const std::uint32_t distance = position() - table;
  for (std::size_t i = 0; i < 4; ++i) reversed_[table - 1 - i] = static_cast<char>(distance >> (8 * i));
  return table;
}

Bytes FlatBuilder::finish(Part root) {
  align(8, 4);
  push_number<std::uint32_t>(position() + 4 - root);
  Bytes message(reversed_.rbegin(), reversed_.rend());
  return message;
}

}  // namespace tornasole::tools
