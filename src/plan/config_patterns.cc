#include "plan/config_patterns.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/utf8.h"
#include "pattern/pattern.h"

namespace tornasole::plan {
namespace {

constexpr std::array<std::string_view, 4> kModePrefixes = {"train.", "eval.", "predict.", "global."};  // by mode_index

class PatternCheck {
 public:
  explicit PatternCheck(const config::Config& config) : config_(config) {}

  config::Problems run() {
    check("include_regex", "include_regex", config_.include_regex);
    for (const Mode mode : kAllModes) check_schedule("", mode, config_.schedules[mode_index(mode)]);
    for (const config::CollectionSettings& settings : config_.collections) {
      const std::string prefix = settings.name + ".";
      check(prefix + "include_regex", shown(settings.name, "include_regex"), settings.include_regex);
      for (const Mode mode : kAllModes) {
        if (const auto& schedule = settings.schedules[mode_index(mode)]) check_schedule(settings.name, mode, *schedule);
      }
    }
    return std::move(problems_);
  }

 private:
  // Every mode has a schedule of its own by now; the file may have given one for all of them.
  void check_schedule(const std::string& collection, Mode mode, const config::Schedule& schedule) {
    const std::string prefix = collection.empty() ? "" : collection + ".";
    std::string name = std::string(kModePrefixes[mode_index(mode)]) + "when_nan";
    if (!config_.origins.contains(prefix + name)) name = "when_nan";
    // What a collection in a file has from the hook is told of there.
    const bool is_inherited =
        !collection.empty() && !config_.source.empty() && !config_.origins.contains(prefix + name);
    if (is_inherited) return;
    check(prefix + name, shown(collection, name), schedule.when_nan);
  }

  // A key of a file as it is remembered; in a program a collection has a name.
  std::string shown(const std::string& collection, const std::string& key) const {
    if (collection.empty()) return key;
    const std::string name = printable(collection);
    return config_.source.empty() ? fmt::format("collection \"{}\", {}", name, key) : name + "." + key;
  }

  void check(const std::string& origin, const std::string& key, const std::vector<std::string>& patterns) {
    for (const std::string& text : patterns) {
      if (!checked_.insert({key, text}).second) continue;  // a schedule is there once for each mode
      const auto compiled = pattern::Pattern::compile(text);
      if (!compiled) problems_.add({config_.source, line_of(origin), key}, compiled.error());
    }
  }

  int line_of(const std::string& origin) const {
    constexpr std::string_view kLine = "line ";
    int line = 0;
    const auto found = config_.origins.find(origin);
    if (found != config_.origins.end() && found->second.starts_with(kLine)) {
      const std::string& text = found->second;
      std::from_chars(text.data() + kLine.size(), text.data() + text.size(), line);
    }
    return line;
  }

  const config::Config& config_;
  std::set<std::pair<std::string, std::string>> checked_;
  config::Problems problems_;
};

}  // namespace

config::Problems pattern_problems(const config::Config& config) { return PatternCheck(config).run(); }

}  // namespace tornasole::plan
