#include "trial/index_tables.h"

#include <xxhash.h>

#include <algorithm>
#include <iterator>

namespace tornasole::trial {

Location* LocationArena::allocate(std::size_t count) {
  constexpr std::size_t kBlock = 4096;
  constexpr std::size_t kFilesPerBlock = 16;
  if (count > left_) {
    // The first file gets what it needs: most hostile ones come alone.
    const std::size_t size = blocks_.empty() ? std::max(kBlock, count) : std::max(kBlock, count * kFilesPerBlock);
    blocks_.push_back(std::make_unique_for_overwrite<Location[]>(size));
    next_ = blocks_.back().get();
    left_ = size;
    total_ += size;
  }
  Location* const allocated = next_;
  next_ += count;
  left_ -= count;
  return allocated;
}

void LocationArena::adopt(LocationArena&& other) {
  blocks_.insert(blocks_.end(), std::make_move_iterator(other.blocks_.begin()),
                 std::make_move_iterator(other.blocks_.end()));
  total_ += other.total_;
  if (other.left_ > left_) {
    next_ = other.next_;
    left_ = other.left_;
  }
  other = LocationArena();
}

std::uint32_t Layouts::intern(std::span<const Series> series) {
  const std::uint64_t hash = XXH3_64bits(series.data(), series.size_bytes());
  const auto [first, last] = by_hash_.equal_range(hash);
  for (auto at = first; at != last; ++at) {
    if (std::ranges::equal(this->series(at->second), series)) return at->second;
  }
  const std::uint32_t layout = size();
  layouts_.push_back(keep(series));
  by_hash_.emplace(hash, layout);
  return layout;
}

std::span<const Series> Layouts::keep(std::span<const Series> series) {
  constexpr std::size_t kBlock = 16'384;
  if (series.size() > free_.size()) {
    const std::size_t size = blocks_.empty() ? series.size() : std::max(kBlock, series.size());
    blocks_.push_back(std::make_unique_for_overwrite<Series[]>(size));
    free_ = {blocks_.back().get(), size};
    total_series_ += size;
  }
  const std::span<Series> kept = free_.first(series.size());
  std::ranges::copy(series, kept.begin());
  free_ = free_.subspan(series.size());
  return kept;
}

std::int64_t Layouts::find(std::uint32_t layout, Series wanted) const noexcept {
  const auto all = series(layout);
  const auto found = std::lower_bound(all.begin(), all.end(), wanted);
  return found != all.end() && *found == wanted ? found - all.begin() : -1;
}

std::pair<std::size_t, std::size_t> Layouts::find_tensor(std::uint32_t layout, std::uint32_t tensor) const noexcept {
  const auto all = series(layout);
  const auto first = std::lower_bound(all.begin(), all.end(), series_of(tensor, kValueSeries));
  const auto last = std::find_if(first, all.end(), [&](Series s) { return tensor_of(s) != tensor; });
  return {static_cast<std::size_t>(first - all.begin()), static_cast<std::size_t>(last - all.begin())};
}

std::int64_t Layouts::size_bytes() const noexcept {
  constexpr std::size_t kHashNode = 40;
  return static_cast<std::int64_t>(total_series_ * sizeof(Series) + layouts_.capacity() * sizeof(layouts_[0]) +
                                   by_hash_.size() * kHashNode);
}

ShapeTable::ShapeTable() : seed_(make_hash_seed()), slots_(64, 0) {}

std::size_t ShapeTable::slot_of(std::span<const std::int64_t> wanted) const noexcept {
  const std::size_t mask = slots_.size() - 1;
  std::size_t slot = XXH3_64bits_withSeed(wanted.data(), wanted.size_bytes(), seed_) & mask;
  while (slots_[slot] != 0 && !std::ranges::equal(dims(slots_[slot] - 1), wanted)) slot = (slot + 1) & mask;
  return slot;
}

std::uint32_t ShapeTable::intern(std::span<const std::int64_t> wanted) {
  std::size_t slot = slot_of(wanted);
  if (slots_[slot] != 0) return slots_[slot] - 1;
  if ((std::size_t{size()} + 1) * 3 > slots_.size() * 2) {
    slots_.assign(slots_.size() * 2, 0);
    for (std::uint32_t id = 0; id < size(); ++id) slots_[slot_of(dims(id))] = id + 1;
    slot = slot_of(wanted);
  }
  dims_.insert(dims_.end(), wanted.begin(), wanted.end());
  bounds_.push_back(dims_.size());
  slots_[slot] = size();
  return size() - 1;
}

std::int64_t ShapeTable::size_bytes() const noexcept {
  return static_cast<std::int64_t>(slots_.capacity() * sizeof(slots_[0]) + dims_.capacity() * sizeof(dims_[0]) +
                                   bounds_.capacity() * sizeof(bounds_[0]));
}

void OriginalNames::set(std::uint32_t tensor, std::string_view name, std::string_view original) {
  if (tensor >= by_tensor_.size()) by_tensor_.resize(tensor + 1, kNone);
  by_tensor_[tensor] = original == name ? kSame : different_.intern(original) + 1;
}

const std::string& OriginalNames::get(std::uint32_t tensor, const TensorNames& names) const noexcept {
  static const std::string kEmpty;
  const std::uint32_t place = tensor < by_tensor_.size() ? by_tensor_[tensor] : kNone;
  if (place == kNone) return kEmpty;
  return place == kSame ? names.name(tensor) : different_.name(place - 1);
}

void OriginalNames::merge(const OriginalNames& other, const TensorNames& names, std::span<const std::uint32_t> to) {
  for (std::uint32_t tensor = 0; tensor < other.by_tensor_.size(); ++tensor) {
    const std::uint32_t place = other.by_tensor_[tensor];
    if (place == kNone) continue;
    const std::string& name = names.name(to[tensor]);
    set(to[tensor], name, place == kSame ? name : other.different_.name(place - 1));
  }
}

std::int64_t OriginalNames::size_bytes() const noexcept {
  return static_cast<std::int64_t>(by_tensor_.capacity() * sizeof(by_tensor_[0])) + different_.size_bytes();
}

}  // namespace tornasole::trial
