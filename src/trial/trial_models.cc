#include "trial/trial_models.h"

#include <set>
#include <string_view>
#include <utility>

#include "base/errors.h"
#include "format/model_file.h"
#include "format/paths.h"
#include "trial/young_files.h"

namespace tornasole::trial {
namespace {

constexpr std::string_view kDirectory = "tornasole";
constexpr std::string_view kSuffix = "_model.json";

// "tornasole/worker_0_model.json" -> "worker_0"; empty for any other name.
std::string worker_of(std::string_view path) {
  std::string_view name = path.substr(path.rfind('/') + 1);
  if (!name.ends_with(kSuffix)) return {};
  name.remove_suffix(kSuffix.size());
  return format::is_safe_worker(name) ? format::decode_worker(name) : std::string();
}

bool is_same(const store::FileStatus& one, const store::FileStatus& other) noexcept {
  return one.size_bytes == other.size_bytes && one.modified_s == other.modified_s;
}

}  // namespace

Status TrialModels::load_file(store::Store& store, const store::Entry& entry, const std::string& worker,
                              bool may_be_young, std::vector<Damage>* damage) {
  const auto text = store.read_all(entry.path, format::kMaxModelFileBytes);
  if (!text.ok() && text.error().code == ErrorCode::kIo) return text.error();
  // Gone since the listing is no damage.
  if (!text.ok() && text.error().code == ErrorCode::kNotFound) return {};
  auto model = text.ok() ? format::decode_model(*text) : Result<StoredModel>(text.error());
  if (!model.ok() && text.ok() && may_be_young) return {};
  files_[entry.path] = entry.status;
  if (model.ok()) {
    models_.insert_or_assign(worker, std::move(*model));
  } else {
    models_.erase(worker);
    damage->push_back({.path = entry.path, .what = model.error().message});
  }
  return {};
}

Result<std::vector<Damage>> TrialModels::load(store::Store& store, double now_s, bool is_final) {
  auto listed = store.list(kDirectory, /*recursive=*/false);
  if (!listed.ok() && listed.error().code == ErrorCode::kIo) return listed.error();
  // As of health files: anything odd in place of the directory counts as no files.
  const std::vector<store::Entry> entries = listed.ok() ? std::move(*listed) : std::vector<store::Entry>();
  std::vector<Damage> damage;
  std::set<std::string, std::less<>> workers;
  std::set<std::string_view> paths;
  for (const store::Entry& entry : entries) {
    const std::string worker = entry.status.is_directory ? std::string() : worker_of(entry.path);
    if (worker.empty()) continue;
    workers.insert(worker);
    paths.insert(entry.path);
    const auto known = files_.find(entry.path);
    if (known != files_.end() && is_same(known->second, entry.status)) continue;
    const bool may_be_young = !is_final && is_young(entry.status.modified_s, now_s);
    TORNASOLE_CHECK(load_file(store, entry, worker, may_be_young, &damage));
  }
  std::erase_if(models_, [&](const auto& model) { return !workers.contains(model.first); });
  std::erase_if(files_, [&](const auto& file) { return !paths.contains(file.first); });
  return damage;
}

}  // namespace tornasole::trial
