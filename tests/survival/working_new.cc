#include "survival/failing_new.h"

namespace tornasole::survival {

void arm_failing_new(long /*n*/, bool /*is_lasting*/) {}
ExemptFromFailingNew::ExemptFromFailingNew() : was_exempt_(false) {}
ExemptFromFailingNew::~ExemptFromFailingNew() = default;

}  // namespace tornasole::survival
