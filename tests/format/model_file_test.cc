#include "format/model_file.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "base/json.h"
#include "format/json_fields.h"

namespace tornasole::format {
namespace {

ModelDescription whole_model() {
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
  return model;
}

TEST(ModelFile, SaysWhatTensorsAre) {
  EXPECT_EQ(
      encode_model(whole_model(), "pytorch", 2),
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

TEST(ModelFile, WhatWasWrittenIsRead) {
  ModelDescription model = whole_model();
  constexpr double kNoLimit = std::numeric_limits<double>::infinity();
  model.bounds = {{"a", {-1.5, 2}}, {"b", {-kNoLimit, 6}}, {"c", {0, kNoLimit}}};
  model.modules.push_back({.path = "name with \"quotes\" and \u00e9", .type = "", .parent = "net", .call_order = 7});
  model.optimizers.push_back({.type = "Odd", .hyperparameters = {{"whole", 3}, {"odd", kNoLimit}}, .groups = {}});
  const Bytes text = encode_model(model, "pytorch", 2);
  const auto read = decode_model(text);
  ASSERT_TRUE(read.ok()) << read.error().message;
  EXPECT_EQ(read->framework, "pytorch");
  EXPECT_EQ(read->world_size, 2);
  const ModelDescription& again = read->model;
  ASSERT_EQ(again.modules.size(), 3U);
  EXPECT_EQ(again.modules[0].path, "net");
  EXPECT_EQ(again.modules[0].type, "Net");
  EXPECT_EQ(again.modules[0].call_order, -1);
  EXPECT_TRUE(again.modules[0].training);
  EXPECT_EQ(again.modules[1].parent, "net");
  EXPECT_EQ(again.modules[1].call_order, 0);
  EXPECT_FALSE(again.modules[1].training);
  EXPECT_EQ(again.modules[2].path, "name with \"quotes\" and \u00e9");
  ASSERT_EQ(again.parameters.size(), 1U);
  EXPECT_EQ(again.parameters[0].name, "Net_fc1.weight");
  EXPECT_EQ(again.parameters[0].module, "net.fc1");
  EXPECT_EQ(again.parameters[0].shape, (std::vector<std::int64_t>{4, 2}));
  EXPECT_EQ(again.parameters[0].dtype, "float32");
  EXPECT_FALSE(again.parameters[0].requires_grad);
  EXPECT_EQ(again.parameters[0].tied, std::vector<std::string>{"Net_out.weight"});
  ASSERT_EQ(again.losses.size(), 1U);
  EXPECT_EQ(again.losses[0].type, "MSELoss");
  EXPECT_EQ(again.losses[0].predictions, std::vector<std::string>{"p"});
  EXPECT_EQ(again.losses[0].labels, std::vector<std::string>{"l"});
  EXPECT_EQ(again.inputs, std::vector<std::string>{"x"});
  ASSERT_EQ(again.optimizers.size(), 2U);
  EXPECT_EQ(again.optimizers[0].hyperparameters.at("lr"), 0.1);
  EXPECT_EQ(again.optimizers[0].groups, (std::vector<std::vector<std::string>>{{"Net_fc1.weight"}, {}}));
  EXPECT_EQ(again.optimizers[1].hyperparameters.at("whole"), 3);
  EXPECT_TRUE(std::isnan(again.optimizers[1].hyperparameters.at("odd")));
  EXPECT_EQ(again.bounds.at("a").low, -1.5);
  EXPECT_EQ(again.bounds.at("a").high, 2);
  EXPECT_EQ(again.bounds.at("b").low, -kNoLimit);
  EXPECT_EQ(again.bounds.at("c").high, kNoLimit);
  EXPECT_EQ(again.data.at("train"), "training");
  EXPECT_EQ(again.versions.at("torch"), "2.0");
  EXPECT_EQ(again.device, "cpu");
  EXPECT_EQ(encode_model(again, read->framework, read->world_size), text);
}

TEST(ModelFile, WhatIsNotSaidIsAsInAnEmptyDescription) {
  const auto read = decode_model(
      R"({"version": 3, "modules": {"a": {}, "b": {"class": "B"}, "a": {"class": "A"}}, "inputs": ["x"], "later": [{}],
          "inputs": null, "parameters": {"p": {"module": null}}, "device": "old", "device": "new"})");
  ASSERT_TRUE(read.ok()) << read.error().message;
  ASSERT_EQ(read->model.modules.size(), 2U);
  EXPECT_EQ(read->model.modules[0].type, "A") << "the last of two counts, in the place of the first";
  EXPECT_EQ(read->model.modules[0].call_order, -1);
  EXPECT_TRUE(read->model.modules[0].training);
  EXPECT_TRUE(read->model.parameters.at(0).requires_grad);
  EXPECT_TRUE(read->model.inputs.empty());
  EXPECT_EQ(read->model.device, "new");
  EXPECT_EQ(read->framework, "");
  EXPECT_EQ(read->world_size, 1);
}

TEST(ModelFile, WhatCannotBeMeantIsDamage) {
  const struct {
    const char* what;
    std::string text;
    const char* message;
  } cases[] = {
      {"no text", "", "line 1"},
      {"a list", "[]", "a model file is a list, not an object"},
      {"no version", "{}", "a model file has no \"version\""},
      {"a version before the first", R"({"version": 0})", "\"version\" of a model file is 0"},
      {"two documents", R"({"version": 1}{"version": 1})", "line 1"},
      {"half a file", R"({"version": 1, "modules": {"a")", "line 1"},
      {"modules as a list", R"({"version": 1, "modules": []})", "\"modules\" of a model file is [], not an object"},
      {"a module as text", R"({"version": 1, "modules": {"a": "Net"}})", "a module is a string, not an object"},
      {"a class that is a number", R"({"version": 1, "modules": {"a": {"class": 7}}})",
       "\"class\" of a module is 7, not a string"},
      {"a call order below zero", R"({"version": 1, "modules": {"a": {"call_order": -1}}})",
       "\"call_order\" of a module"},
      {"a call order with a fraction", R"({"version": 1, "modules": {"a": {"call_order": 1.5}}})", "not an integer"},
      {"a flag that is a number", R"({"version": 1, "modules": {"a": {"training": 1}}})", "not true or false"},
      {"a shape with a text", R"({"version": 1, "parameters": {"a": {"shape": [1, "2"]}}})",
       "\"shape\" of a parameter is [1, \"2\"], not a list of integers"},
      {"losses by name", R"({"version": 1, "losses": {}})", "\"losses\" of a model file is {...}, not a list"},
      {"labels that are a text", R"({"version": 1, "losses": [{"labels": "l"}]})", "\"labels\" of a loss"},
      {"a hyperparameter that is a text", R"({"version": 1, "optimizers": [{"hyperparameters": {"lr": "1"}}]})",
       "\"hyperparameters\" of an optimizer is \"1\", not a number"},
      {"a group that is a name", R"({"version": 1, "optimizers": [{"groups": ["w"]}]})",
       "\"groups\" of an optimizer is \"w\", not a list of strings"},
      {"a group of numbers", R"({"version": 1, "optimizers": [{"groups": [[1]]}]})",
       "\"groups\" of an optimizer is 1, not a string"},
      {"one bound", R"({"version": 1, "bounds": {"t": [1]}})", "\"bounds\" of a model file is [1], not a list of two"},
      {"a bound that is a text", R"({"version": 1, "bounds": {"t": [1, "2"]}})", "not a list of two numbers"},
      {"a role that is a number", R"({"version": 1, "data": {"train": 1}})",
       "\"data\" of a model file is 1, not a string"},
      {"more workers than can be", R"({"version": 1, "world_size": 65537})", "not between 1 and 65536"},
      {"nested too deep", R"({"version": 1, "later": )" + std::string(100, '[') + std::string(100, ']') + "}", "deep"},
      {"more items than are counted", R"({"version": 1, "inputs": [)" + std::string(kMaxFileItems + 1, ','),
       "more than the limit of 2097152"},
      {"more bytes than are read", std::string(kMaxModelFileBytes + 1, ' '), "67108864"},
  };
  for (const auto& c : cases) {
    const auto read = decode_model(c.text);
    ASSERT_FALSE(read.ok()) << c.what;
    EXPECT_EQ(read.error().code, ErrorCode::kCorrupt) << c.what;
    EXPECT_NE(read.error().message.find(c.message), std::string::npos) << c.what << ": " << read.error().message;
  }
}

TEST(ModelFile, CutAnywhereItIsDamage) {
  const Bytes text = encode_model(whole_model(), "pytorch", 2);
  for (std::size_t length = 0; length < text.size(); ++length) {
    EXPECT_FALSE(decode_model(ByteView(text).substr(0, length)).ok()) << length;
  }
}

}  // namespace
}  // namespace tornasole::format
