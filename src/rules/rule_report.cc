#include <cmath>

#include "base/json.h"
#include "rules/violation_json.h"
#include "tornasole/rule.h"

namespace tornasole {
namespace {

void write_number(JsonWriter& json, std::optional<double> number) {
  if (!number) {
    json.null();
  } else if (std::isfinite(*number)) {
    json.value(*number);
  } else {
    json.value(std::isnan(*number) ? "nan" : *number > 0 ? "inf" : "-inf");
  }
}

void write_counts(JsonWriter& json, const std::map<std::string, std::int64_t>& counts) {
  json.begin_object();
  for (const auto& [name, count] : counts) json.key(name).value(count);
  json.end_object();
}

void write_step(JsonWriter& json, std::optional<std::int64_t> step) { step ? json.value(*step) : json.null(); }

}  // namespace

void rules::write_violation_members(JsonWriter& json, const Violation& violation) {
  json.key("step").value(violation.global_step.number);
  json.key("mode").value(mode_name(violation.step.mode)).key("mode_step").value(violation.step.number);
  json.key("worker").value(violation.worker).key("tensor").value(violation.tensor).key("value");
  write_number(json, violation.value);
  json.key("threshold");
  write_number(json, violation.threshold);
  json.key("message").value(violation.message);
}

const Tensor* StepTensor::derived_statistic(std::string_view statistic) const noexcept {
  for (const auto& [own_name, tensor] : derived) {
    if (own_name == statistic) return tensor.get();
  }
  return nullptr;
}

std::optional<double> StepTensor::scalar() const noexcept {
  if (!shape || shape->element_count() != 1) return std::nullopt;
  return stats[Stat::kMean];
}

void RuleReport::add(Violation violation) {
  ++violations_count;
  if (!first_step) first_step = violation.global_step.number;
  last_step = violation.global_step.number;
  if (!violation.tensor.empty()) ++tensors[violation.tensor];
  if (first_.size() < kKept) {
    first_.push_back(std::move(violation));
  } else if (last_.size() < kKept) {
    last_.push_back(std::move(violation));
  } else {
    last_[next_] = std::move(violation);
    next_ = (next_ + 1) % kKept;
  }
}

std::vector<Violation> RuleReport::violations() const {
  std::vector<Violation> all = first_;
  for (std::size_t i = 0; i < last_.size(); ++i) all.push_back(last_[(next_ + i) % last_.size()]);
  return all;
}

std::string RuleReport::to_json() const {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("RuleTriggered").value(triggered).key("Violations").value(violations_count);
  json.key("Datapoints").value(datapoints).key("RuleParameters").value(parameters).key("Details").begin_object();
  json.key("first_step");
  write_step(json, first_step);
  json.key("last_step");
  write_step(json, last_step);
  json.key("tensors");
  write_counts(json, tensors);
  json.key("skipped");
  write_counts(json, skipped);
  json.key("violations").begin_array();
  for (const Violation& violation : violations()) {
    json.begin_object();
    rules::write_violation_members(json, violation);
    json.end_object();
  }
  json.end_array();
  for (const auto& [name, value] : details) json.key(name).raw(value);
  json.end_object().end_object();
  return text;
}

void Findings::add(const StepTensor* tensor, std::optional<double> value, std::optional<double> threshold,
                   std::string message) {
  is_met_ = true;
  report_.add({.global_step = global_step_,
               .step = step_,
               .worker = tensor == nullptr ? std::string() : std::string(tensor->worker),
               .tensor = tensor == nullptr ? std::string() : std::string(tensor->name),
               .value = value,
               .threshold = threshold,
               .message = std::move(message)});
}

void Findings::skip(std::string_view reason) { ++report_.skipped[std::string(reason)]; }

}  // namespace tornasole
