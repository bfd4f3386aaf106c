#include "format/model_file.h"

#include <gtest/gtest.h>

#include "base/json.h"

namespace tornasole::format {
namespace {

TEST(ModelFile, SaysWhatTensorsAre) {
  ModelDescription model;
  model.modules = {{.path = "net", .type = "Net", .parent = "", .call_order = -1, .training = true},
                   {.path = "net.fc1", .type = "Linear", .parent = "net", .call_order = 0, .training = false}};
  model.parameters = {{.name = "Net_fc1.weight",
                       .module = "net.fc1",
                       .shape = {4, 2},
                       .dtype = "float32",
                       .requires_grad = false,
                       .tied = {"Net_out.weight"}}};
  model.losses = {{.name = "loss", .type = "MSELoss", .predictions = {"p"}, .labels = {"l"}}};
  model.inputs = {"x"};
  model.optimizers = {{.type = "SGD", .hyperparameters = {{"lr", 0.1}}, .groups = {{"Net_fc1.weight"}, {}}}};
  model.data = {{"train", "training"}};
  model.versions = {{"torch", "2.0"}};
  model.device = "cpu";
  EXPECT_EQ(
      encode_model(model, "pytorch", 2),
      R"({"version": 1, "modules": {"net": {"class": "Net", "parent": "", "call_order": null, "training": true}, )"
      R"("net.fc1": {"class": "Linear", "parent": "net", "call_order": 0, "training": false}}, "parameters": )"
      R"({"Net_fc1.weight": {"module": "net.fc1", "shape": [4, 2], "dtype": "float32", "requires_grad": false, )"
      R"("tied": ["Net_out.weight"]}}, "losses": [{"name": "loss", "class": "MSELoss", "predictions": ["p"], )"
      R"("labels": ["l"]}], "inputs": ["x"], "optimizers": [{"class": "SGD", "hyperparameters": {"lr": 0.1}, )"
      R"("groups": [["Net_fc1.weight"], []]}], "data": {"train": "training"}, "framework": "pytorch", )"
      R"("versions": {"torch": "2.0"}, "device": "cpu", "world_size": 2})");
}

TEST(ModelFile, AnEmptyModelIsGoodJson) {
  const auto json = parse_json(encode_model({}, "cpp", 1));
  ASSERT_TRUE(json.ok()) << json.error().message;
  EXPECT_EQ(json->as_object()->size(), 11U);
}

}  // namespace
}  // namespace tornasole::format
