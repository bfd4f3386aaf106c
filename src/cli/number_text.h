#pragma once

// Numbers for people and for JSON.

#include <cstdint>
#include <map>
#include <string>

#include "base/json.h"

namespace tornasole::cli {

// Six significant digits: "0.00123457", "1.5e-09", "42"; "NaN", "Inf", "-Inf".
std::string number_text(double value);
// "512 B", "1.5 KiB", "3.2 GiB".
std::string bytes_text(std::uint64_t bytes);
// "1 step", "3 steps".
std::string counted(std::int64_t count, const char* singular, const char* plural = nullptr);
// A finite number as JSON's, the others as the texts "NaN", "Infinity", "-Infinity".
void write_number(JsonWriter& json, double value);

// "61 put, 12 get, 2 list, 3 of them again; 1.2 MiB read, 40 KiB written": requests to an object store by kind.
std::string requests_text(const std::map<std::string, std::int64_t>& requests);

}  // namespace tornasole::cli
