#pragma once

// Values as people write them, read as one type: a value of a JSON file, the text of an environment variable, or an
// argument made into Json. Errors show the value and what is allowed; the caller adds where it stood.

#include <cstdint>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "tornasole/result.h"

namespace tornasole::config {

struct IntegerRange {
  std::int64_t min = std::numeric_limits<std::int64_t>::min();
  std::int64_t max = std::numeric_limits<std::int64_t>::max();
};

// A number without fraction, or its decimal text.
Result<std::int64_t> read_integer(const Json& value, IntegerRange range = {});
// A finite number, or its decimal text.
Result<double> read_number(const Json& value, double min, double max);
// true, false, 0, 1, or one of the texts true false True False 1 0.
Result<bool> read_bool(const Json& value);
// A text that is not empty and has no NUL character.
Result<std::string> read_text(const Json& value);
// The position of the text among the allowed ones.
Result<std::size_t> read_choice(const Json& value, std::span<const std::string_view> allowed);
// A comma list, one number, or an array of numbers or their texts. In the order given.
Result<std::vector<std::int64_t>> read_integers(const Json& value);
// A comma list (items trimmed, empty ones dropped) or an array of texts, which are taken as they are.
Result<std::vector<std::string>> read_texts(const Json& value);

std::string_view trim(std::string_view text) noexcept;
// "a, b" -> {"a", "b"}; empty items are dropped.
std::vector<std::string> split_list(std::string_view text);
// "a, b, c".
std::string join(std::span<const std::string_view> items);

}  // namespace tornasole::config
