#include "rules/check/run_record.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <numeric>

#include "reduce/derived.h"
#include "reduce/reduce.h"
#include "rules/check/change_by_stats.h"
#include "rules/check/tensor_row.h"
#include "rules/tensor_numbers.h"

namespace tornasole::rules {
namespace {

std::string lower_case(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

// Whether a model scales what it is given: by a layer made for that, by computing on it, or by a first layer with
// weights that normalizes.
bool scales_inputs(const ModelDescription& model) {
  constexpr std::array<std::string_view, 3> kMadeForIt = {"rescaling", "normalization", "normalize"};
  constexpr std::array<std::string_view, 5> kComputing = {"lambda", "tfoplambda", "truedivide", "subtract", "multiply"};
  const auto is_among = [](const auto& types, std::string_view type) {
    return std::ranges::find(types, type) != types.end();
  };
  const ModelDescription::Module* first = nullptr;
  for (const auto& module : model.modules) {
    if (is_among(kMadeForIt, lower_case(module.type))) return true;
    const bool has_weights = std::ranges::find(model.parameters, module.path, &ModelDescription::Parameter::module) !=
                             model.parameters.end();
    if (module.call_order >= 0 && has_weights && (first == nullptr || module.call_order < first->call_order)) {
      first = &module;
    }
  }
  if (first == nullptr) return false;
  if (lower_case(first->type).find("norm") != std::string::npos) return true;
  return std::ranges::any_of(model.modules, [&](const auto& module) {
    return module.call_order >= 0 && module.call_order < first->call_order &&
           is_among(kComputing, lower_case(module.type));
  });
}

// Optimizer steps from one saved step to another, or training steps where nobody counted those.
std::int64_t gap_between(const StepPoint& then, const StepPoint& now) {
  const bool is_counted = then.optimizer_step >= 0 && now.optimizer_step >= 0;
  return is_counted ? now.optimizer_step - then.optimizer_step : now.global_step - then.global_step;
}

}  // namespace

bool is_about_classes(std::string_view loss_class) noexcept {
  if (loss_class.starts_with("b") || loss_class.find("bce") != std::string_view::npos) return false;  // binary_...
  return loss_class.find("crossentropy") != std::string_view::npos ||
         loss_class.find("cross_entropy") != std::string_view::npos || loss_class.starts_with("nll");
}

Recorder::Recorder(const Trial& trial) : trial_(trial), roles_(std::make_unique<RoleFinder>(trial)) { reset(); }

void Recorder::reset() {
  record_ = {};
  places_.clear();
  previous_.clear();
  note_model();
}

namespace {

// Which parts of the model are meant to learn.
void note_what_is_trained(const ModelDescription& model, RunRecord* record) {
  std::map<std::string_view, std::string> classes;
  for (const auto& module : model.modules) classes[module.path] = lower_case(module.type);
  bool is_any_left = false;
  bool is_any_trained = false;
  record->trains_batch_norm = false;
  for (const auto& parameter : model.parameters) {
    const bool is_trained =
        parameter.requires_grad && (record->optimized.empty() || record->optimized.contains(parameter.name));
    (is_trained ? is_any_trained : is_any_left) = true;
    const bool is_normalising = classes[parameter.module].find("batchnorm") != std::string::npos;
    record->trains_batch_norm |= is_trained && is_normalising;
  }
  record->is_fine_tuned = is_any_left && is_any_trained;
}

}  // namespace

void Recorder::note_model() {
  if (trial_.models().empty()) return;
  const ModelDescription* model = &trial_.models().begin()->second.model;
  record_.layer_classes.clear();
  for (const auto& module : model->modules) record_.layer_classes.push_back(lower_case(module.type));
  const auto last = std::ranges::max_element(model->modules, {}, &ModelDescription::Module::call_order);
  if (last != model->modules.end()) record_.last_layer = lower_case(last->type);
  record_.scales_inputs = scales_inputs(*model);
  record_.optimizers = model->optimizers.size();
  record_.optimizers_of_others = 0;
  for (const auto& optimizer : model->optimizers) {
    record_.optimizers_of_others +=
        std::ranges::all_of(optimizer.groups, [](const auto& group) { return group.empty(); });
    const auto number = [&](const char* name, double otherwise) {
      const auto found = optimizer.hyperparameters.find(name);
      return found == optimizer.hyperparameters.end() ? otherwise : found->second;
    };
    const bool is_alone = model->optimizers.size() == 1;
    if (is_alone && lower_case(optimizer.type) == "sgd") record_.plain_rate = number("lr", record_.plain_rate);
    record_.momentum = std::max(record_.momentum, number("momentum", 0));
    if (const double decay = number("weight_decay", 0); decay > record_.weight_decay) {
      record_.weight_decay = decay;
      const std::string type = lower_case(optimizer.type);
      record_.is_decay_decoupled = type.ends_with("adamw");
      const double momentum = type == "sgd" ? number("momentum", 0) : 0;
      const bool is_by_rate = record_.is_decay_decoupled || (type == "sgd" && momentum >= 0 && momentum < 1);
      record_.decay_by_rate = is_by_rate ? decay / (1 - momentum) : 0;
      record_.base_rate = number("lr", record_.base_rate);
    }
    for (const auto& group : optimizer.groups) record_.optimized.insert(group.begin(), group.end());
  }
  note_what_is_trained(*model, &record_);
  const std::string& framework = trial_.models().begin()->second.framework;
  record_.framework = framework;
  record_.weights_after_step = framework == "tensorflow";
  record_.is_boosting |= framework == "xgboost";
  record_.units_last = framework == "tensorflow" || framework == "jax";
}

std::vector<Need> Recorder::needs() const {
  const auto of = [this](std::initializer_list<Role> roles) {
    return [this, wanted = std::vector<Role>(roles)](std::string_view name) {
      return std::ranges::find(wanted, roles_->role_of(name).role) != wanted.end();
    };
  };
  const auto parameters = of({Role::kWeight, Role::kBias});
  const auto is_update_stored = [this](std::string_view name) {
    return trial_.has_tensor("derived/update/" + std::string(name));
  };
  const auto of_a_loss = of({Role::kPredictions, Role::kLabels});
  const auto are_classes_stored = [this](std::string_view name) {
    return trial_.has_tensor("derived/classes/" + std::string(name));
  };
  return {
      {.choose = of({Role::kLoss, Role::kValidationLoss, Role::kLearningRate, Role::kGradNorm, Role::kGradientBefore,
                     Role::kLossSign, Role::kMetric, Role::kImportance}),
       .stats = kRecordStats,
       .derived = {"counts"}},
      {.choose = [=](std::string_view name) { return parameters(name) && is_update_stored(name); },
       .stats = kRecordStats,
       .derived = {"counts", "update", "across_samples"}},
      {.choose = [=](std::string_view name) { return parameters(name) && !is_update_stored(name); },
       .stats = kRecordStats,
       .value = true,
       .derived = {"counts"}},
      {.choose = of({Role::kGradient, Role::kOptimizerGradient}),
       .stats = kRecordStats,
       .derived = {"counts", "cosine_previous"}},
      {.choose = of({Role::kLayerInput, Role::kLayerOutput}),
       .stats = kRecordStats,
       .derived = {"counts", "unit_activity", "across_samples"}},
      {.choose = [=](std::string_view name) { return of_a_loss(name) && are_classes_stored(name); },
       .stats = kRecordStats,
       .derived = {"counts", "across_samples", "classes"}},
      {.choose = [=](std::string_view name) { return of_a_loss(name) && !are_classes_stored(name); },
       .stats = kRecordStats,
       .value = true,
       .derived = {"counts", "across_samples", "classes"}},
      {.choose = of({Role::kOther, Role::kOptimizerState}), .reductions_without_value = true, .derived = {"counts"}},
      {.choose = of({Role::kModelInput}), .stats = kRecordStats, .derived = {"counts", "across_samples", "quantiles"}},
      {.choose = of({Role::kTreeTable, Role::kHyperparameter}), .value = true},
  };
}

History& Recorder::history_of(const StepTensor& tensor, const Trial& trial) {
  const auto [at, is_new] =
      places_.try_emplace({std::string(tensor.worker), std::string(tensor.name)}, record_.histories.size());
  if (is_new) {
    // Names that came after the roles were found may be in collections that were not known then.
    if (const std::size_t known = trial.collections().size(); known != names_known_) {
      names_known_ = known;
      roles_ = std::make_unique<RoleFinder>(trial);
    }
    record_.histories.push_back(
        {.name = std::string(tensor.name), .worker = std::string(tensor.worker), .role = roles_->role_of(tensor.name)});
  }
  return record_.histories[at->second];
}

void Recorder::note_update(History& history, const StepTensor& tensor, Row* row) {
  if (const Tensor* update = tensor.derived_statistic("update"); is(update, DType::kFloat64, 2)) {
    const auto numbers = elements<double>(*update);
    set(row, Column::kUpdate, numbers[0]);
    set(row, Column::kBefore, numbers[1]);
    set(row, Column::kGap, 1);
  }
  if (const Tensor* cosine = tensor.derived_statistic("cosine_previous"); is(cosine, DType::kFloat64, 1)) {
    set(row, Column::kCosine, elements<double>(*cosine)[0]);
  }
  if (tensor.value == nullptr) return note_update_by_stats(history, row);
  if (tensor.value->dtype() == DType::kString) return;
  const auto place = static_cast<std::size_t>(&history - record_.histories.data());
  const auto now = static_cast<std::uint32_t>(record_.steps.size() - 1);
  if (history.role.role == Role::kWeight) {
    // At rounds that double: it takes long, and does not change from step to step.
    if (std::has_single_bit(history.rows.size() + 1)) {
      note_equal_units(*tensor.value, row);
      note_rank(*tensor.value, row);
    }
  }
  const Kept before = std::exchange(previous_[place], Kept{tensor.value, now});
  if (before.value == nullptr || knows(*row, Column::kUpdate)) return;
  const std::int64_t gap = gap_between(record_.steps[before.point], record_.steps[now]);
  if (gap <= 0) return;  // nobody stepped: nothing could change
  if (const auto update = reduce::update(view_of(*tensor.value), view_of(*before.value)); update.ok()) {
    const auto numbers = elements<double>(*update);
    set(row, Column::kUpdate, numbers[0]);
    set(row, Column::kBefore, numbers[1]);
    set(row, Column::kGap, static_cast<double>(gap));
  }
}

void Recorder::note_update_by_stats(const History& history, Row* row) const {
  const bool is_parameter = history.role.role == Role::kWeight || history.role.role == Role::kBias;
  if (!is_parameter || history.rows.empty() || trial_.has_tensor("derived/update/" + history.name)) return;
  const std::int64_t gap = gap_between(record_.steps[history.points.back()], record_.steps.back());
  const std::optional<StatChange> change = change_by_stats(history.rows.back(), *row);
  if (gap <= 0 || !change) return;
  set(row, Column::kUpdate, change->change);
  set(row, Column::kBefore, change->size);
  set(row, Column::kGap, static_cast<double>(gap));
}

void Recorder::look_at(const StepView& step, Findings& /*findings*/) {
  const auto point = static_cast<std::uint32_t>(record_.steps.size());
  const StepFacts facts = step.trial().step_facts(step.global_step());
  record_.steps.push_back({step.global_step().number, step.step(), facts.optimizer_step.value_or(-1)});
  record_.facts.push_back(facts);
  std::vector<const StepTensor*> tensors;
  for (std::size_t need = 0; need < kRecordNeeds; ++need) {
    tensors.insert(tensors.end(), step.tensors(need).begin(), step.tensors(need).end());
  }
  std::ranges::sort(tensors, {}, &StepTensor::order);
  note_round(tensors);
  for (const StepTensor* tensor : tensors) {
    History& history = history_of(*tensor, step.trial());
    if (history.role.role == Role::kTreeTable) continue;
    if (history.role.role == Role::kHyperparameter) {
      note_hyperparameter(*tensor);
      continue;
    }
    Row row;
    row.fill(std::numeric_limits<float>::quiet_NaN());
    note_stats(tensor->stats, &row);
    note_counts(tensor->derived_statistic("counts"), &row);
    note_bad_reductions(*tensor, &row);
    note_quantiles(tensor->derived_statistic("quantiles"), &row);
    // A unit that is NaN is above nothing, which does not make it a unit that is off.
    if (!(row[static_cast<std::size_t>(Column::kNan)] > 0)) {
      note_activity(tensor->derived_statistic("unit_activity"), &row, &history.unit_activity);
    }
    note_across(tensor->derived_statistic("across_samples"), &row);
    note_update(history, *tensor, &row);
    const Tensor* classes = tensor->derived_statistic("classes");
    if (history.role.role == Role::kPredictions) {
      const std::optional<Tensor> made = pair_values(*tensor, history.role, tensors);
      note_pairs(made ? &*made : classes, point, &history.class_pairs);
      if (record_.is_boosting) note_quality(history, *tensor, tensors, &row);
    }
    if (history.role.role == Role::kLabels && step.mode() == record_.training_mode()) {
      if (!note_shares(tensor->derived_statistic("across_samples"), row, &history.label_counts)) {
        note_labels(classes, &history.label_counts);
      }
    }
    note_saturation(history.role, &row);
    if (tensor->shape) history.shape = tensor->shape;
    history.points.push_back(point);
    history.rows.push_back(row);
  }
}

// What the hook would have stored as classes: predictions, whose scores lie along axis 1, beside the labels of the same
// loss. Nothing if a value is missing or the loss is not about classes.
std::optional<Tensor> Recorder::pair_values(const StepTensor& predictions, const TensorRole& role,
                                            std::span<const StepTensor* const> tensors) const {
  if (predictions.value == nullptr || predictions.value->shape().rank() < 2 || !is_about_classes(role.loss_class)) {
    return std::nullopt;
  }
  for (const StepTensor* labels : tensors) {
    if (labels->value == nullptr || labels->worker != predictions.worker) continue;
    const TensorRole other = roles_->role_of(labels->name);
    if (other.role != Role::kLabels || other.loss_class != role.loss_class) continue;
    const auto chosen = reduce::predicted_classes(view_of(*predictions.value), 1);
    if (!chosen.ok()) return std::nullopt;
    auto pairs = reduce::class_pairs(view_of(*labels->value), view_of(*chosen));
    return pairs.ok() ? std::optional(std::move(*pairs)) : std::nullopt;
  }
  return std::nullopt;
}

Series RunRecord::series(const History& history, Column column, std::optional<Mode> mode) const {
  Series series;
  for (std::size_t i = 0; i < history.size(); ++i) {
    const StepPoint& point = steps[history.points[i]];
    const double value = history.at(column, i);
    if (std::isnan(value) || (mode && point.step.mode != *mode)) continue;
    series.steps.push_back(point.global_step);
    series.optimizer_steps.push_back(point.optimizer_step);
    series.values.push_back(value);
  }
  return series;
}

std::vector<const History*> RunRecord::of_role(Role role) const {
  std::vector<const History*> found;
  const std::string* first_worker = nullptr;
  for (const History& history : histories) {
    if (first_worker == nullptr || history.worker < *first_worker) first_worker = &history.worker;
  }
  for (const History& history : histories) {
    if (history.role.role == role && history.worker == *first_worker) found.push_back(&history);
  }
  return found;
}

const History* RunRecord::find(std::string_view name) const noexcept {
  const auto found = std::ranges::find(histories, name, &History::name);
  return found == histories.end() ? nullptr : &*found;
}

Series RunRecord::losses(Mode mode, Role role) const {
  if (is_boosting && role == Role::kLoss && of_role(role).empty()) role = Role::kValidationLoss;
  struct Told {
    std::uint32_t point = 0;
    std::size_t loss = 0;
    double value = 0;
  };
  std::vector<Told> told;
  std::vector<double> latest;  // by loss: the value it has until it is told again
  for (const History* history : of_role(role)) {
    const std::size_t before = told.size();
    for (std::size_t i = 0; i < history->size(); ++i) {
      if (steps[history->points[i]].step.mode != mode) continue;
      told.push_back({history->points[i], latest.size(), history->at(Column::kMean, i)});
    }
    const auto own = std::ranges::subrange(told.begin() + static_cast<std::ptrdiff_t>(before), told.end());
    const auto finite = std::ranges::find_if(own, [](const Told& one) { return std::isfinite(one.value); });
    if (!own.empty()) latest.push_back(finite == own.end() ? 0.0 : finite->value);
  }
  std::ranges::stable_sort(told, {}, &Told::point);
  Series series;
  for (std::size_t first = 0, last = 0; first < told.size(); first = last) {
    const std::uint32_t point = told[first].point;
    for (; last < told.size() && told[last].point == point; ++last) latest[told[last].loss] = told[last].value;
    series.steps.push_back(steps[point].global_step);
    series.optimizer_steps.push_back(steps[point].optimizer_step);
    series.values.push_back(std::accumulate(latest.begin(), latest.end(), 0.0) / static_cast<double>(latest.size()));
  }
  return series;
}

std::vector<const History*> RunRecord::training_losses() const {
  std::vector<const History*> losses = of_role(Role::kLoss);
  // Keras tells the loss of an evaluation again, at the end of an epoch.
  std::erase_if(losses, [](const History* loss) { return loss->name.starts_with("val_"); });
  return losses;
}

std::string RunRecord::loss_class() const {
  const std::vector<const History*> losses = training_losses();
  return losses.size() == 1 ? losses.front()->role.loss_class : std::string();
}

Mode RunRecord::training_mode() const noexcept {
  const bool has_train = std::ranges::any_of(steps, [](const StepPoint& p) { return p.step.mode == Mode::kTrain; });
  return has_train ? Mode::kTrain : Mode::kGlobal;
}

}  // namespace tornasole::rules
