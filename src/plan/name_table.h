#pragma once

// NameTable: tensor names as small numbers, in the order of first use. A lookup of a known name is one hash and one
// comparison; names are stored once, at addresses that stay.

#include <cstdint>
#include <deque>
#include <memory>
#include <string_view>
#include <vector>

namespace tornasole::plan {

class NameTable {
 public:
  struct Found {
    std::uint32_t id = 0;
    bool is_new = false;
  };
  // The id of the name, given to it now if it is new.
  Found intern(std::string_view name);

  std::size_t size() const noexcept { return names_.size(); }
  std::string_view name(std::uint32_t id) const noexcept { return names_[id]; }

 private:
  struct Slot {
    std::uint32_t hash = 0;         // gives the place, and spares the comparison with most other names
    std::uint32_t id_plus_one = 0;  // 0: free
  };
  std::string_view store(std::string_view name);
  void grow();

  std::vector<Slot> slots_;                      // a power of two, at most three quarters full
  std::deque<std::string_view> names_;           // grows without being copied
  std::vector<std::unique_ptr<char[]>> blocks_;  // the characters of the names
  std::size_t block_free_ = 0;                   // left in the last block
};

}  // namespace tornasole::plan
