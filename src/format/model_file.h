#pragma once

// The model description of one worker: what its tensors are, which their values cannot tell (docs/format.md 1.8).

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "base/bytes.h"
#include "tornasole/model.h"
#include "tornasole/result.h"

namespace tornasole::format {

// The whole file. `framework` is the name used in configuration, for example "pytorch".
Bytes encode_model(const ModelDescription& model, std::string_view framework, std::int64_t world_size);

inline constexpr std::size_t kMaxModelFileBytes = std::size_t{64} << 20;
// The inverse, for files others may have written. kCorrupt with what is wrong. Unknown keys mean nothing; what is
// absent or null is as in an empty description; of a repeated key the last value counts, in the place of the first. A
// hyperparameter that was not finite comes back as NaN.
Result<StoredModel> decode_model(ByteView text);

}  // namespace tornasole::format
