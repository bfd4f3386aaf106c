#include "tensorboard/step_summaries.h"

#include <fmt/format.h>

#include "base/errors.h"
#include "store/store_path.h"
#include "tensorboard/summary_event.h"

namespace tornasole::tensorboard {
namespace {

// Letters, digits, . and - of a host's name; it becomes part of a path.
std::string safe_host(std::string_view host) {
  std::string safe(host.substr(0, 100));
  for (char& c : safe) {
    const bool is_plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (!is_plain && c != '.' && c != '-' && c != '_') c = '_';
  }
  return safe.empty() ? "localhost" : safe;
}

// A process that died in the middle of a step may have had our number: what it left is nobody's.
Result<std::unique_ptr<store::PendingFile>> create_anew(store::Store* store, const std::string& path) {
  auto created = store->create(path);
  if (created.ok()) return created;
  const std::string left = fmt::format("{}{}", path, store::kTemporarySuffix);
  if (!store->status(left).ok() || !store->remove(left).ok()) return created;
  return store->create(path);
}

}  // namespace

void StepSummaries::add(double wall_time, ByteView payload) {
  if (count_++ == 0) append_record(encode_version(wall_time), &gathered_);
  append_record(payload, &gathered_);
}

std::string StepSummaries::path(const SummaryPlace& place) const {
  return fmt::format("{}{}{}/{:012}_{}_{}.tfevents", place.directory, place.directory.empty() ? "" : "/",
                     mode_name(mode_), step_, place.process, safe_host(place.host));
}

Status StepSummaries::flush(const SummaryPlace& place) {
  if (gathered_.empty()) return {};
  if (!file_) {
    TORNASOLE_TRY(file_, create_anew(place.store, path(place)));
  }
  TORNASOLE_CHECK(file_->append(gathered_));
  gathered_.clear();
  return {};
}

Status StepSummaries::publish(const SummaryPlace& place) {
  Status published = flush(place);
  if (published.ok() && file_) published = file_->publish(/*replace=*/true);
  if (!published.ok() && file_) file_->abandon();
  file_.reset();
  gathered_.clear();
  return published;
}

}  // namespace tornasole::tensorboard
