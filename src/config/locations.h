#pragma once

// Where things are written: out_dir, the TensorBoard directory, the checkpoint directory, the configuration file.

#include <string>
#include <string_view>

#include "config/config.h"
#include "config/environment.h"
#include "config/problems.h"
#include "tornasole/result.h"

namespace tornasole::config {

inline constexpr std::size_t kMaxConfigBytes = std::size_t{1} << 20;
inline constexpr int kMaxConfigDepth = 64;
inline constexpr std::string_view kSageMakerOutDir = "/opt/ml/output/tensors";

// `~` and `~user` replaced; unchanged for s3:// and for a user nobody knows.
std::string expand_home(const std::string& path, const Environment& environment);
// Absolute, without ".", repeated or trailing slashes; ".." stays, since what it means depends on links. s3:// paths
// keep their form with repeated slashes made one. kInvalid for an empty path, a NUL character, or no bucket.
Result<std::string> absolute_location(const std::string& path);

// Fills out_dir and location from the text as given.
void set_out_dir(const std::string& given, const Place& place, const Environment& environment, Config* config,
                 Problems* problems);
// What a hook's own parameters say: `given`, or <out_dir>/tensorboard if on; nothing otherwise. After set_out_dir.
void set_tensorboard_dir(bool is_on, const std::string& given, const Place& place, const Environment& environment,
                         Config* config, Problems* problems);
// SageMaker's TensorBoard file, where it counts more or the hook's parameters say nothing.
void apply_tensorboard_file(const Environment& environment, Config* config, Problems* problems);
void apply_checkpoint_file(const Environment& environment, Config* config, Problems* problems);

}  // namespace tornasole::config
