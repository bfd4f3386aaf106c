// demo: trains a small network on handwritten digits and lets tornasole watch.
//
//   usage: tornasole_demo [OUT_DIR [DIGITS_FILE [MOMENTUM [SAVE_INTERVAL]]]]
//
// A momentum of 1.9 makes it diverge; `tornasole first-bad OUT_DIR` then shows where.
//
// Everything about tornasole is in the first part: how a type of your own is shown to it, how a hook is set up, and
// what a training loop has to say. The second part is the network, plain C++, and the third prints what happened.

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "tornasole/hook.h"

// A row-major matrix: this program's own tensor type.
struct Matrix {
  std::size_t rows = 0, columns = 0;
  std::vector<float> values = {};

  Matrix() = default;
  Matrix(std::size_t r, std::size_t c) : rows(r), columns(c), values(r * c) {}
  float& at(std::size_t row, std::size_t column) { return values[row * columns + column]; }
  float at(std::size_t row, std::size_t column) const { return values[row * columns + column]; }
};

// Says how tornasole reads a Matrix; after this, save and tap take one. Nothing is copied here.
template <>
struct tornasole::ViewOf<Matrix> {
  static TensorView view(const Matrix& m) {
    return TensorView::of(m.values, Shape{static_cast<std::int64_t>(m.rows), static_cast<std::int64_t>(m.columns)});
  }
};

namespace {

constexpr int kEpochs = 12;
constexpr std::size_t kBatch = 32;
constexpr std::size_t kTrainingDigits = 1437;  // the other 360 are for evaluation
constexpr float kLearningRate = 0.02F;
constexpr std::size_t kPixels = 64, kClasses = 10;

// ---- 1. tornasole ---------------------------------------------------------------------------------------------------

// The collections that want something else than what the hook's options say.
tornasole::Status set_up_collections(tornasole::Hook& hook) {
  // The loss at every step: one number is cheap.
  if (auto set = hook.collection("losses").set_save_config({.save_interval = 1}); !set) return set;
  // What passes between the layers, with its shape. Patterns are regular expressions as in Python.
  auto activations = hook.collection("activations");
  if (auto added = activations.include("^relu|^logits$"); !added) return added;
  if (auto set = activations.set_reduction_config({.reductions = {"mean", "std", "max"}, .save_shape = true}); !set) {
    return set;
  }
  // Two whole tensors, every 90th step. They also belong to `weights`: both collections get what they ask for.
  auto snapshots = hook.collection("snapshots");
  if (auto added = snapshots.include("^fc[13]\\.weight$"); !added) return added;
  if (auto set = snapshots.set_save_config({.save_interval = 90}); !set) return set;
  if (auto set = snapshots.set_reduction_config({.save_raw_tensor = true}); !set) return set;
  // Optional: finds mistakes in patterns now rather than at the first step.
  return hook.prepare();
}

// Opens the hook: where to write, when, what, and in what form. The only call that has to be checked.
tornasole::Result<tornasole::Hook> open_hook(const std::string& out_dir, int save_interval) {
  tornasole::HookOptions options;
  options.out_dir = out_dir;
  // Not every training step, but every evaluation step.
  options.save_config.save_interval = save_interval;
  options.save_config.modes[tornasole::Mode::kEval].save_interval = 1;
  // Tensors are saved through collections. `losses` always is; weights, gradients and biases are known by their names;
  // the last two are our own.
  options.include_collections = {"weights", "gradients", "biases", "activations", "snapshots"};
  // A few numbers for each tensor instead of all its elements.
  options.reduction_config = {.reductions = {"min", "max", "mean", "std"}, .norms = {"l2"}};

  auto hook = tornasole::Hook::open(options);
  if (!hook) return hook;
  if (auto ready = set_up_collections(*hook); !ready) return ready.error();
  return hook;
}

// ---- 2. the network -------------------------------------------------------------------------------------------------

// SplitMix64: the same numbers on every machine, so every run of the demo ends with the same weights.
class Random {
 public:
  std::uint64_t next() {
    std::uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  float uniform(float limit) {
    const auto fraction = static_cast<float>(next() >> 40) / static_cast<float>(1 << 24);
    return limit * (2 * fraction - 1);
  }

 private:
  std::uint64_t state_ = 2024;
};

struct Linear {
  std::string name;
  Matrix weight, bias;  // [outputs, inputs], [1, outputs]
  Matrix weight_gradient, bias_gradient;
  Matrix weight_velocity, bias_velocity;

