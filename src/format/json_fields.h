#pragma once

// Members of a JSON object by name and type, with errors that say what was found. For the small files of a trial.

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.h"
#include "base/json.h"
#include "tornasole/mode.h"
#include "tornasole/result.h"

namespace tornasole::format {

// Reads the members of one object. `what` names the object in messages and must outlive this. A member that is absent
// or null leaves the target as it is; a member of another type or beyond its bounds is kCorrupt.
class JsonFields {
 public:
  // kCorrupt if `json` is not an object.
  static Result<JsonFields> of(const Json& json, std::string_view what);

  struct Bounds {
    std::int64_t lowest = std::numeric_limits<std::int64_t>::min();
    std::int64_t highest = std::numeric_limits<std::int64_t>::max();
  };
  Status read(std::string_view key, std::int64_t* number, Bounds bounds) const;
  // The integer that Python's int() makes of the member: 2.9 and "2" and " +2 " are two, true is one.
  Status read_converted(std::string_view key, std::int64_t* number, Bounds bounds) const;
  Status read(std::string_view key, std::optional<std::int64_t>* number) const;
  Status read(std::string_view key, double* number) const;
  Status read(std::string_view key, bool* truth) const;
  Status read(std::string_view key, std::string* text) const;
  Status read(std::string_view key, std::vector<std::string>* texts) const;
  Status read(std::string_view key, std::vector<std::int64_t>* numbers) const;
  Status read(std::string_view key, std::map<std::string, std::int64_t>* counts) const;
  Status read(std::string_view key, std::map<std::string, std::string>* texts) const;

  // kCorrupt if one of the keys is absent or null.
  Status require(std::initializer_list<std::string_view> keys) const;
  // Null when absent.
  const Json* find(std::string_view key) const noexcept { return object_->find(key); }
  // Null when absent or null.
  const Json* present(std::string_view key) const noexcept;
  // For a member that is read by hand.
  Error wrong_type(std::string_view key, const Json& found, std::string_view wanted) const;

 private:
  JsonFields(const Json* object, std::string_view what) : object_(object), what_(what) {}
  // Stores what `found` was understood as, if it was and lies within the bounds.
  Status take(std::string_view key, const Json& found, std::optional<std::int64_t> value, Bounds bounds,
              std::int64_t* number) const;

  const Json* object_;
  std::string_view what_;
};

// For the large files: an item takes two bytes of text and some fifty of memory, so items are counted before the text
// is taken apart.
inline constexpr std::size_t kMaxFileItems = std::size_t{1} << 21;
Status check_item_count(ByteView text);

// Small files are bounded well below what a parser would take.
inline constexpr std::size_t kMaxSmallFileBytes = std::size_t{1} << 20;
Result<Json> parse_small_file(ByteView text, std::string_view what);

std::optional<Mode> parse_mode_name(std::string_view name) noexcept;

}  // namespace tornasole::format
