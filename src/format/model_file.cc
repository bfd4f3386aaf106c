#include "format/model_file.h"

#include <limits>
#include <map>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/errors.h"
#include "base/json.h"
#include "format/json_fields.h"

namespace tornasole::format {
namespace {

constexpr std::int64_t kModelVersion = 1;
constexpr std::int64_t kMaxWorkers = 65536;

void write_texts(JsonWriter& json, const std::vector<std::string>& texts) {
  json.begin_array();
  for (const std::string& text : texts) json.value(text);
  json.end_array();
}

void write_text_map(JsonWriter& json, const std::map<std::string, std::string>& texts) {
  json.begin_object();
  for (const auto& [key, text] : texts) json.key(key).value(text);
  json.end_object();
}

void write_module(JsonWriter& json, const ModelDescription::Module& module) {
  json.key(module.path).begin_object().key("class").value(module.type).key("parent").value(module.parent);
  json.key("call_order");
  // Never called so far: the order is unknown.
  module.call_order < 0 ? json.null() : json.value(module.call_order);
  json.key("training").value(module.training);
  if (!module.activation.empty()) json.key("activation").value(module.activation);
  json.end_object();
}

void write_parameter(JsonWriter& json, const ModelDescription::Parameter& parameter) {
  json.key(parameter.name).begin_object().key("module").value(parameter.module).key("shape").begin_array();
  for (const std::int64_t extent : parameter.shape) json.value(extent);
  json.end_array().key("dtype").value(parameter.dtype).key("requires_grad").value(parameter.requires_grad);
  json.key("tied");
  write_texts(json, parameter.tied);
  if (!parameter.placement.empty()) json.key("placement").value(parameter.placement);
  json.end_object();
}

void write_loss(JsonWriter& json, const ModelDescription::Loss& loss) {
  json.begin_object().key("name").value(loss.name).key("class").value(loss.type).key("predictions");
  write_texts(json, loss.predictions);
  json.key("labels");
  write_texts(json, loss.labels);
  json.end_object();
}

void write_optimizer(JsonWriter& json, const ModelDescription::Optimizer& optimizer) {
  json.begin_object().key("class").value(optimizer.type).key("hyperparameters").begin_object();
  for (const auto& [name, number] : optimizer.hyperparameters) json.key(name).value(number);
  json.end_object().key("groups").begin_array();
  for (const std::vector<std::string>& group : optimizer.groups) write_texts(json, group);
  json.end_array().end_object();
}

// ---- reading

// An object whose keys are names, each with an object of its own.
template <typename Item, typename Read>
Status read_named(const JsonFields& top, std::string_view key, std::vector<Item>* items, Read read) {
  const Json* found = top.present(key);
  if (found == nullptr) return {};
  if (found->as_object() == nullptr) return top.wrong_type(key, *found, "an object");
  std::unordered_map<std::string_view, std::size_t> places;
  items->reserve(found->as_object()->size());
  for (const auto& [name, value] : *found->as_object()) {
    TORNASOLE_TRY(Item item, read(name, value));
    const auto [place, is_new] = places.try_emplace(name, items->size());
    if (is_new) {
      items->push_back(std::move(item));
    } else {
      (*items)[place->second] = std::move(item);
    }
  }
  return {};
}

template <typename Item, typename Read>
Status read_list(const JsonFields& top, std::string_view key, std::vector<Item>* items, Read read) {
  const Json* found = top.present(key);
  if (found == nullptr) return {};
  if (found->as_array() == nullptr) return top.wrong_type(key, *found, "a list");
  items->reserve(found->as_array()->size());
  for (const Json& value : *found->as_array()) {
    TORNASOLE_TRY(Item item, read(value));
    items->push_back(std::move(item));
  }
  return {};
}

Result<ModelDescription::Module> read_module(const std::string& path, const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "a module"));
  ModelDescription::Module module;
  module.path = path;
  TORNASOLE_CHECK(fields.read("class", &module.type));
  TORNASOLE_CHECK(fields.read("parent", &module.parent));
  TORNASOLE_CHECK(fields.read("call_order", &module.call_order, {.lowest = 0}));
  TORNASOLE_CHECK(fields.read("training", &module.training));
  TORNASOLE_CHECK(fields.read("activation", &module.activation));
  return module;
}

Result<ModelDescription::Parameter> read_parameter(const std::string& name, const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "a parameter"));
  ModelDescription::Parameter parameter;
  parameter.name = name;
  TORNASOLE_CHECK(fields.read("module", &parameter.module));
  TORNASOLE_CHECK(fields.read("shape", &parameter.shape));
  TORNASOLE_CHECK(fields.read("dtype", &parameter.dtype));
  TORNASOLE_CHECK(fields.read("requires_grad", &parameter.requires_grad));
  TORNASOLE_CHECK(fields.read("tied", &parameter.tied));
  TORNASOLE_CHECK(fields.read("placement", &parameter.placement));
  return parameter;
}

Result<ModelDescription::Loss> read_loss(const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "a loss"));
  ModelDescription::Loss loss;
  TORNASOLE_CHECK(fields.read("name", &loss.name));
  TORNASOLE_CHECK(fields.read("class", &loss.type));
  TORNASOLE_CHECK(fields.read("predictions", &loss.predictions));
  TORNASOLE_CHECK(fields.read("labels", &loss.labels));
  return loss;
}

