#pragma once

// Reads the JSON that XGBoost writes: dumped trees and configurations. Nothing else is meant to be read with it.

#include <charconv>
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

namespace tornasole::xgboost::detail {

class Json {
 public:
  enum class Kind { kOther, kNumber, kText, kArray, kObject };

  // Nothing for what is no JSON, or nested deeper than any tree.
  static std::optional<Json> parse(std::string_view text) {
    Json value;
    Reader reader{text};
    if (!reader.read(value, 0) || reader.skip() != reader.text.size()) return std::nullopt;
    return value;
  }

  Kind kind() const noexcept { return kind_; }
  double number() const noexcept { return number_; }
  // Of a number: as it is written.
  const std::string& text() const noexcept { return text_; }
  const std::vector<Json>& items() const noexcept { return items_; }
  // The member of that name; null if there is none.
  const Json* find(std::string_view name) const noexcept {
    for (std::size_t i = 0; i < names_.size(); ++i) {
      if (names_[i] == name) return &items_[i];
    }
    return nullptr;
  }

 private:
  struct Reader {
    static constexpr int kMaxDepth = 4096;
    std::string_view text;
    std::size_t at = 0;

    std::size_t skip() {
      while (at < text.size() && (text[at] == ' ' || text[at] == '\n' || text[at] == '\t' || text[at] == '\r')) ++at;
      return at;
    }
    bool takes(char wanted) {
      if (skip() == text.size() || text[at] != wanted) return false;
      ++at;
      return true;
    }
    bool read(Json& into, int depth) {
      if (depth > kMaxDepth || skip() == text.size()) return false;
      switch (text[at]) {
        case '{': return read_object(into, depth);
        case '[': return read_array(into, depth);
        case '"': into.kind_ = Kind::kText; return read_text(into.text_);
        default: return read_word(into);
      }
    }
    bool read_object(Json& into, int depth) {
      into.kind_ = Kind::kObject;
      ++at;
      if (takes('}')) return true;
      do {
        skip();
        if (!read_text(into.names_.emplace_back()) || !takes(':') || !read(into.items_.emplace_back(), depth + 1)) {
          return false;
        }
      } while (takes(','));
      return takes('}');
    }
    bool read_array(Json& into, int depth) {
      into.kind_ = Kind::kArray;
      ++at;
      if (takes(']')) return true;
      do {
        if (!read(into.items_.emplace_back(), depth + 1)) return false;
      } while (takes(','));
      return takes(']');
    }
    // Names are given to XGBoost as f0, f1 and so on, and the texts of a configuration that matter are plain: what an
    // escape stands for is never asked for.
    bool read_text(std::string& into) {
      if (!takes('"')) return false;
      for (; at < text.size() && text[at] != '"'; ++at) {
        if (text[at] == '\\' && ++at == text.size()) return false;
        into += text[at];
      }
      return at++ < text.size();
    }
    bool read_word(Json& into) {
      const std::size_t end = text.find_first_of(",]} \t\r\n", at);
      const std::string_view word = text.substr(at, end == std::string_view::npos ? end : end - at);
      at += word.size();
      if (word == "true" || word == "false" || word == "null") return true;
      into.kind_ = Kind::kNumber;
      into.text_ = word;
      const auto [rest, failure] = std::from_chars(word.data(), word.data() + word.size(), into.number_);
      return !word.empty() && failure == std::errc() && rest == word.data() + word.size();
    }
  };

  Kind kind_ = Kind::kOther;
  double number_ = 0;
  std::string text_;
  std::vector<std::string> names_;  // of an object, one for each item
  std::vector<Json> items_;
};

}  // namespace tornasole::xgboost::detail