  Linear(std::string layer_name, std::size_t inputs, std::size_t outputs, Random& random)
      : name(std::move(layer_name)), weight(outputs, inputs), bias(1, outputs) {
    const float limit = std::sqrt(6.0F / static_cast<float>(inputs));
    for (float& w : weight.values) w = random.uniform(limit);
    weight_velocity = weight_gradient = Matrix(outputs, inputs);
    bias_velocity = bias_gradient = Matrix(1, outputs);
  }

  Matrix forward(const Matrix& x) const {
    Matrix y(x.rows, weight.rows);
    for (std::size_t n = 0; n < x.rows; ++n) {
      for (std::size_t o = 0; o < weight.rows; ++o) {
        float sum = bias.at(0, o);
        for (std::size_t i = 0; i < weight.columns; ++i) sum += x.at(n, i) * weight.at(o, i);
        y.at(n, o) = sum;
      }
    }
    return y;
  }

  // From the gradient of the output to those of weight, bias and input.
  Matrix backward(const Matrix& x, const Matrix& dy) {
    weight_gradient = Matrix(weight.rows, weight.columns);
    bias_gradient = Matrix(1, weight.rows);
    Matrix dx(x.rows, x.columns);
    for (std::size_t n = 0; n < x.rows; ++n) {
      for (std::size_t o = 0; o < weight.rows; ++o) {
        const float d = dy.at(n, o);
        bias_gradient.at(0, o) += d;
        for (std::size_t i = 0; i < weight.columns; ++i) {
          weight_gradient.at(o, i) += d * x.at(n, i);
          dx.at(n, i) += d * weight.at(o, i);
        }
      }
    }
    return dx;
  }

  void update(float momentum) {
    const auto descend = [momentum](Matrix& parameter, Matrix& velocity, const Matrix& gradient) {
      for (std::size_t i = 0; i < parameter.values.size(); ++i) {
        velocity.values[i] = momentum * velocity.values[i] - kLearningRate * gradient.values[i];
        parameter.values[i] += velocity.values[i];
      }
    };
    descend(weight, weight_velocity, weight_gradient);
    descend(bias, bias_velocity, bias_gradient);
  }
};

Matrix relu(Matrix x) {
  for (float& value : x.values) value = std::max(value, 0.0F);
  return x;
}

// The gradient passes where the output of relu was positive.
Matrix relu_backward(Matrix dy, const Matrix& y) {
  for (std::size_t i = 0; i < dy.values.size(); ++i) dy.values[i] = y.values[i] > 0 ? dy.values[i] : 0;
  return dy;
}

struct Loss {
  float mean = 0;
  std::size_t correct = 0;
  Matrix gradient = {};  // of the logits
};

Loss softmax_cross_entropy(const Matrix& logits, const std::vector<int>& labels) {
  Loss loss;
  loss.gradient = Matrix(logits.rows, logits.columns);
  const auto count = static_cast<float>(logits.rows);
  for (std::size_t n = 0; n < logits.rows; ++n) {
    const auto begin = logits.values.begin() + static_cast<std::ptrdiff_t>(n * logits.columns);
    const auto best = std::max_element(begin, begin + static_cast<std::ptrdiff_t>(logits.columns));
    const auto label = static_cast<std::size_t>(labels[n]);
    if (static_cast<std::size_t>(best - begin) == label) ++loss.correct;
    float total = 0;
    for (std::size_t c = 0; c < logits.columns; ++c) total += std::exp(logits.at(n, c) - *best);
    for (std::size_t c = 0; c < logits.columns; ++c) {
      const float probability = std::exp(logits.at(n, c) - *best) / total;
      loss.gradient.at(n, c) = (probability - (c == label ? 1.0F : 0.0F)) / count;
      if (c == label) loss.mean -= std::log(std::max(probability, 1e-12F)) / count;
    }
  }
  return loss;
}

struct Batch {
  Matrix pixels;
  std::vector<int> labels;
};

class Network {
 public:
  Network(Random& random, float optimizer_momentum)
      : momentum(optimizer_momentum),
        layers{Linear("fc1", kPixels, 48, random), Linear("fc2", 48, 24, random), Linear("fc3", 24, kClasses, random)} {
  }

