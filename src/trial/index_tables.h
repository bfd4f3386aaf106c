#pragma once

// What index files have in common, kept once: tensor names, layouts (which series a file holds), shapes. A run writes
// the same names step after step, so a file costs little more than the places of its values.

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "tornasole/tensor.h"
#include "trial/series.h"
#include "trial/tensor_names.h"

namespace tornasole::trial {

// Where one record lies; of a shape record, which shape.
struct Location {
  static constexpr std::uint64_t kHasCrc = std::uint64_t{1} << 63U;

  std::uint64_t offset_and_flag = 0;
  std::uint32_t length_bytes = 0;  // UINT32_MAX: more than any record may have
  std::uint32_t crc = 0;

  std::uint64_t offset() const noexcept { return offset_and_flag & ~kHasCrc; }
  bool has_crc() const noexcept { return (offset_and_flag & kHasCrc) != 0; }
};
static_assert(sizeof(Location) == 16);

// Memory for the locations of one file after the other; addresses stay.
class LocationArena {
 public:
  Location* allocate(std::size_t count);
  // Takes over all memory of `other`.
  void adopt(LocationArena&& other);
  std::int64_t size_bytes() const noexcept { return static_cast<std::int64_t>(total_ * sizeof(Location)); }

 private:
  std::vector<std::unique_ptr<Location[]>> blocks_;
  Location* next_ = nullptr;
  std::size_t left_ = 0;
  std::size_t total_ = 0;
};

// Sets of series, each sorted and stored once.
class Layouts {
 public:
  // `series` is sorted and has no element twice.
  std::uint32_t intern(std::span<const Series> series);
  std::span<const Series> series(std::uint32_t layout) const noexcept { return layouts_[layout]; }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(layouts_.size()); }
  // The place of a series in the layout, or -1.
  std::int64_t find(std::uint32_t layout, Series series) const noexcept;
  // The places [first, second) of all series of a tensor.
  std::pair<std::size_t, std::size_t> find_tensor(std::uint32_t layout, std::uint32_t tensor) const noexcept;
  bool has_tensor(std::uint32_t layout, std::uint32_t tensor) const noexcept {
    const auto [first, last] = find_tensor(layout, tensor);
    return first != last;
  }
  std::int64_t size_bytes() const noexcept;

 private:
  // Copies of `series` that stay where they are. In blocks: one growing list would often be half empty.
  std::span<const Series> keep(std::span<const Series> series);

  std::vector<std::unique_ptr<Series[]>> blocks_;
  std::span<Series> free_;        // of the last block
  std::size_t total_series_ = 0;  // in all blocks, free ones included
  std::vector<std::span<const Series>> layouts_;
  std::unordered_multimap<std::uint64_t, std::uint32_t> by_hash_;
};

// Shapes, each stored once.
class ShapeTable {
 public:
  ShapeTable();
  std::uint32_t intern(std::span<const std::int64_t> dims);
  std::span<const std::int64_t> dims(std::uint32_t id) const noexcept {
    return {dims_.data() + bounds_[id], dims_.data() + bounds_[id + 1]};
  }
  std::uint32_t size() const noexcept { return static_cast<std::uint32_t>(bounds_.size() - 1); }
  std::int64_t size_bytes() const noexcept;

 private:
  // The slot of the shape, or the free one where it belongs.
  std::size_t slot_of(std::span<const std::int64_t> dims) const noexcept;

  std::uint64_t seed_;
  std::vector<std::uint32_t> slots_;  // id + 1, 0 if free; a power of two, at most two thirds full
  std::vector<std::int64_t> dims_;
  std::vector<std::size_t> bounds_ = {0};
};

// The framework's own name of a tensor, where a saved shape carries one.
class OriginalNames {
 public:
  void set(std::uint32_t tensor, std::string_view name, std::string_view original);
  // Empty if there is none.
  const std::string& get(std::uint32_t tensor, const TensorNames& names) const noexcept;
  std::int64_t size_bytes() const noexcept;
  // What `other` knows, its tensors numbered as `to` says.
  void merge(const OriginalNames& other, const TensorNames& names, std::span<const std::uint32_t> to);

 private:
  static constexpr std::uint32_t kNone = 0;
  static constexpr std::uint32_t kSame = UINT32_MAX;
  std::vector<std::uint32_t> by_tensor_;  // kNone, kSame, or id + 1 of a different name
  TensorNames different_;
};

struct IndexTables {
  TensorNames names;
  Layouts layouts;
  ShapeTable shapes;
  OriginalNames original_names;

  std::int64_t size_bytes() const noexcept {
    return names.size_bytes() + layouts.size_bytes() + shapes.size_bytes() + original_names.size_bytes();
  }
};

}  // namespace tornasole::trial
