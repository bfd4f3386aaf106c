#include "format/model_file.h"

#include "base/json.h"

namespace tornasole::format {
namespace {

constexpr std::int64_t kModelVersion = 1;

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
  json.key("training").value(module.training).end_object();
}

void write_parameter(JsonWriter& json, const ModelDescription::Parameter& parameter) {
  json.key(parameter.name).begin_object().key("module").value(parameter.module).key("shape").begin_array();
  for (const std::int64_t extent : parameter.shape) json.value(extent);
  json.end_array().key("dtype").value(parameter.dtype).key("requires_grad").value(parameter.requires_grad);
  json.key("tied");
  write_texts(json, parameter.tied);
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

}  // namespace tornasole::format
