#pragma once

// A Python dict from keys and values in turn, in this order: dict_of("name", tensor.name, "steps", tensor.steps).

#include <nanobind/nanobind.h>

namespace tornasole::python {

inline void put_in(nanobind::dict& /*dict*/) {}

template <typename Value, typename... Rest>
void put_in(nanobind::dict& dict, const char* key, const Value& value, const Rest&... rest) {
  dict[key] = value;
  put_in(dict, rest...);
}

template <typename... KeysAndValues>
nanobind::dict dict_of(const KeysAndValues&... keys_and_values) {
  nanobind::dict dict;
  put_in(dict, keys_and_values...);
  return dict;
}

}  // namespace tornasole::python
