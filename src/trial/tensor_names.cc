#include "trial/tensor_names.h"

#include <xxhash.h>

#include <random>

namespace tornasole::trial {
namespace {

constexpr std::size_t kFirstSlots = 64;

}  // namespace

std::uint64_t make_hash_seed() {
  std::random_device device;
  return (std::uint64_t{device()} << 32U) | device();
}

TensorNames::TensorNames() : seed_(make_hash_seed()), slots_(kFirstSlots) {}

std::uint32_t TensorNames::hash_of(std::string_view name) const noexcept {
  return static_cast<std::uint32_t>(XXH3_64bits_withSeed(name.data(), name.size(), seed_));
}

std::size_t TensorNames::slot_of(std::string_view name, std::uint32_t hash) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t place = hash & mask;
  for (;; place = (place + 1) & mask) {
    const Slot& slot = slots_[place];
    if (slot.id_plus_one == 0 || (slot.hash == hash && names_[slot.id_plus_one - 1] == name)) return place;
  }
}

std::optional<std::uint32_t> TensorNames::find(std::string_view name) const noexcept {
  const std::uint32_t id_plus_one = slots_[slot_of(name, hash_of(name))].id_plus_one;
  return id_plus_one == 0 ? std::nullopt : std::optional(id_plus_one - 1);
}

std::uint32_t TensorNames::intern(std::string_view name) {
  const std::uint32_t hash = hash_of(name);
  std::size_t place = slot_of(name, hash);
  if (slots_[place].id_plus_one != 0) return slots_[place].id_plus_one - 1;
  if ((names_.size() + 1) * 3 > slots_.size() * 2) {
    grow();
    place = slot_of(name, hash);
  }
  names_.emplace_back(name);
  const std::size_t capacity = names_.back().capacity();
  if (capacity > std::string().capacity()) long_name_bytes_ += static_cast<std::int64_t>(capacity) + 1;
  slots_[place] = {.hash = hash, .id_plus_one = size()};
  return size() - 1;
}

void TensorNames::grow() {
  std::vector<Slot> larger(slots_.size() * 2);
  const std::size_t mask = larger.size() - 1;
  for (const Slot& slot : slots_) {
    if (slot.id_plus_one == 0) continue;
    std::size_t place = slot.hash & mask;
    while (larger[place].id_plus_one != 0) place = (place + 1) & mask;
    larger[place] = slot;
  }
  slots_ = std::move(larger);
}

std::int64_t TensorNames::size_bytes() const noexcept {
  return static_cast<std::int64_t>(slots_.capacity() * sizeof(slots_[0]) + names_.size() * sizeof(names_[0])) +
         long_name_bytes_;
}

}  // namespace tornasole::trial
