// The parts of the C interface that speak JSON: settings of a collection, the model, facts of a step; and the report.

#include <algorithm>
#include <functional>
#include <initializer_list>
#include <limits>
#include <map>
#include <vector>

#include "base/utf8.h"
#include "capture/c_api.h"
#include "capture/hook_state.h"
#include "config/config.h"
#include "config/file_parameters.h"
#include "config/problems.h"
#include "config/values.h"

namespace tornasole::capture {
namespace {

Error at(std::string_view where, const Error& error) {
  return {error.code, std::string(where) + ": " + error.message, error.kind};
}

Error unexpected(std::string_view where, const Json& value, std::string_view allowed) {
  return invalid_error("{}: {} is not allowed; allowed: {}", where, value.to_message(), allowed);
}

Result<Json> parse_object(std::string_view what, const char* text) {
  auto root = parse_json(text, {});
  if (!root.ok()) return invalid_error("{} is not JSON: {}", what, root.error().message);
  if (root->as_object() == nullptr) return unexpected(what, *root, "an object");
  return root;
}

// ---- members of objects, strictly: who writes to this interface can be told of every mistake

struct Member {
  std::string_view key;
  std::function<Status(const Json& value)> read;  // empty: known, and of no interest
};

Status read_members(std::string_view where, const Json& value, std::initializer_list<Member> known) {
  const Json::Object* object = value.as_object();
  if (object == nullptr) return unexpected(where, value, "an object");
  for (const Json::Member& member : *object) {
    const auto found = std::find_if(known.begin(), known.end(), [&](const Member& m) { return m.key == member.key; });
    if (found == known.end()) {
      std::string allowed;
      for (const Member& m : known) allowed += (allowed.empty() ? "" : ", ") + std::string(m.key);
      return invalid_error("{}: '{}' is not known; allowed: {}", where, config::shown_key(member.key), allowed);
    }
    if (member.value.is_null() || !found->read) continue;
    if (Status read = found->read(member.value); !read.ok()) {
      return at(fmt::format("{}.{}", where, member.key), read.error());
    }
  }
  return {};
}

std::function<Status(const Json&)> into(std::string* out) {
  return [out](const Json& value) -> Status {
    if (value.as_string() == nullptr) return invalid_error("{} is not allowed; allowed: a text", value.to_message());
    *out = *value.as_string();
    return {};
  };
}
template <typename Flag>
std::function<Status(const Json&)> into_flag(Flag* out) {
  return [out](const Json& value) -> Status {
    TORNASOLE_TRY(*out, config::read_bool(value));
    return {};
  };
}
template <typename Integer>
std::function<Status(const Json&)> into_integer(Integer* out) {
  return [out](const Json& value) -> Status {
    TORNASOLE_TRY(*out, config::read_integer(value));
    return {};
  };
}
template <typename Number>
std::function<Status(const Json&)> into_number(Number* out) {
  return [out](const Json& value) -> Status {
    TORNASOLE_TRY(*out, config::read_number(value, -1e308, 1e308));
    return {};
  };
}
// `read` gets each item of a list.
std::function<Status(const Json&)> each_item(std::function<Status(const Json&)> read) {
  return [read = std::move(read)](const Json& value) -> Status {
    if (value.as_array() == nullptr) return invalid_error("{} is not allowed; allowed: a list", value.to_message());
    for (const Json& item : *value.as_array()) TORNASOLE_CHECK(read(item));
    return {};
  };
}
// `read` gets each key and value of an object whose keys are names.
std::function<Status(const Json&)> each_name(std::function<Status(const std::string&, const Json&)> read) {
  return [read = std::move(read)](const Json& value) -> Status {
    if (value.as_object() == nullptr) return invalid_error("{} is not allowed; allowed: an object", value.to_message());
    for (const Json::Member& member : *value.as_object()) {
      if (Status done = read(member.key, member.value); !done.ok())
        return at(config::shown_key(member.key), done.error());
    }
    return {};
  };
}
std::function<Status(const Json&)> into_texts(std::vector<std::string>* out) {
  return each_item([out](const Json& item) { return into(&out->emplace_back())(item); });
}
std::function<Status(const Json&)> into_text_map(std::map<std::string, std::string>* out) {
  return each_name([out](const std::string& key, const Json& value) { return into(&(*out)[key])(value); });
}

// ---- the model, in the form of its file

Status read_module(const std::string& path, const Json& value, ModelDescription* model) {
  auto& module = model->modules.emplace_back();
  module.path = path;
  return read_members("module", value,
                      {{"class", into(&module.type)},
                       {"parent", into(&module.parent)},
                       {"call_order", into_integer(&module.call_order)},
                       {"training", into_flag(&module.training)}});
}

Status read_parameter(const std::string& name, const Json& value, ModelDescription* model) {
  auto& parameter = model->parameters.emplace_back();
  parameter.name = name;
  const auto add_extent = [&](const Json& extent) { return into_integer(&parameter.shape.emplace_back())(extent); };
  return read_members("parameter", value,
                      {{"module", into(&parameter.module)},
                       {"shape", each_item(add_extent)},
                       {"dtype", into(&parameter.dtype)},
                       {"requires_grad", into_flag(&parameter.requires_grad)},
                       {"tied", into_texts(&parameter.tied)}});
}

Status read_loss(const Json& value, ModelDescription* model) {
  auto& loss = model->losses.emplace_back();
  return read_members("loss", value,
                      {{"name", into(&loss.name)},
                       {"class", into(&loss.type)},
                       {"predictions", into_texts(&loss.predictions)},
                       {"labels", into_texts(&loss.labels)}});
}

Status read_optimizer(const Json& value, ModelDescription* model) {
  auto& optimizer = model->optimizers.emplace_back();
  const auto add_number = [&](const std::string& name, const Json& number) {
    return into_number(&optimizer.hyperparameters[name])(number);
  };
  const auto add_group = [&](const Json& group) { return into_texts(&optimizer.groups.emplace_back())(group); };
  return read_members(
      "optimizer", value,
      {{"class", into(&optimizer.type)}, {"hyperparameters", each_name(add_number)}, {"groups", each_item(add_group)}});
}

// [low, high]; null is no limit.
Status read_bounds(const std::string& tensor, const Json& value, ModelDescription* model) {
  const Json::Array* limits = value.as_array();
  if (limits == nullptr || limits->size() != 2) {
    return invalid_error("{} is not allowed; allowed: [low, high]", value.to_message());
  }
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  ModelDescription::Bounds bounds{-kNoLimit, kNoLimit};
  if (!limits->front().is_null()) TORNASOLE_CHECK(into_number(&bounds.low)(limits->front()));
  if (!limits->back().is_null()) TORNASOLE_CHECK(into_number(&bounds.high)(limits->back()));
  if (bounds.low > bounds.high) {
    return invalid_error("{} is not allowed; allowed: two numbers in order", value.to_message());
  }
  model->bounds[tensor] = bounds;
  return {};
}

Result<ModelDescription> read_model(const char* text) {
  TORNASOLE_TRY(const Json root, parse_object("the model", text));
  ModelDescription model;
  const auto module = [&](const std::string& path, const Json& value) { return read_module(path, value, &model); };
  const auto parameter = [&](const std::string& name, const Json& value) {
    return read_parameter(name, value, &model);
  };
  const auto bounds = [&](const std::string& tensor, const Json& value) { return read_bounds(tensor, value, &model); };
  // What the hook knows itself stands in the file too; a file handed back is taken.
  TORNASOLE_CHECK(
      read_members("model", root,
                   {{"modules", each_name(module)},
                    {"parameters", each_name(parameter)},
                    {"losses", each_item([&](const Json& value) { return read_loss(value, &model); })},
                    {"inputs", into_texts(&model.inputs)},
                    {"optimizers", each_item([&](const Json& value) { return read_optimizer(value, &model); })},
                    {"bounds", each_name(bounds)},
                    {"data", into_text_map(&model.data)},
                    {"versions", into_text_map(&model.versions)},
                    {"device", into(&model.device)},
                    {"version", {}},
                    {"framework", {}},
                    {"world_size", {}}}));
  return model;
}

Result<StepFacts> read_facts(const char* text) {
  TORNASOLE_TRY(const Json root, parse_object("the facts", text));
  StepFacts facts;
  TORNASOLE_CHECK(read_members("facts", root,
                               {{"optimizer_step", into_integer(&facts.optimizer_step)},
                                {"training", into_flag(&facts.training)},
                                {"grad_enabled", into_flag(&facts.grad_enabled)},
                                {"backward_in_eval", into_flag(&facts.backward_in_eval)},
                                {"grad_scale", into_number(&facts.grad_scale)}}));
  return facts;
}

// ---- a collection

Status check_collection_name(std::string_view name) {
  if (!name.empty() && is_valid_utf8(name)) return {};
  return invalid_error("the collection name '{}' is not allowed; allowed: a name in UTF-8", printable(name));
}

Status configure(Collection collection, const char* text) {
  TORNASOLE_TRY(const Json root, parse_object("the settings of a collection", text));
  config::Problems problems;
  std::map<std::string, std::string> origins;
  config::CollectionParameters parameters =
      config::read_collection_parameters(root, {.problems = &problems, .origins = &origins});
  if (!problems.errors().empty()) return problems.first_error();
  // A file warns of a key it does not know; a call can refuse it.
  if (!problems.warnings().empty()) return invalid_error("{}", problems.warnings().front());
  if (parameters.schedule.any()) TORNASOLE_CHECK(collection.set_save_config(to_save_config(parameters.schedule)));
  if (auto spec = parameters.reductions.spec()) {
    TORNASOLE_CHECK(collection.set_reduction_config(to_reduction_config(*spec)));
  }
  if (parameters.save_histogram) TORNASOLE_CHECK(collection.set_save_histogram(*parameters.save_histogram));
  if (!parameters.include_regex.empty()) TORNASOLE_CHECK(collection.include(parameters.include_regex));
  return {};
}

template <typename Change>
tornasole_code_t change_collection(std::string_view call, tornasole_hook* hook, const char* collection,
                                   const char* argument_name, const char* argument, Change&& change) noexcept {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null(call, {{"hook", hook}, {"collection", collection}, {argument_name, argument}}));
    TORNASOLE_CHECK(check_collection_name(collection));
    return change(hook->hook.collection(collection));
  });
}

