#pragma once

// The model description of one worker: what its tensors are, which their values cannot tell (docs/format.md 1.8).

#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "tornasole/model.h"

namespace tornasole::format {

// The whole file. `framework` is the name used in configuration, for example "pytorch".
Bytes encode_model(const ModelDescription& model, std::string_view framework, std::int64_t world_size);

}  // namespace tornasole::format
