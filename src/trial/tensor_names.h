#pragma once

// TensorNames: tensor names as small numbers, in the order of first use. Names come from files anybody may have
// written, so the hash is seeded: no set of names can be made that falls into one place.

#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tornasole::trial {

// For hash tables whose keys come from files.
std::uint64_t make_hash_seed();

class TensorNames {
 public:
  TensorNames();

  // The id of the name, given to it now if it is new.
  std::uint32_t intern(std::string_view name);
  std::optional<std::uint32_t> find(std::string_view name) const noexcept;

  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(names_.size()); }
  // Its address stays.
  const std::string& name(std::uint32_t id) const noexcept { return names_[id]; }
  std::int64_t size_bytes() const noexcept;

 private:
  // With the hash beside the number, looking past other names and growing touch no name.
  struct Slot {
    std::uint32_t hash = 0;
    std::uint32_t id_plus_one = 0;  // 0: free
  };
  std::uint32_t hash_of(std::string_view name) const noexcept;
  // The slot of the name, or the free one where it belongs.
  std::size_t slot_of(std::string_view name, std::uint32_t hash) const noexcept;
  void grow();

  std::uint64_t seed_;
  std::vector<Slot> slots_;  // a power of two, at most two thirds full
  std::deque<std::string> names_;
  std::int64_t long_name_bytes_ = 0;  // of names that do not fit into a std::string itself
};

}  // namespace tornasole::trial