  // tap looks at a value on its way and hands it on; in a step that saves nothing it costs one comparison.
  const Matrix& forward(const Matrix& pixels, tornasole::StepScope& step) {
    relu1_ = step.tap("relu1", relu(layers[0].forward(pixels)));
    relu2_ = step.tap("relu2", relu(layers[1].forward(relu1_)));
    logits_ = step.tap("logits", layers[2].forward(relu2_));
    return logits_;
  }
  void backward(const Matrix& pixels, const Matrix& d_logits) {
    const Matrix d_relu2 = layers[2].backward(relu2_, d_logits);
    const Matrix d_relu1 = layers[1].backward(relu1_, relu_backward(d_relu2, relu2_));
    layers[0].backward(pixels, relu_backward(d_relu1, relu1_));
  }

  float momentum;
  std::array<Linear, 3> layers;

 private:
  Matrix relu1_, relu2_, logits_;
};

// What the values cannot tell: which tensor belongs to which layer, what the loss compares, how the optimizer is set.
tornasole::ModelDescription describe(const Network& network) {
  tornasole::ModelDescription model;
  model.modules.push_back({"", "Network", ""});
  std::vector<std::string> names;
  for (const Linear& layer : network.layers) {
    model.modules.push_back({layer.name, "Linear", "", static_cast<std::int64_t>(model.modules.size()) - 1});
    for (const auto& [suffix, parameter] : {std::pair(".weight", &layer.weight), std::pair(".bias", &layer.bias)}) {
      names.push_back(layer.name + suffix);
      const std::vector<std::int64_t> shape = {static_cast<std::int64_t>(parameter->rows),
                                               static_cast<std::int64_t>(parameter->columns)};
      model.parameters.push_back({names.back(), layer.name, shape, "float32"});
    }
  }
  model.losses.push_back({"loss", "softmax_cross_entropy", {"logits"}, {"labels"}});
  model.inputs = {"pixels"};
  model.optimizers.push_back({"SGD", {{"lr", double{kLearningRate}}, {"momentum", double{network.momentum}}}, {names}});
  model.data = {{"digits", "validation"}};
  model.device = "cpu";
  return model;
}

// What the plots at the end are made of.
struct History {
  std::vector<double> loss = {};                                  // of every training step
  std::vector<double> accuracy = {};                              // of every evaluation
  std::map<std::string, std::vector<double>> gradient_norm = {};  // by layer, at the steps that were saved
};

double norm(const Matrix& m) {
  double squares = 0;
  for (const float value : m.values) squares += double{value} * double{value};
  return std::sqrt(squares);
}

void train_step(Network& network, const Batch& batch, tornasole::Hook& hook, History& history) {
  // The step ends with the scope, and is then written by a thread of the library.
  auto step = hook.begin_step(tornasole::Mode::kTrain);
  const Loss loss = softmax_cross_entropy(network.forward(batch.pixels, step), batch.labels);
  network.backward(batch.pixels, loss.gradient);

  step.save("loss", loss.mean);
  for (const Linear& layer : network.layers) {
    step.save(layer.name + ".weight", layer.weight);
    step.save(layer.name + ".bias", layer.bias);
    step.save("gradient/" + layer.name + ".weight", layer.weight_gradient);
    step.save("gradient/" + layer.name + ".bias", layer.bias_gradient);
    // Work that is done only for a tensor that will be saved.
    if (step.wants("gradient/" + layer.name + ".weight")) {
      history.gradient_norm[layer.name + ".weight"].push_back(norm(layer.weight_gradient));
    }
  }
  history.loss.push_back(double{loss.mean});
  for (Linear& layer : network.layers) layer.update(network.momentum);
}

void evaluate(Network& network, const Batch& batch, tornasole::Hook& hook, History& history) {
  auto step = hook.begin_step(tornasole::Mode::kEval);
  const Loss loss = softmax_cross_entropy(network.forward(batch.pixels, step), batch.labels);
  step.save("loss", loss.mean);
  const double accuracy = static_cast<double>(loss.correct) / static_cast<double>(batch.labels.size());
  // A scalar needs no collection: it is stored with the next step that is saved, here this one.
  hook.save_scalar("eval_accuracy", accuracy);
  history.accuracy.push_back(accuracy);
}

Batch take(const Batch& from, const std::vector<std::size_t>& order, std::size_t begin, std::size_t end) {
  Batch batch{Matrix(end - begin, kPixels), {}};
  for (std::size_t n = begin; n < end; ++n) {
    for (std::size_t i = 0; i < kPixels; ++i) batch.pixels.at(n - begin, i) = from.pixels.at(order[n], i);
    batch.labels.push_back(from.labels[order[n]]);
  }
  return batch;
}

// In place; the first `count` only.
void shuffle(std::vector<std::size_t>& order, std::size_t count, Random& random) {
  for (std::size_t i = count; i > 1; --i) std::swap(order[i - 1], order[random.next() % i]);
}

History train(Network& network, const Batch& digits, Random& random, tornasole::Hook& hook) {
  History history;
  std::vector<std::size_t> order(digits.labels.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  shuffle(order, order.size(), random);
  const Batch held_out = take(digits, order, kTrainingDigits, order.size());
  for (int epoch = 0; epoch < kEpochs; ++epoch) {
    shuffle(order, kTrainingDigits, random);
    for (std::size_t begin = 0; begin < kTrainingDigits; begin += kBatch) {
      const std::size_t end = std::min(begin + kBatch, kTrainingDigits);
      train_step(network, take(digits, order, begin, end), hook, history);
    }
    evaluate(network, held_out, hook, history);
    if (hook.stop_requested()) break;  // a rule, or a person, asked for it
  }
  return history;
}

// One digit a line: the label, then 64 pixels, 0 to 9 and A to G for 0 to 16. Empty if the file is not like that.
Batch load_digits(const std::string& path) {
  Batch digits;
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    if (line.size() != 1 + kPixels || line[0] < '0' || line[0] > '9') return {};
    digits.labels.push_back(line[0] - '0');
    for (std::size_t i = 0; i < kPixels; ++i) {
      const char pixel = line[1 + i];
      const int value = pixel <= '9' ? pixel - '0' : pixel - 'A' + 10;
      if (value < 0 || value > 16) return {};
      digits.pixels.values.push_back(static_cast<float>(value) / 16);
    }
  }
  digits.pixels.rows = digits.labels.size();
  digits.pixels.columns = kPixels;
  return digits;
}

// ---- 3. what happened -----------------------------------------------------------------------------------------------

// Colours on a terminal, plain text in a file.
const char* style(const char* code) {
  static const bool has_colour = isatty(STDOUT_FILENO) != 0 && std::getenv("NO_COLOR") == nullptr;
  return has_colour ? code : "";
}
const char* bold() { return style("\033[1m"); }
const char* faint() { return style("\033[2m"); }
const char* green() { return style("\033[32m"); }
const char* yellow() { return style("\033[33m"); }
const char* plain() { return style("\033[0m"); }

// The curve in `width` characters, each the mean of its share of the values, on a linear or a logarithmic scale.
std::string sparkline(const std::vector<double>& values, std::size_t width, bool is_log) {
  static constexpr std::array<const char*, 8> kBars = {"▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  std::vector<double> means;
  width = std::min(width, values.size());
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t begin = i * values.size() / width;
    const std::size_t end = (i + 1) * values.size() / width;
    double sum = 0;
    for (std::size_t at = begin; at < end; ++at) sum += values[at];
    const double mean = sum / static_cast<double>(end - begin);
    means.push_back(is_log ? std::log(std::max(mean, 1e-12)) : mean);
  }
  if (means.empty()) return {};
  const auto [low, high] = std::minmax_element(means.begin(), means.end());
  std::string line;
  for (const double mean : means) {
    const double height = *high > *low ? (mean - *low) / (*high - *low) : 0;
    line += kBars[static_cast<std::size_t>(std::lround(height * 7))];
  }
  return line;
}

void print_curve(const std::string& name, const std::vector<double>& values, bool is_log = true) {
  const std::string line = sparkline(values, 48, is_log);
  const std::size_t shown = std::min<std::size_t>(values.size(), 48);
  std::printf("  %-15s %s%s%s%*s  ", name.c_str(), green(), line.c_str(), plain(), static_cast<int>(48 - shown), "");
  std::printf("%.4f -> %.4f\n", values.front(), values.back());
}

void print_training(const History& history) {
  std::printf("\n%sTraining%s  %zu steps, %zu evaluations; the loss on a logarithmic scale\n\n", bold(), plain(),
              history.loss.size(), history.accuracy.size());
  print_curve("loss", history.loss);
  print_curve("eval accuracy", history.accuracy, /*is_log=*/false);
}

// The mean over the second half of the run, per element, so that layers of different sizes can be compared.
double typical_gradient(const std::vector<double>& norms, std::size_t elements) {
  double sum = 0;
  for (std::size_t i = norms.size() / 2; i < norms.size(); ++i) sum += norms[i];
  return sum / static_cast<double>(norms.size() - norms.size() / 2) / std::sqrt(static_cast<double>(elements));
}

void print_gradients(const Network& network, const History& history) {
  std::printf("\n%sGradient norms%s  of the steps that were saved, on a logarithmic scale\n\n", bold(), plain());
  std::string weakest, strongest;
  double smallest = 0, largest = 0;
  for (const Linear& layer : network.layers) {
    const std::string name = layer.name + ".weight";
    const auto found = history.gradient_norm.find(name);
    if (found == history.gradient_norm.end()) continue;
    print_curve(name, found->second);
    const double typical = typical_gradient(found->second, layer.weight.values.size());
    if (weakest.empty() || typical < smallest) weakest = name, smallest = typical;
    if (strongest.empty() || typical > largest) strongest = name, largest = typical;
  }
  if (weakest.empty() || smallest == 0) return;
  const double ratio = largest / smallest;
  std::printf("\n  %s%s%s has the smallest gradients: per element %.1f times smaller than %s.\n", yellow(),
              weakest.c_str(), plain(), ratio, strongest.c_str());
  std::printf("  %s%s%s\n", faint(),
              ratio < 100 ? "That is healthy; thousands of times would mean that the layer hardly learns."
                          : "That is a lot: the layer hardly learns.",
              plain());
}

void print_saved(const tornasole::Hook& hook) {
  // The report knows what every collection asked for and got, and what had to be left out.
  const tornasole::CaptureReport report = hook.report();
  std::printf("\n%sSaved%s  %lld steps, %.1f KiB, in %s\n\n", bold(), plain(),
              static_cast<long long>(report.committed_steps), static_cast<double>(report.bytes_written) / 1024,
              hook.out_dir().c_str());
  std::printf("  %s%-12s %8s %8s %10s%s\n", faint(), "collection", "tensors", "saved", "KiB", plain());
  for (const auto& collection : report.collections) {
    if (!collection.saved) continue;
    const auto bytes = report.bytes_by_collection.find(collection.name);
    const auto size = bytes == report.bytes_by_collection.end() ? 0 : bytes->second;
    std::printf("  %-12s %8lld %8lld %10.1f\n", collection.name.c_str(), static_cast<long long>(collection.matched),
                static_cast<long long>(collection.saved_values), static_cast<double>(size) / 1024);
    for (const std::string& pattern : collection.unmatched_patterns) {
      std::printf("  %spattern %s matched nothing%s\n", yellow(), pattern.c_str(), plain());
    }
  }
  for (const auto& [cause, steps] : report.dropped_steps) {
    std::printf("  %s%lld steps were dropped: %s%s\n", yellow(), static_cast<long long>(steps), cause.c_str(), plain());
  }
}

int fail(const std::string& message) {
  std::fprintf(stderr, "tornasole_demo: %s\n", message.c_str());
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string out_dir = argc > 1 ? argv[1] : "build/demo/run";
  const std::string data_file = argc > 2 && argv[2][0] != '\0' ? argv[2] : DEMO_DATA;
  const float momentum = argc > 3 ? std::strtof(argv[3], nullptr) : 0.9F;
  const int save_interval = argc > 4 ? std::atoi(argv[4]) : 15;
  const Batch digits = load_digits(data_file);
  if (digits.labels.size() <= kTrainingDigits) {
    return fail(data_file + ": expected more than " + std::to_string(kTrainingDigits) + " lines of 65 characters");
  }
  auto hook = open_hook(out_dir, save_interval);
  if (!hook) return fail(hook.error().message);

  Random random;
  Network network(random, momentum);
  hook->describe_model(describe(network));
  const History history = train(network, digits, random, *hook);
  // Waits for the writer and marks the run as finished. A training may ignore the result; a demo shows it.
  if (auto closed = hook->close(); !closed) return fail(closed.error().message);

  print_training(history);
  print_gradients(network, history);
  print_saved(*hook);
  std::printf("\n");
  return 0;
}
