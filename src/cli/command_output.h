#pragma once

// What every command does at its end: print an answer or an error, and say with which code the program ends.

#include <string>
#include <string_view>

#include "cli/commands.h"
#include "tornasole/result.h"

namespace tornasole::cli {

// JSON text leaves the delete character as it is, inside strings, where \u007f means the same and harms no terminal.
std::string without_delete(std::string_view text);

// Prints the answer on standard output. If that does not take it, says so and returns kFailed instead of `code`.
int answer(std::string_view text, int code = kSound);

// Prints "error: ..." on standard error, or {"error": {"code", "message"}} on standard output for --json. Returns
// kBadUse where the call must be corrected (kInvalid, kNotFound, kEnded), else kFailed.
int fail(const Error& error, bool as_json);
void warn(std::string_view message);

// A file the user asked for, whole or not at all: written beside its name and renamed. An older file is replaced;
// a link, a device or a pipe is not: kInvalid.
Status write_output_file(const std::string& path, std::string_view bytes);

}  // namespace tornasole::cli
