#include "config/problems.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "base/utf8.h"

namespace tornasole::config {
namespace {

constexpr std::size_t kMaxShownKey = 80;

char lower(char c) noexcept { return static_cast<char>(std::tolower(static_cast<unsigned char>(c))); }

// Levenshtein distance, letters of either case being equal.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j) row[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t change = diagonal + (lower(a[i - 1]) == lower(b[j - 1]) ? 0 : 1);
      diagonal = row[j];
      row[j] = std::min({change, row[j] + 1, row[j - 1] + 1});
    }
  }
  return row[b.size()];
}

}  // namespace

std::string Place::prefix() const {
  std::string text = printable(file);
  if (!file.empty() && line > 0) text += fmt::format(":{}", line);
  if (!file.empty()) text += ": ";
  if (!key.empty()) text += key + ": ";
  return text;
}

void Problems::add(const Place& place, const Error& error) {
  if (errors_.size() >= kMaxErrors) return;
  errors_.push_back({place, {error.code, place.prefix() + error.message, error.kind}});
}

Error Problems::first_error() const {
  Error error = errors_.front().error;
  if (errors_.size() > 1) {
    error.message += fmt::format(" (and {} more error{})", errors_.size() - 1, errors_.size() == 2 ? "" : "s");
  }
  return error;
}

void Problems::warn(const Place& place, std::string_view message) {
  if (warnings_.size() < kMaxWarnings) {
    warnings_.push_back(place.prefix() + std::string(message));
  } else if (warnings_.size() == kMaxWarnings) {
    warnings_.push_back(fmt::format("only the first {} warnings are shown", kMaxWarnings));
  }
}

std::string_view nearest_key(std::string_view key, const std::vector<std::string>& candidates) {
  // The distance costs the product of both lengths; no key of ours is that long.
  if (key.empty() || key.size() > 64) return {};
  std::string_view nearest;
  std::size_t smallest = std::max<std::size_t>(2, key.size() / 3) + 1;
  for (const std::string& candidate : candidates) {
    const std::size_t edits = distance(key, candidate);
    if (edits < smallest) {
      smallest = edits;
      nearest = candidate;
    }
  }
  // As many changes as letters: anything would be "near" to a key of one or two letters.
  return smallest < key.size() ? nearest : std::string_view{};
}

std::string shown_key(std::string_view key) {
  std::string text = printable(key.substr(0, kMaxShownKey));
  if (key.size() > kMaxShownKey) text += "...";
  return text;
}

}  // namespace tornasole::config