// ---- out

void write_texts(JsonWriter& json, std::string_view key, const std::vector<std::string>& texts) {
  json.key(key).begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_counts(JsonWriter& json, std::string_view key, const std::map<std::string, std::int64_t>& counts) {
  json.key(key).begin_object();
  for (const auto& [name, count] : counts) json.key(name).value(count);
  json.end_object();
}

std::string report_text(const CaptureReport& report) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("due_steps").value(report.due_steps).key("committed_steps").value(report.committed_steps);
  write_counts(json, "dropped_steps", report.dropped_steps);
  write_counts(json, "dropped_values", report.dropped_values);
  json.key("last_committed_step").value(report.last_committed_step);
  json.key("queue_peak_bytes").value(report.queue_peak_bytes).key("wait_ms").value(report.wait_ms);
  write_texts(json, "errors", report.errors);
  write_counts(json, "requests", report.requests);
  json.key("collections").begin_array();
  for (const CaptureReport::CollectionCoverage& coverage : report.collections) {
    json.begin_object().key("name").value(coverage.name).key("saved").value(coverage.saved);
    json.key("matched").value(coverage.matched).key("saved_values").value(coverage.saved_values);
    write_texts(json, "unmatched_patterns", coverage.unmatched_patterns);
    write_texts(json, "near_misses", coverage.near_misses);
    json.end_object();
  }
  json.end_array().key("names_observed").value(report.names_observed);
  write_texts(json, "unclaimed_names", report.unclaimed_names);
  json.key("bytes_written").value(report.bytes_written).key("largest_step_bytes").value(report.largest_step_bytes);
  write_counts(json, "bytes_by_collection", report.bytes_by_collection);
  json.end_object();
  return text;
}

