#include "tools/import_tags.h"

#include <algorithm>
#include <array>
#include <utility>

namespace tornasole::tools {
namespace {

constexpr std::array<std::pair<std::string_view, Mode>, 12> kWords = {{{"train", Mode::kTrain},
                                                                       {"training", Mode::kTrain},
                                                                       {"val", Mode::kEval},
                                                                       {"valid", Mode::kEval},
                                                                       {"validation", Mode::kEval},
                                                                       {"eval", Mode::kEval},
                                                                       {"evaluation", Mode::kEval},
                                                                       {"dev", Mode::kEval},
                                                                       {"test", Mode::kEval},
                                                                       {"predict", Mode::kPredict},
                                                                       {"prediction", Mode::kPredict},
                                                                       {"global", Mode::kGlobal}}};

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return out;
}

}  // namespace

std::optional<Mode> mode_of_word(std::string_view word) {
  const std::string lowered = lower(word);
  for (const auto& [known, mode] : kWords) {
    if (known == lowered) return mode;
  }
  return std::nullopt;
}

RunName split_run(std::string_view directory) {
  const std::size_t slash = directory.rfind('/');
  const std::string_view last = slash == directory.npos ? directory : directory.substr(slash + 1);
  const auto mode = mode_of_word(last);
  if (!mode) return {directory.empty() ? "." : std::string(directory), std::nullopt};
  return {slash == directory.npos ? "." : std::string(directory.substr(0, slash)), mode};
}

TagName split_tag(std::string_view tag) {
  const TagName whole{std::string(tag), std::nullopt};
  const std::size_t first = tag.find('/');
  const std::size_t last = tag.rfind('/');
  if (last != tag.npos) {
    if (const auto mode = mode_of_word(tag.substr(last + 1)); mode && last > 0) {
      return {std::string(tag.substr(0, last)), mode};
    }
    if (const auto mode = mode_of_word(tag.substr(0, first)); mode && first + 1 < tag.size()) {
      return {std::string(tag.substr(first + 1)), mode};
    }
    return whole;
  }
  const std::size_t line = tag.find('_');
  if (line == tag.npos || line + 1 == tag.size()) return whole;
  const auto mode = mode_of_word(tag.substr(0, line));
  return mode ? TagName{std::string(tag.substr(line + 1)), mode} : whole;
}

bool is_loss_name(std::string_view name) { return lower(name).find("loss") != std::string::npos; }

}  // namespace tornasole::tools
