#include "cli/verdict_output.h"

#include <fmt/format.h>

namespace tornasole::cli {

Tone tone_of(Severity severity) noexcept {
  switch (severity) {
    case Severity::kError: return Tone::kError;
    case Severity::kWarning: return Tone::kWarning;
    case Severity::kInfo: return Tone::kFaint;
  }
  return Tone::kPlain;
}

std::string steps_text(const Verdict& verdict) {
  return verdict.first_step == verdict.last_step ? fmt::format("step {}", verdict.first_step)
                                                 : fmt::format("steps {} to {}", verdict.first_step, verdict.last_step);
}

}  // namespace tornasole::cli
