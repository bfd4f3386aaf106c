#include "cli/finding_log.h"

namespace tornasole::cli {

std::vector<FindingNews> FindingLog::update(const CheckReport& report) {
  std::vector<FindingNews> news;
  std::map<Key, FindingNews> current;
  for (const Verdict& verdict : report.verdicts) {
    const std::string tensor = verdict.tensors.empty() ? std::string() : verdict.tensors.front();
    Key key{verdict.rule, verdict.mode, tensor, 0};
    while (current.contains(key)) ++std::get<3>(key);
    FindingNews finding{.verdict = verdict,
                        .cause = verdict.symptom_of ? report.verdicts[*verdict.symptom_of].rule : std::string()};
    if (const auto before = known_.find(key); before == known_.end()) {
      news.push_back(finding);
    } else if (verdict.severity > before->second.verdict.severity) {
      finding.change = FindingChange::kWorse;
      news.push_back(finding);
    }
    current.emplace(std::move(key), std::move(finding));
  }
  for (auto& [key, finding] : known_) {
    if (current.contains(key)) continue;
    finding.change = FindingChange::kWithdrawn;
    news.push_back(std::move(finding));
  }
  known_ = std::move(current);
  return news;
}

}  // namespace tornasole::cli
