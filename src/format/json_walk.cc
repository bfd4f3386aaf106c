#include "format/json_walk.h"

#include <algorithm>

#include "base/utf8.h"

namespace tornasole::format::walk {

Error json_error(simdjson::error_code code, std::string_view what) {
  return corrupt_error("not JSON where {} is expected: {}", what, simdjson::error_message(code));
}

std::string shown(od::value value) {
  constexpr std::size_t kMaxShown = 40;
  const std::string_view token = value.raw_json_token();
  const std::size_t end =
      token.starts_with('"') ? std::min(token.find('"', 1), token.size() - 1) + 1 : number_token(token).size();
  return printable(token.substr(0, std::min(end, kMaxShown)));
}

Result<std::optional<double>> read_optional_number(od::value value, std::string_view what) {
  bool is_null = false;
  if (const auto error = value.is_null().get(is_null); error) return json_error(error, what);
  if (is_null) return std::optional<double>();
  double number = 0;
  if (const auto error = value.get_double().get(number); error)
    return corrupt_error("{} is {}, not a number", what, shown(value));
  return std::optional<double>(number);
}

Status check_unknown(od::value value, int depth) {
  constexpr std::string_view kWhat = "the value of an unknown key";
  if (is_non_finite_literal(number_token(value.raw_json_token()))) return {};
  if (depth >= kMaxDepth) return corrupt_error("nested deeper than {} levels", kMaxDepth);
  od::json_type type{};
  if (const auto error = value.type().get(type); error) return json_error(error, kWhat);
  switch (type) {
    case od::json_type::object:
      return for_each_field(value, kWhat, [&](std::string_view, od::value v) { return check_unknown(v, depth + 1); });
    case od::json_type::array:
      return for_each_item(value, kWhat, [&](od::value v) { return check_unknown(v, depth + 1); });
    case od::json_type::string: {
      TORNASOLE_CHECK(read_string(value, kWhat));
      return {};
    }
    case od::json_type::boolean: {
      TORNASOLE_CHECK(read_bool(value, kWhat));
      return {};
    }
    case od::json_type::null: {
      bool is_null = false;
      if (const auto error = value.is_null().get(is_null); error || !is_null) {
        return corrupt_error("not JSON where {} is expected: neither null nor a number", kWhat);
      }
      return {};
    }
    case od::json_type::number: {
      // Any size of number is good JSON, also one that fits no type of ours.
      const std::string_view token = number_token(value.raw_json_token());
      if (!is_json_number(token)) return corrupt_error("{} is no number", printable(token.substr(0, 40)));
      return {};
    }
  }
  return corrupt_error("not JSON where {} is expected", kWhat);
}

}  // namespace tornasole::format::walk
