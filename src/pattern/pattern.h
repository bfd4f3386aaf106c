#pragma once

// Pattern: a Python `re` pattern with search semantics, on PCRE2 with JIT and match limits.

#include <memory>
#include <string>
#include <string_view>

#include "pattern/requirement.h"
#include "tornasole/result.h"

namespace tornasole::pattern {

enum class Match { kNo, kYes, kLimit };  // kLimit: the match was given up; counts as no, reported once by the caller

// A name to be searched by many patterns: what they all ask of it is worked out once.
class SearchedName {
 public:
  explicit SearchedName(std::string_view text) noexcept;
  std::string_view text() const noexcept { return text_; }
  bool has_line_feed() const noexcept { return has_line_feed_; }

 private:
  std::string_view text_;
  bool has_line_feed_;
};

class Pattern {
 public:
  // kInvalid (ValueError-kind) with the pattern, the position and what is wrong, if Python would refuse it too or if it
  // cannot be expressed; longer than 4 KiB is an error.
  static Result<Pattern> compile(std::string_view python_pattern);
  Pattern(Pattern&&) noexcept;
  Pattern& operator=(Pattern&&) noexcept;
  ~Pattern();

  // Whether it matches anywhere in the name, which must be valid UTF-8. Never throws; safe from many threads.
  Match search(std::string_view name) const noexcept { return search(SearchedName(name)); }
  Match search(const SearchedName& name) const noexcept;
  const std::string& text() const noexcept;
  // What every match asks of its name.
  const Requirement& requirement() const noexcept;
  // The longest run of plain characters written in the pattern; may be empty.
  const std::string& literal() const noexcept;

 private:
  struct Compiled;
  explicit Pattern(std::unique_ptr<Compiled> compiled);
  std::unique_ptr<Compiled> compiled_;
};

}  // namespace tornasole::pattern
