#pragma once

// NumPy's file format for one array (versions 1.0 and 2.0), without pickles.

#include <string>
#include <string_view>

#include "base/bytes.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::tools {

struct NpyFile {
  Bytes header = {};               // magic, version, dictionary, padded to 64 bytes
  ByteView content = {};           // borrowed from the tensor, or from `converted`
  Bytes converted = {};            // what the elements became, where NumPy lacks the type
  std::string dtype_written = {};  // NumPy's name: "float32", "str"
  bool is_widened = false;
};
// `out` is filled rather than returned, since its content may point into itself. The tensor is contiguous and outlives
// it. bfloat16 and float8 become float32, texts fixed-width Unicode. kUnsupported if texts would take more than 1 GiB.
Status encode_npy(const TensorView& tensor, NpyFile* out);

}  // namespace tornasole::tools
