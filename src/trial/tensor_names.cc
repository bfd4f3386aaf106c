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

TensorNames::TensorNames() : seed_(make_hash_seed()), slots_(kFirstSlots, 0) {}

std::size_t TensorNames::slot_of(std::string_view name) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = XXH3_64bits_withSeed(name.data(), name.size(), seed_) & mask;
  while (slots_[slot] != 0 && names_[slots_[slot] - 1] != name) slot = (slot + 1) & mask;
  return slot;
}

std::optional<std::uint32_t> TensorNames::find(std::string_view name) const noexcept {
  const std::uint32_t id_plus_one = slots_[slot_of(name)];
  return id_plus_one == 0 ? std::nullopt : std::optional(id_plus_one - 1);
}

std::uint32_t TensorNames::intern(std::string_view name) {
  std::size_t slot = slot_of(name);
  if (slots_[slot] != 0) return slots_[slot] - 1;
  if ((names_.size() + 1) * 3 > slots_.size() * 2) {
    grow();
    slot = slot_of(name);
  }
  names_.emplace_back(name);
  const std::size_t capacity = names_.back().capacity();
  if (capacity > std::string().capacity()) long_name_bytes_ += static_cast<std::int64_t>(capacity) + 1;
  slots_[slot] = size();
  return size() - 1;
}

void TensorNames::grow() {
  slots_.assign(slots_.size() * 2, 0);
  for (std::uint32_t id = 0; id < size(); ++id) slots_[slot_of(names_[id])] = id + 1;
}

std::int64_t TensorNames::size_bytes() const noexcept {
  return static_cast<std::int64_t>(slots_.capacity() * sizeof(slots_[0]) + names_.size() * sizeof(names_[0])) +
         long_name_bytes_;
}

}  // namespace tornasole::trial