std::string collection_text(const Collection& collection) {
  std::string text;
  JsonWriter json(&text);
  json.begin_object().key("name").value(collection.name());
  write_texts(json, "include_regex", collection.include_regex());
  write_texts(json, "exclude_regex", collection.exclude_regex());
  write_texts(json, "tensor_names", collection.tensor_names());
  json.end_object();
  return text;
}

}  // namespace
}  // namespace tornasole::capture

using namespace tornasole;           // NOLINT(google-build-using-namespace): the functions below are outside of it
using namespace tornasole::capture;  // NOLINT(google-build-using-namespace)

tornasole_code_t tornasole_collection_include(tornasole_hook_t* hook, const char* collection, const char* pattern) {
  return change_collection("tornasole_collection_include", hook, collection, "pattern", pattern,
                           [&](Collection changed) { return changed.include(pattern); });
}

tornasole_code_t tornasole_collection_exclude(tornasole_hook_t* hook, const char* collection, const char* pattern) {
  return change_collection("tornasole_collection_exclude", hook, collection, "pattern", pattern,
                           [&](Collection changed) { return changed.exclude(pattern); });
}

tornasole_code_t tornasole_collection_add(tornasole_hook_t* hook, const char* collection, const char* tensor_name) {
  return change_collection("tornasole_collection_add", hook, collection, "tensor_name", tensor_name,
                           [&](Collection changed) { return changed.add(tensor_name); });
}

