#include "plan/name_table.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <algorithm>
#include <cstring>

namespace tornasole::plan {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{64} << 10;
constexpr std::size_t kFirstSlots = 16384;  // 128 KiB: a large model never grows it

}  // namespace

NameTable::Found NameTable::intern(std::string_view name) {
  if (4 * (names_.size() + 1) > 3 * slots_.size()) grow();
  const auto hash = static_cast<std::uint32_t>(XXH3_64bits(name.data(), name.size()));
  const std::size_t mask = slots_.size() - 1;
  Slot* slots = slots_.data();
  std::size_t at = hash & mask;
  while (slots[at].id_plus_one != 0) {
    const std::uint32_t id = slots[at].id_plus_one - 1;
    if (slots[at].hash == hash && names_[id] == name) return {id, false};
    at = (at + 1) & mask;
  }
  const auto id = static_cast<std::uint32_t>(names_.size());
  names_.push_back(store(name));
  slots[at] = {hash, id + 1};
  return {id, true};
}

std::string_view NameTable::store(std::string_view name) {
  if (name.empty()) return {};
  if (name.size() > block_free_ || blocks_.empty()) {
    block_free_ = std::max(kBlockBytes, name.size());
    blocks_.push_back(std::make_unique_for_overwrite<char[]>(block_free_));
  }
  // Filled from the end, so that what is free is one number.
  block_free_ -= name.size();
  char* place = blocks_.back().get() + block_free_;
  std::memcpy(place, name.data(), name.size());
  return {place, name.size()};
}

void NameTable::grow() {
  std::vector<Slot> slots(std::max(kFirstSlots, slots_.size() * 2));
  const std::size_t mask = slots.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id_plus_one == 0) continue;
    std::size_t at = slot.hash & mask;
    while (slots[at].id_plus_one != 0) at = (at + 1) & mask;
    slots[at] = slot;
  }
  slots_ = std::move(slots);
}

}  // namespace tornasole::plan
