#include "cli/verdict_output.h"

#include <fmt/format.h>

#include "cli/number_text.h"

namespace tornasole::cli {
namespace {

void write_optional(JsonWriter& json, std::optional<double> number) {
  number ? write_number(json, *number) : static_cast<void>(json.null());
}

}  // namespace

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

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_verdict_members(JsonWriter& json, const Verdict& verdict) {
  json.key("rule").value(verdict.rule).key("severity").value(severity_name(verdict.severity));
  json.key("first_step").value(verdict.first_step).key("last_step").value(verdict.last_step);
  json.key("mode").value(mode_name(verdict.mode)).key("tensors");
  write_texts(json, verdict.tensors);
  json.key("value");
  write_optional(json, verdict.value);
  json.key("threshold");
  write_optional(json, verdict.threshold);
  json.key("message").value(verdict.message).key("causes");
  write_texts(json, verdict.causes);
  json.key("advice");
  write_texts(json, verdict.advice);
}

}  // namespace tornasole::cli
