#include "capture/index_packer.h"

#include <algorithm>
#include <utility>

#include "base/errors.h"

namespace tornasole::capture {
namespace {

constexpr std::size_t kMaxFiles = 256;
constexpr std::size_t kMaxBytes = std::size_t{4} << 20U;
// Whatever is added last, the pack stays below what is read.
static_assert(kMaxBytes + 2 * format::kMaxPackedIndexBytes <= format::kMaxIndexPackBytes);

}  // namespace

IndexPacker::IndexPacker(store::Store* store, std::string worker, bool is_tidying)
    : store_(store), is_wanted_(store->capabilities().is_remote), is_tidying_(is_tidying) {
  name_.worker_file_name = std::move(worker);
}

void IndexPacker::add(const PublishedIndex& index) {
  if (!is_wanted_ || index.version.empty() || index.text.size() > format::kMaxPackedIndexBytes) return;
  format::append_to_index_pack({index.path, index.version, index.text}, &pack_);
  name_.first_step = count_ == 0 ? index.step : std::min(name_.first_step, index.step);
  name_.last_step = count_ == 0 ? index.step : std::max(name_.last_step, index.step);
  ++count_;
}

bool IndexPacker::is_due() const noexcept { return count_ >= kMaxFiles || pack_.size() >= kMaxBytes; }

Status IndexPacker::write() {
  if (count_ < format::kMinPackedFiles && !is_due()) return {};
  const Bytes pack = std::exchange(pack_, {});
  count_ = 0;
  TORNASOLE_TRY(const auto file, store_->create(format::index_pack_path(name_)));
  TORNASOLE_CHECK(file->append(pack));
  TORNASOLE_CHECK(file->publish(/*replace=*/true));
  if (is_tidying_) made_.push_back(name_);
  return {};
}

Status IndexPacker::find_made() {
  if (!is_wanted_ || !is_tidying_) return {};
  TORNASOLE_TRY(const auto entries, store_->list(format::kIndexPackDirectory, /*recursive=*/false));
  for (const store::Entry& entry : entries) {
    auto name = format::parse_index_pack_path(entry.path);
    if (name && name->worker_file_name == name_.worker_file_name) made_.push_back(std::move(*name));
  }
  return {};
}

Status IndexPacker::remove_before(std::int64_t step) {
  while (!made_.empty() && made_.front().last_step < step) {
    const std::string path = format::index_pack_path(made_.front());
    made_.pop_front();
    Status removed = store_->remove(path);
    if (!removed.ok() && removed.error().code != ErrorCode::kNotFound) return removed;
  }
  return {};
}

}  // namespace tornasole::capture
