#include "trial/index_packs.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>

#include "base/errors.h"

namespace tornasole::trial {
namespace {

// What a request costs beside its bytes, in bytes.
constexpr std::uint64_t kRequestBytes = std::uint64_t{32} << 10U;
// Packs of a sound run cover each file once. Where they overlap without end, the rest of them is left aside.
constexpr std::size_t kMaxLooksPerFile = 8;

// Gives files to packs.
class PackChooser {
 public:
  explicit PackChooser(const std::vector<IndexFile>& files)
      : files_(files), is_given_(files.size()), looks_left_(kMaxLooksPerFile * files.size()) {
    for (std::size_t place = 0; place < files.size(); ++place)
      by_worker_[files[place].worker_file_name].push_back(place);
    for (auto& [worker, places] : by_worker_) {
      std::ranges::stable_sort(places, {}, [&](std::size_t place) { return files_[place].step; });
    }
  }

  // The places of what is to be read from this pack, ascending; none if it does not pay.
  std::vector<std::size_t> choose(const format::IndexPackName& name, std::uint64_t pack_bytes) {
    const auto worker = by_worker_.find(name.worker_file_name);
    if (worker == by_worker_.end()) return {};
    const auto step_of = [&](std::size_t place) { return files_[place].step; };
    auto at = std::ranges::lower_bound(worker->second, name.first_step, {}, step_of);
    std::vector<std::size_t> places;
    std::uint64_t cost = 0;
    for (; at != worker->second.end() && step_of(*at) <= name.last_step && looks_left_ > 0; ++at, --looks_left_) {
      const store::FileStatus& status = files_[*at].status;
      if (is_given_[*at] || status.version.empty() || status.size_bytes > format::kMaxPackedIndexBytes) continue;
      places.push_back(*at);
      cost += status.size_bytes + kRequestBytes;
    }
    if (places.size() < 2 || pack_bytes > cost) return {};
    for (const std::size_t place : places) is_given_[place] = true;
    std::ranges::sort(places);
    return places;
  }

  bool is_given(std::size_t place) const noexcept { return is_given_[place]; }

 private:
  const std::vector<IndexFile>& files_;
  std::map<std::string, std::vector<std::size_t>, std::less<>> by_worker_;  // by step
  std::vector<bool> is_given_;
  std::size_t looks_left_;
};

struct ChosenPack {
  std::string path;
  std::vector<std::size_t> places;
};

std::vector<ChosenPack> choose_packs(store::Store& store, PackChooser* chooser, std::vector<Damage>* notes) {
  std::vector<ChosenPack> chosen;
  auto entries = store.list(format::kIndexPackDirectory, /*recursive=*/false);
  if (!entries.ok()) {
    notes->push_back(unused_pack(format::kIndexPackDirectory, entries.error().message));
    return chosen;
  }
  for (store::Entry& entry : *entries) {
    const auto name = format::parse_index_pack_path(entry.path);
    if (!name || entry.status.is_directory) continue;
    const std::uint64_t bytes = entry.status.size_bytes;
    if (bytes > format::kMaxIndexPackBytes) {
      notes->push_back(
          unused_pack(entry.path, fmt::format("it has {} bytes, more than {}", bytes, format::kMaxIndexPackBytes)));
      continue;
    }
    auto places = chooser->choose(*name, bytes);
    if (!places.empty()) chosen.push_back({std::move(entry.path), std::move(places)});
  }
  return chosen;
}

}  // namespace

Damage unused_pack(std::string_view path, std::string_view why) {
  return {.path = std::string(path), .what = fmt::format("not used, the index files are read instead: {}", why)};
}

IndexPlan plan_index_reading(store::Store& store, const std::vector<IndexFile>& files) {
  IndexPlan plan;
  if (!store.capabilities().is_remote || files.size() < format::kMinPackedFiles) {
    plan.order.resize(files.size());
    std::iota(plan.order.begin(), plan.order.end(), std::size_t{0});
    plan.pieces.push_back({.last = files.size()});
    return plan;
  }
  PackChooser chooser(files);
  std::vector<ChosenPack> packs = choose_packs(store, &chooser, &plan.notes);
  std::ranges::sort(packs, {}, [](const ChosenPack& pack) { return pack.places.back(); });
  plan.order.reserve(files.size());
  auto add_singles = [&, next = std::size_t{0}](std::size_t end) mutable {
    const std::size_t first = plan.order.size();
    for (; next < end; ++next) {
      if (!chooser.is_given(next)) plan.order.push_back(next);
    }
    if (plan.order.size() > first) plan.pieces.push_back({.first = first, .last = plan.order.size()});
  };
  for (ChosenPack& pack : packs) {
    add_singles(pack.places.back());
    const std::size_t first = plan.order.size();
    std::ranges::copy(pack.places, std::back_inserter(plan.order));
    plan.pieces.push_back({.first = first, .last = plan.order.size(), .pack = std::move(pack.path)});
  }
  add_singles(files.size());
  return plan;
}

Result<OpenPack> OpenPack::read(store::Store& store, const std::string& path) {
  OpenPack pack;
  TORNASOLE_TRY(Bytes bytes, store.read_all(path, format::kMaxIndexPackBytes));
  pack.bytes_ = std::make_unique<const Bytes>(std::move(bytes));
  TORNASOLE_TRY(pack.entries_, format::decode_index_pack(*pack.bytes_));
  std::ranges::stable_sort(pack.entries_, {}, &format::PackedIndex::path);
  return pack;
}

std::optional<ByteView> OpenPack::find(const IndexFile& file) const {
  const auto found = std::ranges::equal_range(entries_, file.path, {}, &format::PackedIndex::path);
  for (const format::PackedIndex& entry : found) {
    const bool is_as_listed =
        !entry.version.empty() && entry.version == file.status.version && entry.text.size() == file.status.size_bytes;
    if (is_as_listed) return entry.text;
  }
  return std::nullopt;
}

}  // namespace tornasole::trial
