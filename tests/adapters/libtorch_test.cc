// What the libtorch adapter captures, and that a training does not notice.

#include <ATen/autocast_mode.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <torch/torch.h>

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "tornasole/libtorch.h"
#include "tornasole/trial.h"
#include "tornasole/views.h"

namespace tornasole::libtorch {
namespace {

using Names = std::vector<std::string>;

struct BlockImpl : torch::nn::Module {
  BlockImpl() {
    register_module("fc", fc);
    register_module("norm", norm);
  }
  torch::Tensor forward(const torch::Tensor& x) { return torch::dropout(torch::relu(norm(fc(x))), 0.5, is_training()); }
  torch::nn::Linear fc{4, 6};
  torch::nn::BatchNorm1d norm{6};
};
TORCH_MODULE(Block);

class Libtorch : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::manual_seed(1);
    std::string pattern = (std::filesystem::temp_directory_path() / "tornasole-libtorch-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override {
    std::filesystem::permissions(folder_, std::filesystem::perms::owner_all);
    std::filesystem::remove_all(folder_);
  }
  Hook open(HookOptions options = {.save_all = true}) {
    if (options.out_dir.empty()) options.out_dir = folder_ / "run";
    if (!options.save_config.save_interval) options.save_config.save_interval = 1;
    options.log = [this](LogLevel level, std::string_view text) {
      if (level >= LogLevel::kWarning) log_.emplace_back(text);
    };
    auto hook = libtorch::open(std::move(options));
    EXPECT_TRUE(hook.ok()) << hook.error().message;
    return std::move(*hook);
  }
  Trial trial() {
    auto opened = Trial::open({.path = (folder_ / "run").string()});
    EXPECT_TRUE(opened.ok()) << opened.error().message;
    return std::move(*opened);
  }
  Tensor value(const std::string& name, std::int64_t step = 0) {
    auto found = trial().tensor(name, {Mode::kGlobal, step});
    EXPECT_TRUE(found.ok()) << name << ": " << (found.ok() ? "" : found.error().message);
    return found.ok() ? *found : Tensor();
  }
  static Tensor copy_of(const torch::Tensor& tensor) { return Tensor(libtorch::view(tensor)); }
  static bool has(const Names& names, const std::string& name) { return std::ranges::find(names, name) != names.end(); }