tornasole_code_t tornasole_collection_configure(tornasole_hook_t* hook, const char* collection, const char* json) {
  return change_collection("tornasole_collection_configure", hook, collection, "json", json,
                           [&](Collection changed) { return configure(std::move(changed), json); });
}

char* tornasole_collection_json(tornasole_hook_t* hook, const char* collection) {
  return answer_or<char*>(nullptr, [&]() -> Result<char*> {
    TORNASOLE_CHECK(not_null("tornasole_collection_json", {{"hook", hook}, {"collection", collection}}));
    const std::vector<std::string> names = hook->hook.collection_names();
    const std::string_view name = config::resolve_collection_alias(collection);
    if (std::find(names.begin(), names.end(), name) == names.end()) {
      return make_error(ErrorCode::kNotFound, ErrorKind::kBadCollection, "there is no collection '{}'",
                        printable(name));
    }
    return to_caller(collection_text(hook->hook.collection(name)));
  });
}

char* tornasole_collection_names_json(tornasole_hook_t* hook) {
  return answer_or<char*>(nullptr, [&]() -> Result<char*> {
    TORNASOLE_CHECK(not_null("tornasole_collection_names_json", {{"hook", hook}}));
    std::string text;
    JsonWriter json(&text);
    json.begin_array();
    for (const std::string& name : hook->hook.collection_names()) json.value(name);
    json.end_array();
    return to_caller(text);
  });
}

tornasole_code_t tornasole_describe_model(tornasole_hook_t* hook, const char* json) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_describe_model", {{"hook", hook}, {"json", json}}));
    TORNASOLE_TRY(const ModelDescription model, read_model(json));
    hook->hook.describe_model(model);
    return {};
  });
}

tornasole_code_t tornasole_set_facts(tornasole_hook_t* hook, const char* json) {
  return answer([&]() -> Status {
    TORNASOLE_CHECK(not_null("tornasole_set_facts", {{"hook", hook}, {"json", json}}));
    TORNASOLE_TRY(const StepFacts facts, read_facts(json));
    hook->hook.set_facts(facts);
    return {};
  });
}

char* tornasole_report_json(tornasole_hook_t* hook) {
  return answer_or<char*>(nullptr, [&]() -> Result<char*> {
    TORNASOLE_CHECK(not_null("tornasole_report_json", {{"hook", hook}}));
    return to_caller(report_text(hook->hook.report()));
  });
}
