#pragma once

// TrialModels: what the workers say of their models, one file each. Files others may have written: one that cannot be
// used is left out, and the trial is no worse for it.

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "store/store.h"
#include "tornasole/model.h"
#include "tornasole/trial.h"

namespace tornasole::trial {

class TrialModels {
 public:
  // Reads the files that are new or changed since the last time, and returns those that cannot be used; kIo if the
  // store fails. `now_s` is the wall clock. A damaged file that changed a moment ago may be one that is still being
  // copied: it is looked at again, unless `is_final`.
  Result<std::vector<Damage>> load(store::Store& store, double now_s, bool is_final);
  // Damage of this file is to be met again.
  void forget(const std::string& path) { files_.erase(path); }

  // By worker, as shown to users.
  const std::map<std::string, StoredModel, std::less<>>& all() const noexcept { return models_; }

 private:
  Status load_file(store::Store& store, const store::Entry& entry, const std::string& worker, bool may_be_young,
                   std::vector<Damage>* damage);

  std::map<std::string, store::FileStatus, std::less<>> files_;  // by path: those that need not be read again
  std::map<std::string, StoredModel, std::less<>> models_;
};

}  // namespace tornasole::trial
