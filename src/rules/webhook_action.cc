// webhook: posts the event as JSON.

#include "base/errors.h"
#include "rules/action.h"
#include "rules/http_post.h"

namespace tornasole::rules {
namespace {

class WebhookAction final : public Action {
 public:
  WebhookAction(HttpUrl url, double timeout_s) : url_(std::move(url)), timeout_s_(timeout_s) {}

  Status run(const ActionEvent& event) override { return post_json(url_, event.json, timeout_s_); }

 private:
  HttpUrl url_;
  double timeout_s_;
};

}  // namespace

MadeAction make_webhook_action(const Json& url, const RuleActionOptions& options) {
  if (url.as_string() == nullptr) return invalid_error("webhook: \"url\" is a text, not {}", url.to_message());
  TORNASOLE_TRY(HttpUrl parsed, parse_http_url(*url.as_string()));
  return std::unique_ptr<Action>(std::make_unique<WebhookAction>(std::move(parsed), options.timeout_s));
}

}  // namespace tornasole::rules