// Nothing for a value that is no number.
std::optional<double> number_of(const Json& json, double null) {
  if (json.is_null()) return null;
  if (const std::int64_t* integer = json.as_int()) return static_cast<double>(*integer);
  if (const double* number = json.as_double()) return *number;
  return std::nullopt;
}

Result<ModelDescription::Optimizer> read_optimizer(const Json& json) {
  TORNASOLE_TRY(const JsonFields fields, JsonFields::of(json, "an optimizer"));
  ModelDescription::Optimizer optimizer;
  TORNASOLE_CHECK(fields.read("class", &optimizer.type));
  if (const Json* found = fields.present("hyperparameters")) {
    const Json::Object* numbers = found->as_object();
    if (numbers == nullptr) return fields.wrong_type("hyperparameters", *found, "an object of numbers");
    for (const auto& [name, value] : *numbers) {
      const auto number = number_of(value, std::numeric_limits<double>::quiet_NaN());
      if (!number) return fields.wrong_type("hyperparameters", value, "a number");
      optimizer.hyperparameters[name] = *number;
    }
  }
  if (const Json* found = fields.present("groups")) {
    const Json::Array* groups = found->as_array();
    if (groups == nullptr) return fields.wrong_type("groups", *found, "a list of lists");
    for (const Json& group : *groups) {
      const Json::Array* names = group.as_array();
      if (names == nullptr) return fields.wrong_type("groups", group, "a list of strings");
      std::vector<std::string>& texts = optimizer.groups.emplace_back();
      for (const Json& name : *names) {
        if (name.as_string() == nullptr) return fields.wrong_type("groups", name, "a string");
        texts.push_back(*name.as_string());
      }
    }
  }
  return optimizer;
}

Status read_bounds(const JsonFields& top, std::map<std::string, ModelDescription::Bounds>* bounds) {
  const Json* found = top.present("bounds");
  if (found == nullptr) return {};
  if (found->as_object() == nullptr) return top.wrong_type("bounds", *found, "an object");
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  for (const auto& [tensor, value] : *found->as_object()) {
    const Json::Array* ends = value.as_array();
    const bool is_pair = ends != nullptr && ends->size() == 2;
    const auto low = is_pair ? number_of(ends->front(), -kNoLimit) : std::nullopt;
    const auto high = is_pair ? number_of(ends->back(), kNoLimit) : std::nullopt;
    if (!low || !high) return top.wrong_type("bounds", value, "a list of two numbers, null for none");
    (*bounds)[tensor] = {*low, *high};
  }
  return {};
}

}  // namespace

Bytes encode_model(const ModelDescription& model, std::string_view framework, std::int64_t world_size) {
  Bytes out;
  JsonWriter json(&out);
  json.begin_object().key("version").value(kModelVersion).key("modules").begin_object();
  for (const auto& module : model.modules) write_module(json, module);
  json.end_object().key("parameters").begin_object();
  for (const auto& parameter : model.parameters) write_parameter(json, parameter);
  json.end_object().key("losses").begin_array();
  for (const auto& loss : model.losses) write_loss(json, loss);
  json.end_array().key("inputs");
  write_texts(json, model.inputs);
  json.key("optimizers").begin_array();
  for (const auto& optimizer : model.optimizers) write_optimizer(json, optimizer);
  json.end_array();
  if (!model.bounds.empty()) {
    json.key("bounds").begin_object();
    // A limit that is not finite is none, which is null.
    for (const auto& [tensor, bounds] : model.bounds) {
      json.key(tensor).begin_array().value(bounds.low).value(bounds.high).end_array();
    }
    json.end_object();
  }
  json.key("data");
  write_text_map(json, model.data);
  json.key("framework").value(framework).key("versions");
  write_text_map(json, model.versions);
  json.key("device").value(model.device).key("world_size").value(world_size).end_object();
  return out;
}

Result<StoredModel> decode_model(ByteView text) {
  TORNASOLE_CHECK(check_item_count(text));
  TORNASOLE_TRY(const Json json, parse_json(text, {.max_bytes = kMaxModelFileBytes}));
  TORNASOLE_TRY(const JsonFields top, JsonFields::of(json, "a model file"));
  // A later version adds keys; it does not change these.
  std::int64_t version = 0;
  TORNASOLE_CHECK(top.require({"version"}));
  TORNASOLE_CHECK(top.read("version", &version, {.lowest = kModelVersion}));
  StoredModel stored;
  ModelDescription& model = stored.model;
  TORNASOLE_CHECK(read_named(top, "modules", &model.modules, read_module));
  TORNASOLE_CHECK(read_named(top, "parameters", &model.parameters, read_parameter));
  TORNASOLE_CHECK(read_list(top, "losses", &model.losses, read_loss));
  TORNASOLE_CHECK(top.read("inputs", &model.inputs));
  TORNASOLE_CHECK(read_list(top, "optimizers", &model.optimizers, read_optimizer));
  TORNASOLE_CHECK(read_bounds(top, &model.bounds));
  TORNASOLE_CHECK(top.read("data", &model.data));
  TORNASOLE_CHECK(top.read("versions", &model.versions));
  TORNASOLE_CHECK(top.read("device", &model.device));
  TORNASOLE_CHECK(top.read("framework", &stored.framework));
  TORNASOLE_CHECK(top.read("world_size", &stored.world_size, {.lowest = 1, .highest = kMaxWorkers}));
  return stored;
}

}  // namespace tornasole::format
