#pragma once

// A value as the JSON object of a dump (see dump.h).

#include <cstdint>

#include "base/json.h"
#include "tornasole/result.h"
#include "tornasole/tensor.h"

namespace tornasole::tools {

void write_dump_value(JsonWriter& json, const Tensor& tensor, std::int64_t max_elements);
void write_dump_error(JsonWriter& json, const Error& error);
// A number, or the text NaN, Infinity or -Infinity.
void write_dump_number(JsonWriter& json, double number);

}  // namespace tornasole::tools
