#pragma once

// What the names of directories and tags of TensorBoard say: the mode, and which tags mean the same in two modes.

#include <optional>
#include <string>
#include <string_view>

#include "tornasole/mode.h"

namespace tornasole::tools {

// "train", "TRAIN", "validation", "val", "eval", "test", ... as a mode; nothing for other words.
std::optional<Mode> mode_of_word(std::string_view word);

// A directory of TensorBoard, split into the run and the mode that its last part names.
struct RunName {
  std::string run = {};  // "." for the root
  std::optional<Mode> mode = {};
};
RunName split_run(std::string_view directory);

// "Loss/val", "val/Loss" and "val_Loss" are "Loss" of EVAL.
struct TagName {
  std::string name = {};
  std::optional<Mode> mode = {};
};
TagName split_tag(std::string_view tag);

// Whether a curve of that name is a loss.
bool is_loss_name(std::string_view name);

}  // namespace tornasole::tools