  std::filesystem::path folder_;
  Names log_;
};

TEST_F(Libtorch, TensorsOfEveryKindAreReadAsTheyAre) {
  struct Case {
    const char* what;
    torch::Tensor tensor, same;  // the second is dense, and what the first has to look like
  };
  const torch::Tensor numbers = torch::arange(6, torch::kFloat).view({2, 3});
  const torch::Tensor complex = torch::complex(numbers, numbers + 1);
  const Case kCases[] = {
      {"a plain one", numbers, numbers},
      {"a transposed one", numbers.t(), numbers.t().contiguous()},
      {"one that repeats a row", numbers[0].expand({4, 3}), numbers[0].expand({4, 3}).contiguous()},
      {"a single number", torch::scalar_tensor(2.5), torch::scalar_tensor(2.5)},
      {"one that needs gradients", numbers.clone().requires_grad_(), numbers},
      {"a sparse one", numbers.to_sparse(), numbers},
      {"a quantised one", torch::quantize_per_tensor(numbers, 1.0, 0, torch::kQInt8), numbers},
      {"a lazily conjugated one", complex.conj(), torch::complex(numbers, -(numbers + 1))},
      {"half precision", numbers.to(torch::kBFloat16), numbers.to(torch::kBFloat16)},
      {"integers", numbers.to(torch::kLong), numbers.to(torch::kLong)},
      {"booleans", numbers > 2, numbers > 2},
      {"an empty one", torch::empty({0, 3}), torch::empty({0, 3})},
  };
  for (const Case& c : kCases) {
    const Tensor seen = copy_of(c.tensor);
    EXPECT_EQ(seen.dtype(), *dtype_of(c.same.scalar_type())) << c.what;
    EXPECT_EQ(seen.bytes(), std::string_view(static_cast<const char*>(c.same.data_ptr()), c.same.nbytes())) << c.what;
    EXPECT_EQ(seen.shape(), Shape(std::vector<std::int64_t>(c.same.sizes().vec()))) << c.what;
  }
}

TEST_F(Libtorch, ATensorThatCannotBeReadIsCountedAsLost) {
  Hook hook = open();
  {
    auto step = hook.begin_step(Mode::kTrain);
    step.save("nothing", torch::Tensor());
    step.save("in name only", torch::empty({2}, torch::kMeta));
    step.save("x", torch::ones({2}));
  }
  EXPECT_EQ(hook.report().dropped_values["bad_value"], 2);
  EXPECT_FALSE(hook.close().ok());  // says what was lost
}

TEST_F(Libtorch, TheRootIsNamedAfterItsTypeWithoutWhatOnlyTheCompilerNeeds) {
  struct Case {
    const char* type;
    const char* name;
  };
  const Case kCases[] = {
      {"torch::nn::LinearImpl", "Linear"},
      {"(anonymous namespace)::NetImpl", "Net"},
      {"Net", "Net"},
      {"Impl", "Impl"},
      {"zoo::Stack<zoo::BlockImpl, 3>", "Stack"},
  };
  for (const Case& c : kCases) EXPECT_EQ(type_name(c.type), c.name);
}

TEST_F(Libtorch, ParametersComeBeforeTheUpdateAndGradientsOfThisPassAlone) {
  Block block;
  torch::optim::SGD optimizer(block->parameters(), 0.5);
  const torch::Tensor x = torch::randn({8, 4});
  Tensor before, gradient;
  {
    Hook hook = open();
    register_module(hook, block);
    for (int i = 0; i < 2; ++i) {
      before = copy_of(block->fc->weight);
      const torch::Tensor earlier =
          block->fc->weight.grad().defined() ? block->fc->weight.grad().clone() : torch::zeros({6, 4});
      auto step = hook.begin_step();
      block->forward(x).sum().backward();  // gradients are not cleared: they add up
      gradient = copy_of(block->fc->weight.grad() - earlier);
      optimizer.step();
    }
    EXPECT_EQ(hook.mode(), Mode::kTrain);
  }
  EXPECT_EQ(value("Block_fc.weight", 1), before);
  const Tensor saved = value("gradient/Block_fc.weight", 1);
  ASSERT_EQ(saved.element_count(), gradient.element_count());
  for (std::size_t i = 0; i < 24; ++i) EXPECT_NEAR(saved.values<float>()[i], gradient.values<float>()[i], 1e-5);
  const Names names = *trial().tensor_names();
  for (const char* name : {"Block_fc.bias", "Block_norm.weight", "gradient/Block_norm.bias", "fc_input_0",
                           "fc_output_0", "norm_input_0", "norm_output_0"}) {
    EXPECT_TRUE(has(names, name)) << name;
  }
  EXPECT_FALSE(has(names, "Block_norm.running_mean"));
  EXPECT_EQ(log_, Names{});
}

TEST_F(Libtorch, BuffersAreSavedOnRequest) {
  {
    Block block;
    Hook hook = open();
    register_module(hook, block, {.name = "Net", .save_buffers = true});
    auto step = hook.begin_step();
  }
  EXPECT_EQ(value("Net_norm.running_var"), copy_of(torch::ones({6})));
}

TEST_F(Libtorch, TheModeFollowsTheModule) {
  Block block;
  Hook hook = open();
  register_module(hook, block);
  block->eval();
  EXPECT_EQ(hook.begin_step().mode(), Mode::kEval);
  block->train();
  EXPECT_EQ(hook.begin_step().mode(), Mode::kTrain);
  EXPECT_EQ(hook.begin_step(Mode::kPredict).mode(), Mode::kPredict);
}

TEST_F(Libtorch, OutputsOfLayersAreWhatTheModuleReturns) {
  torch::nn::Linear deep(4, 3), flat(4, 3), bare(torch::nn::LinearOptions(4, 3).bias(false));
  torch::nn::Conv2d conv(torch::nn::Conv2dOptions(1, 2, 3));
  torch::nn::Embedding words(5, 4);
  struct AllImpl : torch::nn::Module {};
  auto all = std::make_shared<AllImpl>();
  all->register_module("deep", deep);
  all->register_module("flat", flat);
  all->register_module("bare", bare);
  all->register_module("conv", conv);
  all->register_module("words", words);
  torch::Tensor of_deep, of_flat, of_bare, of_conv, of_words;
  {
    Hook hook = open();
    register_module(hook, *all);
    auto step = hook.begin_step();
    of_deep = deep(torch::randn({2, 5, 4}));  // two operators: a product, then the bias
    of_flat = flat(torch::randn({2, 4}));
    of_bare = bare(torch::randn({2, 5, 4}));
    of_conv = conv(torch::randn({1, 1, 5, 5}));
    of_words = words(torch::tensor({1, 2, 3}));
    torch::linear(torch::ones({1, 4}), torch::ones({3, 4}));  // of no module
  }
  EXPECT_EQ(value("deep_output_0"), copy_of(of_deep));
  EXPECT_EQ(value("flat_output_0"), copy_of(of_flat));
  EXPECT_EQ(value("bare_output_0"), copy_of(of_bare));
  EXPECT_EQ(value("conv_output_0"), copy_of(of_conv));
  EXPECT_EQ(value("words_input_0"), copy_of(torch::tensor({1, 2, 3})));
  EXPECT_EQ(value("words_output_0"), copy_of(of_words));
  EXPECT_FALSE(trial().has_tensor("flat_output_1"));
}

TEST_F(Libtorch, SeveralModelsOfOneHookAreToldApart) {
  torch::nn::Linear maker(4, 3), judge(3, 1);
  torch::Tensor made, judged;
  {
    Hook hook = open();
    register_module(hook, maker, {.name = "Maker"});
    register_module(hook, judge, {.name = "Judge"});
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step();
      made = maker(torch::randn({2, 4}));
      judged = judge(made);
      judged.sum().backward();
    }
  }
  EXPECT_EQ(value("Maker_output_0", 1), copy_of(made));
  EXPECT_EQ(value("Judge_input_0", 1), copy_of(made));
  EXPECT_EQ(value("Judge_output_0", 1), copy_of(judged));
  EXPECT_EQ(value("gradient/Maker_bias", 1).element_count(), 3);
}

