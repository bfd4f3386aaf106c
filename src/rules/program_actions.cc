// exec, email, sms: a program is started and told.

#include <fmt/format.h>

#include "base/errors.h"
#include "rules/action.h"
#include "rules/run_program.h"

namespace tornasole::rules {
namespace {

bool has_nul(std::string_view text) { return text.find('\0') != std::string_view::npos; }

class ExecAction final : public Action {
 public:
  ExecAction(std::vector<std::string> command, double timeout_s)
      : command_(std::move(command)), timeout_s_(timeout_s) {}

  Status run(const ActionEvent& event) override { return run_program(command_, event.json, timeout_s_); }

 private:
  std::vector<std::string> command_;
  double timeout_s_;
};

class MessageAction final : public Action {
 public:
  MessageAction(std::string kind, std::string endpoint, const RuleActionOptions& options)
      : kind_(std::move(kind)), endpoint_(std::move(endpoint)), options_(options) {}

  Status run(const ActionEvent& event) override {
    const std::string subject = fmt::format("SMDebugRule:{} fired", event.rule);
    const std::string text = fmt::format("{}. {}", subject, event.violation.message);
    if (options_.notifier.empty()) {
      return unsupported_error("no notifier is configured (TORNASOLE_NOTIFIER); not sent to {}: {}", endpoint_, text);
    }
    return run_program({options_.notifier, kind_, endpoint_, subject}, text, options_.timeout_s);
  }

 private:
  std::string kind_, endpoint_;
  const RuleActionOptions& options_;
};

MadeAction make_message_action(const char* kind, const Json& endpoint, const RuleActionOptions& options) {
  const std::string* text = endpoint.as_string();
  if (text == nullptr || text->empty() || has_nul(*text)) {
    return invalid_error("{}: \"endpoint\" is a text that is not empty, not {}", kind, endpoint.to_message());
  }
  return std::unique_ptr<Action>(std::make_unique<MessageAction>(kind, *text, options));
}

}  // namespace

MadeAction make_email_action(const Json& endpoint, const RuleActionOptions& options) {
  return make_message_action("email", endpoint, options);
}

MadeAction make_sms_action(const Json& endpoint, const RuleActionOptions& options) {
  return make_message_action("sms", endpoint, options);
}

MadeAction make_exec_action(const Json& command, const RuleActionOptions& options) {
  std::vector<std::string> words;
  bool is_sound = command.as_array() != nullptr && !command.as_array()->empty();
  if (is_sound) {
    for (const Json& word : *command.as_array()) {
      is_sound = is_sound && word.as_string() != nullptr && !has_nul(*word.as_string());
      if (is_sound) words.push_back(*word.as_string());
    }
    is_sound = is_sound && !words[0].empty();
  }
  if (!is_sound) {
    return invalid_error("exec: \"command\" is a list of texts, the program first, not {}", command.to_message());
  }
  return std::unique_ptr<Action>(std::make_unique<ExecAction>(std::move(words), options.timeout_s));
}

}  // namespace tornasole::rules
