// RankCollapse: a weight matrix has come to use next to none of its directions, so that its units all say the same.
//
// Trained weights use fewer directions than random ones, and last layers few: a verdict needs one direction that is
// nearly all there is left, in a matrix that had many, and a loss that does not fall.

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "rules/check/detector.h"
#include "rules/check/loss_facts.h"

namespace tornasole::rules {
namespace {

constexpr double kCollapsed = 0.1;  // of the rank it began with
constexpr double kFew = 0.1;        // of the smaller side

void look(const RunRecord& run, Judgement& judgement) {
  bool has_any = false;
  std::vector<std::string> names;
  Series shown;
  for (const History* weight : run.of_role(Role::kWeight)) {
    const Series ranks = run.series(*weight, Column::kRank);
    if (!weight->role.requires_grad || ranks.size() < 2) continue;
    has_any = true;
    if (!(ranks.values.back() < kCollapsed * ranks.values.front()) || !(ranks.values.back() < kFew)) continue;
    if (names.empty()) shown = ranks;
    names.push_back(weight->name);
  }
  if (!has_any) {
    judgement.cannot("needs whole weights, of eight rows and columns or more, at two steps or more");
    return;
  }
  if (names.empty()) return;
  const bool is_harmed = has_loss_suffered(run) || !is_loss_falling(run);
  judgement.add({.severity = is_harmed ? Severity::kWarning : Severity::kInfo,
                 .first_step = shown.steps.back(),
                 .last_step = shown.steps.back(),
                 .mode = run.training_mode(),
                 .tensors = names,
                 .value = shown.values.back(),
                 .threshold = kCollapsed * shown.values.front(),
                 .message = fmt::format("{} {} {:.1g} of its directions; it began with {:.2g}.", names_text(names, 2),
                                        names.size() == 1 ? "uses" : "use", shown.values.back(), shown.values.front()),
                 .causes = {"weight decay that outweighs the loss", "a learning rate that is too high",
                            "a loss that is smallest if all samples get the same answer"},
                 .advice = {"lower weight decay and learning rate", "look at the variance of outputs over samples"},
                 .evidence = evidence_of("effective rank of " + names.front() + ", as a share", shown)});
}

}  // namespace

const Detector kCheckRank = {
    .name = "RankCollapse", .question = "Do weights use their directions?", .depth = 6, .look = look};

}  // namespace tornasole::rules