TEST_F(Libtorch, AParameterThatIsTrainedLaterHasAGradientFromThenOn) {
  torch::nn::Linear net(2, 1);
  net->weight.set_requires_grad(false);
  {
    Hook hook = open();
    register_module(hook, net);
    for (int i = 0; i < 2; ++i) {
      auto step = hook.begin_step();
      net(torch::ones({1, 2})).sum().backward();
      step.end();
      net->weight.set_requires_grad(true);
    }
  }
  const Trial run = trial();
  EXPECT_FALSE(run.tensor("gradient/Linear_weight", {Mode::kGlobal, 0}).ok());
  EXPECT_TRUE(run.tensor("gradient/Linear_weight", {Mode::kGlobal, 1}).ok());
}

TEST_F(Libtorch, AStepMayEndOnAnotherThread) {
  Block block;
  {
    Hook hook = open();
    register_module(hook, block);
    auto step = std::make_unique<StepScope>(hook.begin_step());
    block->forward(torch::randn({8, 4}));
    std::thread([&] { step.reset(); }).join();
    block->forward(torch::randn({8, 4}));  // no step is open: nothing is saved
    auto next = hook.begin_step();
    EXPECT_TRUE(at::hasThreadLocalCallbacks());
  }
  EXPECT_FALSE(at::hasThreadLocalCallbacks());
  EXPECT_FALSE(trial().has_tensor("fc_output_1"));
}

