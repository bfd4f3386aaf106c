#include "trial/trial_errors.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"

namespace tornasole::trial {
namespace {

constexpr std::size_t kMaxShown = 200;

std::string shown(std::string_view text) { return printable(text.substr(0, kMaxShown)); }

Error with_details(ErrorCode code, ErrorKind kind, std::string message, ErrorDetails details) {
  return {code, std::move(message), kind, std::make_shared<const ErrorDetails>(std::move(details))};
}

std::string list_of(const std::vector<std::string>& names, std::size_t limit) {
  std::string text;
  for (std::size_t i = 0; i < std::min(names.size(), limit); ++i) {
    text += fmt::format("{}\"{}\"", i == 0 ? "" : ", ", shown(names[i]));
  }
  if (names.size() > limit) text += fmt::format(" and {} more", names.size() - limit);
  return text;
}

std::string last_step_text(std::int64_t last_step) {
  return last_step < 0 ? "no step is known yet" : fmt::format("the last known one is {}", last_step);
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result) c = static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return result;
}

// The number of single changes between the two, or `limit` + 1 if it is larger.
std::size_t edit_distance(std::string_view left, std::string_view right, std::size_t limit) {
  if (left.size() > right.size()) std::swap(left, right);
  if (right.size() - left.size() > limit) return limit + 1;
  std::vector<std::size_t> row(left.size() + 1);
  for (std::size_t i = 0; i < row.size(); ++i) row[i] = i;
  for (std::size_t j = 1; j <= right.size(); ++j) {
    std::size_t diagonal = std::exchange(row[0], j);
    std::size_t smallest = row[0];
    for (std::size_t i = 1; i < row.size(); ++i) {
      const std::size_t replaced = diagonal + (left[i - 1] == right[j - 1] ? 0 : 1);
      diagonal = row[i];
      row[i] = std::min({replaced, row[i] + 1, row[i - 1] + 1});
      smallest = std::min(smallest, row[i]);
    }
    if (smallest > limit) return limit + 1;
  }
  return row.back();
}

}  // namespace

std::string describe(ModeStep step) {
  if (step.mode == Mode::kGlobal) return fmt::format("step {}", step.number);
  return fmt::format("{} step {}", mode_name(step.mode), step.number);
}

Error missing_collections_error(std::string_view trial, std::string_view what) {
  return with_details(ErrorCode::kNotFound, ErrorKind::kMissingCollectionFiles,
                      fmt::format("trial {}: {}", shown(trial), what), {.reason = "missing collections"});
}

Error index_reader_error(std::string_view path, std::string_view what) {
  return with_details(ErrorCode::kCorrupt, ErrorKind::kIndexReader, fmt::format("{}: {}", shown(path), what),
                      {.reason = "damaged"});
}

Error tensor_unavailable_error(std::string_view tensor, std::string_view trial, const std::vector<std::string>& near) {
  std::string message = fmt::format("trial {} has no tensor \"{}\"", shown(trial), shown(tensor));
  if (!near.empty()) message += fmt::format("; did you mean {}?", list_of(near, 3));
  return with_details(ErrorCode::kNotFound, ErrorKind::kTensorUnavailable, std::move(message),
                      {.tensor = std::string(tensor)});
}

Error step_unavailable_error(ModeStep step, std::int64_t last_step, std::string_view why) {
  return with_details(
      ErrorCode::kNotFound, ErrorKind::kStepUnavailable,
      fmt::format("{} is not available and will not be: {}; {}", describe(step), why, last_step_text(last_step)),
      {.step = step.number, .mode = step.mode, .last_step = last_step});
}

Error step_not_yet_error(ModeStep step, std::int64_t last_step, std::string_view why) {
  return with_details(ErrorCode::kNotYet, ErrorKind::kStepNotYetAvailable,
                      fmt::format("{} is not available yet{}{}; {}", describe(step), why.empty() ? "" : ": ", why,
                                  last_step_text(last_step)),
                      {.step = step.number, .mode = step.mode, .last_step = last_step});
}

Error no_more_data_error(ModeStep step, std::int64_t last_step, std::string_view why) {
  return with_details(
      ErrorCode::kEnded, ErrorKind::kNoMoreData,
      fmt::format("{} will not come: {}; the last {}step is {}", describe(step), why,
                  step.mode == Mode::kGlobal ? "" : fmt::format("{} ", mode_name(step.mode)), last_step),
      {.reason = std::string(why), .step = step.number, .mode = step.mode, .last_step = last_step});
}

Error invalid_worker_error(std::string_view worker, std::string_view tensor, ModeStep step,
                           const std::vector<std::string>& workers) {
  return with_details(
      ErrorCode::kNotFound, ErrorKind::kInvalidWorker,
      fmt::format("worker \"{}\" did not save tensor \"{}\" at {}; these did: {}", shown(worker), shown(tensor),
                  describe(step), list_of(workers, 8)),
      {.tensor = std::string(tensor), .worker = std::string(worker), .step = step.number, .mode = step.mode});
}

Error value_unavailable_error(const UnavailableValue& value) {
  const ErrorCode code = value.may_come              ? ErrorCode::kNotYet
                         : value.reason == "damaged" ? ErrorCode::kCorrupt
                                                     : ErrorCode::kNotFound;
  return with_details(code, ErrorKind::kTensorUnavailableForStep,
                      fmt::format("tensor \"{}\" at {}: {}", shown(value.tensor), describe(value.step), value.message),
                      {.tensor = std::string(value.tensor),
                       .worker = std::string(value.worker),
                       .reason = std::string(value.reason),
                       .step = value.step.number,
                       .mode = value.step.mode,
                       .has_reductions = value.has_reductions});
}

Error shape_unavailable_error(std::string_view tensor, ModeStep step) {
  return with_details(
      ErrorCode::kNotFound, ErrorKind::kShapeUnavailableForStep,
      fmt::format("tensor \"{}\" at {}: neither its shape nor its value was saved", shown(tensor), describe(step)),
      {.tensor = std::string(tensor), .step = step.number, .mode = step.mode});
}

std::vector<std::string> near_misses(std::string_view name, const std::vector<std::string>& known) {
  constexpr std::size_t kMaxCompared = 100'000;
  constexpr std::size_t kMaxNameBytes = 512;
  if (name.empty() || name.size() > kMaxNameBytes) return {};
  const std::string wanted = lower(name);
  const std::size_t limit = std::max<std::size_t>(1, std::min<std::size_t>(4, name.size() / 4));
  std::vector<std::pair<std::size_t, const std::string*>> found;
  for (std::size_t i = 0; i < std::min(known.size(), kMaxCompared); ++i) {
    if (known[i].size() > kMaxNameBytes) continue;
    const std::string candidate = lower(known[i]);
    std::size_t distance = edit_distance(wanted, candidate, limit);
    // The end of a long name is what people remember of it.
    if (distance > limit && name.size() >= 3 && candidate.ends_with(wanted)) distance = limit;
    if (distance <= limit) found.emplace_back(distance, &known[i]);
  }
  std::ranges::stable_sort(found, {}, [](const auto& entry) { return entry.first; });
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min<std::size_t>(found.size(), 3); ++i) names.push_back(*found[i].second);
  return names;
}

}  // namespace tornasole::trial
