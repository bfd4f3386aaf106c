#pragma once

// CheckpointFiles: whether the checkpoints in a directory are other ones than before.
//
//   tornasole::CheckpointFiles files("checkpoints");
//   if (auto changed = files.have_changed(); changed && *changed) files.accept();   // remembered; the next is compared
//
// A checkpoint is any file of the directory or below it, apart from the state file that capture keeps there
// (metadata.json) and what an uploader leaves (names with "sagemaker-uploaded"). Links to directories are not followed.
// Not for several threads at once.

#include <memory>
#include <string>

#include "tornasole/export.h"
#include "tornasole/result.h"

namespace tornasole {

class TORNASOLE_EXPORT CheckpointFiles {
 public:
  // Looks at nothing yet: the first answer compares with an empty directory.
  explicit CheckpointFiles(std::string directory);
  CheckpointFiles(CheckpointFiles&&) noexcept;
  CheckpointFiles& operator=(CheckpointFiles&&) noexcept;
  ~CheckpointFiles();

  // Whether one was added, removed, resized or touched since the last look that was accepted. Never for a directory
  // that has none or is not there. kInvalid beyond 100 000 files or 32 levels, kIo if it cannot be looked at.
  Result<bool> have_changed();
  // What the last look saw is what later ones are compared with.
  void accept();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tornasole