TEST_F(Libtorch, WithAutocastValuesKeepTheTypeTheyHave) {
  torch::nn::Sequential net(torch::nn::Linear(4, 4));
  const auto switch_autocast = [](bool on) {
#if TORCH_VERSION_MAJOR >= 2
    at::autocast::set_autocast_enabled(at::kCPU, on);
#else
    at::autocast::set_cpu_enabled(on);
#endif
  };
  {
    Hook hook = open();
    register_module(hook, net);
    auto step = hook.begin_step();
    switch_autocast(true);
    const torch::Tensor out = net->forward(torch::randn({2, 4}));
    switch_autocast(false);
    at::autocast::clear_cache();
    step.tap("loss", out.to(torch::kFloat).sum()).backward();
    EXPECT_EQ(out.scalar_type(), torch::kBFloat16);
  }
  EXPECT_EQ(value("0_output_0").dtype(), DType::kBfloat16);
  EXPECT_EQ(value("Sequential_0.weight").dtype(), DType::kFloat32);
  EXPECT_EQ(value("gradient/Sequential_0.weight").dtype(), DType::kFloat32);
}

TEST_F(Libtorch, TheStateOfOptimizersHasTheNamesOfPyTorch) {
  struct Case {
    const char* what;
    std::function<std::unique_ptr<torch::optim::Optimizer>(std::vector<torch::Tensor>)> make;
    Names keys;
    double rate;
  };
  using namespace torch::optim;
  const Case kCases[] = {
      {"Adam",
       [](auto p) { return std::make_unique<Adam>(p, AdamOptions(0.1)); },
       {"exp_avg", "exp_avg_sq", "step"},
       0.1},
      {"AdamW",
       [](auto p) { return std::make_unique<AdamW>(p, AdamWOptions(0.2).amsgrad(true)); },
       {"exp_avg", "exp_avg_sq", "max_exp_avg_sq", "step"},
       0.2},
      {"SGD", [](auto p) { return std::make_unique<SGD>(p, SGDOptions(0.3).momentum(0.9)); }, {"momentum_buffer"}, 0.3},
      {"RMSprop",
       [](auto p) { return std::make_unique<RMSprop>(p, RMSpropOptions(0.4)); },
       {"square_avg", "step"},
       0.4},
      {"Adagrad", [](auto p) { return std::make_unique<Adagrad>(p, AdagradOptions(0.5)); }, {"step", "sum"}, 0.5},
  };
  for (const Case& c : kCases) {
    torch::nn::Linear net(2, 1);
    const auto optimizer = c.make(net->parameters());
    const std::string path = (folder_ / c.what).string();
    {
      Hook hook = open({.out_dir = path, .include_collections = {"optimizer_variables", "optimizer_gradients"}});
      Model& model = register_module(hook, net);
      model.register_optimizer(*optimizer);
      for (int i = 0; i < 2; ++i) {
        auto step = hook.begin_step();
        net(torch::ones({1, 2})).sum().backward();
        model.before_optimizer_step();
        optimizer->step();
      }
    }
    auto opened = Trial::open({.path = path});
    ASSERT_TRUE(opened.ok()) << c.what;
    for (const std::string& key : c.keys) {
      EXPECT_TRUE(opened->has_tensor("optimizer_state/" + key + "/Linear_weight")) << c.what << " " << key;
    }
    EXPECT_TRUE(opened->has_tensor("optimizer_gradient/Linear_bias")) << c.what;
    const auto rate = opened->tensor("scalar/learning_rate/0", {Mode::kGlobal, 1});
    ASSERT_TRUE(rate.ok()) << c.what;
    EXPECT_EQ(rate->values<double>()[0], c.rate) << c.what;
  }
}

