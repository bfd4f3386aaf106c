#include "tensorboard/summary_tag.h"

#include <algorithm>

#include "pattern/pattern.h"

namespace tornasole::tensorboard {
namespace {

bool is_plain(char c) noexcept {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' || c == '/' ||
         c == '.' || c == '_';
}

std::size_t character_bytes(char lead) noexcept {
  const auto byte = static_cast<unsigned char>(lead);
  if (byte < 0x80) return 1;
  if (byte < 0xE0) return 2;
  return byte < 0xF0 ? 3 : 4;
}

// Whether Python counts the character as part of a word.
bool is_word(std::string_view character) {
  static const Result<pattern::Pattern> kWord = pattern::Pattern::compile("\\w");
  return kWord.ok() && kWord->search(character) == pattern::Match::kYes;
}

}  // namespace

std::string clean_tag(std::string_view name) {
  std::string tag;
  tag.reserve(name.size());
  for (std::size_t at = 0; at < name.size();) {
    const std::string_view character = name.substr(at, character_bytes(name[at]));
    at += character.size();
    const bool is_kept = character.size() == 1 ? is_plain(character[0]) : is_word(character);
    if (is_kept) {
      tag += character;
    } else {
      tag += '_';
    }
  }
  tag.erase(0, std::min(tag.find_first_not_of('/'), tag.size()));
  return tag;
}

}  // namespace tornasole::tensorboard
