#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace tornasole {

// What the program is doing. kGlobal is the mode before any was set. The numbers are those on disk.
enum class Mode : std::uint8_t { kTrain = 1, kEval = 2, kPredict = 3, kGlobal = 4 };

inline constexpr std::array<Mode, 4> kAllModes = {Mode::kTrain, Mode::kEval, Mode::kPredict, Mode::kGlobal};

constexpr std::size_t mode_index(Mode mode) noexcept { return static_cast<std::size_t>(mode) - 1; }

// "TRAIN", "EVAL", "PREDICT", "GLOBAL".
constexpr std::string_view mode_name(Mode mode) noexcept {
  constexpr std::array<std::string_view, 4> kNames = {"TRAIN", "EVAL", "PREDICT", "GLOBAL"};
  return kNames[mode_index(mode)];
}

// The number of a step over all modes; it names the step's files.
struct GlobalStep {
  std::int64_t number = 0;
  auto operator<=>(const GlobalStep&) const = default;
};

// The number of a step within one mode; schedules are evaluated on it.
struct ModeStep {
  Mode mode = Mode::kGlobal;
  std::int64_t number = 0;
  auto operator<=>(const ModeStep&) const = default;
};

}  // namespace tornasole