TEST_F(Libtorch, CopiesFromADeviceAreDeliveredInOrderAtTheLatestWhenTheStepEnds) {
  // A device whose copies have come when the test says so.
  std::vector<std::pair<torch::Tensor, bool>> copies;
  int waited = 0;
  const StartCopy start = [&](const at::Tensor& tensor) {
    copies.emplace_back(tensor.clone(), false);
    const std::size_t i = copies.size() - 1;
    return StartedCopy{copies[i].first, [&copies, i] { return copies[i].second; }, [&waited] { ++waited; }};
  };
  Names delivered;
  HostCopies host(start, /*max_under_way=*/3);
  const auto save = [&](const char* name) {
    host.save(torch::ones({1}), [&delivered, name](const at::Tensor&) { delivered.emplace_back(name); });
  };
  save("a");
  EXPECT_EQ(delivered, Names{});
  copies[0].second = true;
  save("b");
  EXPECT_EQ(delivered, Names{"a"});
  save("c");
  save("d");
  save("e");  // one too many are under way: the first is waited for
  EXPECT_EQ(delivered, (Names{"a", "b"}));
  host.flush();
  EXPECT_EQ(delivered, (Names{"a", "b", "c", "d", "e"}));
  EXPECT_EQ(waited, 5);
  EXPECT_FALSE(host.is_busy());
}

TEST_F(Libtorch, ValuesOfADeviceAreInTheStepTheyBelongTo) {
  // Sparse tensors stand for those of a device: they cannot be read where they are either.
  struct SparseImpl : torch::nn::Module {
    SparseImpl() { table = register_parameter("table", torch::eye(3).to_sparse(), /*requires_grad=*/false); }
    torch::Tensor table;
  };
  auto net = std::make_shared<SparseImpl>();
  std::atomic<int> started = 0;
  {
    Hook hook = open();
    register_module(hook, *net, {.start_copy = [&](const at::Tensor& tensor) {
                      ++started;
                      return StartedCopy{to_host(tensor), [] { return false; }, [] {}};
                    }});
    auto step = hook.begin_step();
    EXPECT_EQ(started, 1);
  }
  EXPECT_EQ(value("Sparse_table"), copy_of(torch::eye(3)));
}

TEST_F(Libtorch, ThreadsSaveIntoOneStep) {
  constexpr int kThreads = 4;
  std::vector<torch::nn::Linear> replicas;
  {
    Hook hook = open();
    for (int r = 0; r < kThreads; ++r) {
      replicas.emplace_back(3, 2);
      register_module(hook, replicas.back(), {.name = "R" + std::to_string(r), .save_activations = false});
    }
    for (int i = 0; i < 20; ++i) {
      auto step = hook.begin_step(Mode::kTrain);
      std::vector<std::thread> threads;
      for (int r = 0; r < kThreads; ++r) {
        threads.emplace_back([&, r] {
          auto loss =
              replicas[static_cast<std::size_t>(r)](torch::full({1, 3}, static_cast<double>(i * kThreads + r))).sum();
          step.save("loss" + std::to_string(r), loss);
          loss.backward();
        });
      }
      for (std::thread& thread : threads) thread.join();
    }
  }
  for (int i = 0; i < 20; ++i) {
    for (int r = 0; r < kThreads; ++r) {
      const Tensor gradient = value("gradient/R" + std::to_string(r) + "_weight", i);
      EXPECT_EQ(gradient.values<float>()[0], static_cast<float>(i * kThreads + r));
    }
  }
}

// Trains with dropout and gives the last parameters, and what the generator of random numbers gives next.
std::vector<Tensor> train(Hook* hook, bool is_registered) {
  torch::manual_seed(3);
  Block block;
  torch::optim::Adam optimizer(block->parameters(), torch::optim::AdamOptions(0.01));
  if (hook != nullptr && is_registered) {
    register_module(*hook, block, {.save_buffers = true, .capture_functional = true}).register_optimizer(optimizer);
  }
  for (int i = 0; i < 12; ++i) {
    std::optional<StepScope> step;
    if (hook != nullptr) step.emplace(hook->begin_step());
    optimizer.zero_grad();
    torch::Tensor loss = block->forward(torch::randn({8, 4})).pow(2).mean();
    if (step) loss = step->tap("loss", loss);
    loss.backward();
    optimizer.step();
  }
  std::vector<Tensor> result;
  for (const torch::Tensor& parameter : block->parameters()) result.emplace_back(libtorch::view(parameter));
  result.emplace_back(libtorch::view(torch::rand({4})));
  return result;
}

