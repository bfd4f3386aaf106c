// Any bytes as a file of rules and as a file of invariants: what is accepted keeps its promises, what is refused is
// told with the name of the file.

#include <set>

#include "fuzz_check.h"
#include "tornasole/invariants.h"
#include "tornasole/rule.h"
#include "tornasole/rule_configuration.h"

namespace {

using namespace tornasole;

void check_refusal(const Error& error) {
  FUZZ_CHECK(error.code == ErrorCode::kInvalid);
  FUZZ_CHECK(error.message.starts_with("fuzz.json"));
}

void check_rules(std::string_view text) {
  const auto rules = parse_rule_configurations(text, "fuzz.json");
  if (!rules.ok()) return check_refusal(rules.error());
  FUZZ_CHECK(!rules->empty());
  std::set<std::string> names;
  for (const RuleConfiguration& rule : *rules) {
    FUZZ_CHECK(check_report_name(rule.name).ok() && names.insert(rule.name).second);
    FUZZ_CHECK(rule.place.starts_with("fuzz.json:"));
    const auto type = find_rule(rule.rule);
    FUZZ_CHECK(type.ok());
    FUZZ_CHECK(RuleArguments::make((*type)->name, (*type)->parameters, rule.parameters).ok());
  }
}

// What was read is written so that it is read again, and means the same.
void check_invariants(std::string_view text) {
  const auto invariants = Invariants::parse(text, "fuzz.json");
  if (!invariants.ok()) return check_refusal(invariants.error());
  const std::string written = invariants->to_text();
  const auto again = Invariants::parse(written, "fuzz.json");
  FUZZ_CHECK(again.ok() && again->list.size() == invariants->list.size());
  FUZZ_CHECK(again->to_text() == written);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_rules(text);
  check_invariants(text);
  return 0;
}
