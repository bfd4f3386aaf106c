// Answers the oracle test: reads lines {"pattern": ..., "names": [...]}, writes for each {"matches": "yn.l..."} (yes,
// no, limit) or {"error": ...}.

#include <iostream>
#include <string>

#include "base/json.h"
#include "pattern/pattern.h"

int main() {
  using namespace tornasole;
  std::ios::sync_with_stdio(false);
  std::string line;
  while (std::getline(std::cin, line)) {
    const auto request = parse_json(line);
    if (!request) {
      std::cerr << request.error().message << '\n';
      return 1;
    }
    const std::string* text = request->find("pattern")->as_string();
    const auto pattern = pattern::Pattern::compile(*text);
    std::string out;
    JsonWriter writer(&out);
    writer.begin_object();
    if (!pattern) {
      writer.key("error").value(pattern.error().message);
    } else {
      std::string matches;
      for (const Json& name : *request->find("names")->as_array()) {
        const pattern::Match match = pattern->search(*name.as_string());
        matches += match == pattern::Match::kYes ? 'y' : match == pattern::Match::kNo ? 'n' : 'l';
      }
      writer.key("matches").value(matches);
    }
    writer.end_object();
    std::cout << out << '\n';
  }
  return 0;
}