TEST_F(Libtorch, ATrainingIsTheSameToTheBitWhateverIsSaved) {
  const std::vector<Tensor> plain = train(nullptr, false);
  struct Case {
    const char* what;
    HookOptions options;
  };
  const Case kCases[] = {
      {"everything", {.save_all = true}},
      {"nothing due", {.save_config = {.save_interval = 1000, .start_step = 500}, .save_all = true}},
      {"statistics", {.reduction_config = ReductionConfig{.norms = {"l2"}}, .include_collections = {"gradients"}}},
      {"everything of an optimizer",
       {.include_collections = {"optimizer_variables", "optimizer_gradients", "weights", "biases"}}},
      {"every third step", {.save_config = {.save_interval = 3}, .save_all = true}},
  };
  for (const Case& c : kCases) {
    HookOptions options = c.options;
    options.out_dir = (folder_ / std::to_string(&c - kCases)).string();
    Hook hook = open(options);
    EXPECT_EQ(train(&hook, true), plain) << c.what;
  }
}

TEST_F(Libtorch, WhenNothingIsDueNothingHangsOnTheModel) {
  Block block;
  Hook hook = open({.save_config = {.save_interval = 1000, .start_step = 500}, .save_all = true});
  register_module(hook, block);
  auto step = hook.begin_step();
  EXPECT_FALSE(at::hasThreadLocalCallbacks());
  block->forward(torch::randn({8, 4})).sum().backward();
  EXPECT_EQ(torch::autograd::impl::hooks(block->fc->weight).size(), 0U);
}

TEST_F(Libtorch, ATrainingSurvivesWhatHappensToItsHook) {
  const std::vector<Tensor> plain = train(nullptr, false);
  {
    std::optional<Hook> hook = open({.out_dir = (folder_ / "closed").string(), .save_all = true});
    ASSERT_TRUE(hook->close().ok());
    EXPECT_EQ(train(&*hook, true), plain) << "closed before the training";
  }
  {
    Hook hook = open({.out_dir = (folder_ / "gone").string(), .save_all = true});
    {
      Block block;
      register_module(hook, block);
      auto step = hook.begin_step();
    }
    auto step = hook.begin_step(Mode::kTrain);  // the module is no more
    step.save("loss", torch::ones({1}));
  }
  {
    Block block;
    {
      Hook hook = open({.out_dir = (folder_ / "outlived").string(), .save_all = true});
      register_module(hook, block);
      hook.begin_step();
    }
    block->forward(torch::randn({8, 4})).sum().backward();  // the hook is no more
    EXPECT_FALSE(at::hasThreadLocalCallbacks());
  }
  {
    // A file where a directory has to be: nothing can be written.
    Hook hook = open({.out_dir = (folder_ / "blocked").string(), .save_all = true});
    std::filesystem::create_directories(folder_ / "blocked");
    std::fclose(std::fopen((folder_ / "blocked" / "events").c_str(), "w"));
    EXPECT_EQ(train(&hook, true), plain) << "no place to write";
    static_cast<void>(hook.close().ok());
    EXPECT_FALSE(log_.empty());
  }
}

TEST_F(Libtorch, AnExceptionOfTheTrainingMarksTheStepAsPartial) {
  try {
    Hook hook = open();
    Block block;
    register_module(hook, block);
    {
      auto whole = hook.begin_step();
    }
    auto step = hook.begin_step();
    block->forward(torch::randn({8, 5}));  // libtorch refuses the shape
    FAIL();
  } catch (const c10::Error&) {
    EXPECT_FALSE(at::hasThreadLocalCallbacks());
  }
  EXPECT_EQ(trial().run_status().state, RunState::kFailed);
}

}  // namespace
}  // namespace tornasole::libtorch
