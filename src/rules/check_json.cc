// CheckReport as JSON: what `tornasole check --json` prints.

#include <cmath>

#include "base/json.h"
#include "rules/verdict_json.h"
#include "tornasole/check.h"

namespace tornasole {
namespace {

void write_number(JsonWriter& json, std::optional<double> number) {
  if (!number) {
    json.null();
  } else if (std::isfinite(*number)) {
    json.value(*number);
  } else {
    json.value(std::isnan(*number) ? "NaN" : *number < 0 ? "-Infinity" : "Infinity");
  }
}

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

}  // namespace

void rules::write_verdict_members(JsonWriter& json, const Verdict& verdict) {
  json.key("rule").value(verdict.rule).key("severity").value(severity_name(verdict.severity));
  json.key("first_step").value(verdict.first_step).key("last_step").value(verdict.last_step);
  json.key("mode").value(mode_name(verdict.mode)).key("tensors");
  write_texts(json, verdict.tensors);
  json.key("value");
  write_number(json, verdict.value);
  json.key("threshold");
  write_number(json, verdict.threshold);
  json.key("message").value(verdict.message).key("causes");
  write_texts(json, verdict.causes);
  json.key("advice");
  write_texts(json, verdict.advice);
}

std::string CheckReport::to_json() const {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("verdicts").begin_array();
  for (const Verdict& verdict : verdicts) {
    json.begin_object();
    rules::write_verdict_members(json, verdict);
    json.key("symptom_of");
    verdict.symptom_of ? json.value(static_cast<std::int64_t>(*verdict.symptom_of)) : json.null();
    json.end_object();
  }
  json.end_array().key("not_checked").begin_array();
  for (const NotChecked& one : not_checked) {
    json.begin_object().key("rule").value(one.rule).key("reason").value(one.reason).end_object();
  }
  json.end_array().key("checked");
  write_texts(json, checked);
  json.key("steps").value(steps).key("summary").value(summary).end_object();
  return text;
}

}  // namespace tornasole
