// What is done about a condition that is met: parsing, and every kind of effect, for real.

#include "tornasole/rule_actions.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <thread>

#include "base/json.h"
#include "format/run_files.h"
#include "rules/http_post.h"

namespace tornasole::rules {
namespace {

namespace fs = std::filesystem;

std::string read_text(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

class RuleActionsTest : public ::testing::Test {
 protected:
  RuleActionsTest() {
    std::string pattern = (fs::temp_directory_path() / "rule_actions.XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    fs::create_directory(dir_ / "mnist-7");
  }
  ~RuleActionsTest() override { fs::remove_all(dir_); }

  RuleActions parse(std::string_view text) {
    auto actions = RuleActions::parse(text, {.trial_path = trial().string() + "/",
                                             .notifier = notifier_,
                                             .timeout_s = timeout_s_,
                                             .log = [this](const std::string& line) { log_.push_back(line); }});
    EXPECT_TRUE(actions.ok()) << (actions.ok() ? "" : actions.error().message);
    return std::move(*actions);
  }
  fs::path trial() const { return dir_ / "mnist-7"; }
  std::string path(const char* name) const { return (dir_ / name).string(); }

  fs::path dir_;
  std::string notifier_;
  double timeout_s_ = 20;
  std::vector<std::string> log_;
  const Violation violation_{.global_step = {12},
                             .step = {Mode::kTrain, 4},
                             .worker = "worker_0",
                             .tensor = "gradient/w",
                             .value = NAN,
                             .threshold = 0.5,
                             .message = "gradient/w: \"it\" vanished"};
};

TEST_F(RuleActionsTest, WhatCannotBeUsedIsLoggedAndLeftOut) {
  struct Case {
    const char* what;
    const char* text;
    std::size_t count;
    std::size_t lines;
  };
  const Case cases[] = {
      {"nothing", "", 0, 0},
      {"blanks", " \n", 0, 0},
      {"an empty list", "[]", 0, 0},
      {"one object", R"({"name": "stoptraining", "training_job_prefix": "p"})", 1, 0},
      {"a list", R"([{"name": "sms", "endpoint": "+49"}, {"name": "email", "endpoint": "a@b.cd"}])", 2, 0},
      {"names and keys in any case", R"({"NAME": "StopTraining", "Training_Job_Prefix": ""})", 1, 0},
      {"escaped quotes", R"([{\"name\": \"file\", \"path\": \"x\"}])", 1, 0},
      {"a number", "12", 0, 1},
      {"a text", "\"stoptraining\"", 0, 1},
      {"an entry that is no object does not hide the next", R"([7, {"name": "file", "path": "x"}])", 1, 1},
      {"a missing key", R"({"name": "stoptraining"})", 0, 1},
      {"an unknown name", R"({"name": "dance"})", 0, 1},
      {"no name", R"({"endpoint": "x"})", 0, 1},
      {"a command that is one text", R"({"name": "exec", "command": "rm"})", 0, 1},
      {"a command of numbers", R"({"name": "exec", "command": [1]})", 0, 1},
      {"no command", R"({"name": "exec", "command": []})", 0, 1},
      {"a path that is no text", R"({"name": "file", "path": 7})", 0, 1},
      {"an address without http", R"({"name": "webhook", "url": "ftp://host/"})", 0, 1},
      {"an address with https", R"({"name": "webhook", "url": "https://host/"})", 1, 0},
      {"repeat that is no truth value leaves the action", R"({"name": "file", "path": "x", "repeat": "yes"})", 1, 1},
  };
  for (const Case& c : cases) {
    log_.clear();
    EXPECT_EQ(parse(c.text).size(), c.count) << c.what;
    EXPECT_EQ(log_.size(), c.lines) << c.what << ": " << (log_.empty() ? "" : log_[0]);
  }
}

TEST_F(RuleActionsTest, TextThatIsNoJsonIsAnError) {
  for (const char* text : {"stop it", "{", "{\\\"name\\\"", "[{}"}) {
    const auto actions = RuleActions::parse(text, {});
    ASSERT_FALSE(actions.ok()) << text;
    EXPECT_EQ(actions.error().code, ErrorCode::kInvalid);
    EXPECT_NE(actions.error().message.find("must be JSON"), std::string::npos) << actions.error().message;
  }
}

TEST_F(RuleActionsTest, AnUnknownNameIsToldWithThoseThereAre) {
  parse(R"({"name": "dance"})");
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_EQ(log_[0],
            "an action is left out: no action is called \"dance\"; there are stoptraining, email, sms, exec, file, "
            "webhook");
}

TEST_F(RuleActionsTest, StopLeavesARequestInTheTrial) {
  RuleActions actions = parse(R"({"name": "stoptraining", "training_job_prefix": "mnist"})");
  actions.invoke("VanishingGradient", violation_);
  const auto request = format::decode_stop_request(read_text(trial() / "stop_request.json"));
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->rule, "VanishingGradient");
  EXPECT_EQ(request->step, 12);
  EXPECT_EQ(request->reason, violation_.message);
  EXPECT_EQ(request->prefix, "mnist");
  EXPECT_GT(request->time, 1.7e9);
  EXPECT_FALSE(fs::exists(trial() / "stop_request.json.tmp"));
  EXPECT_TRUE(log_.empty());
}

TEST_F(RuleActionsTest, StopHeedsThePrefix) {
  RuleActions actions = parse(R"({"name": "stoptraining", "training_job_prefix": "Mnist"})");
  actions.invoke("VanishingGradient", violation_);
  EXPECT_FALSE(fs::exists(trial() / "stop_request.json")) << "the prefix keeps its case";
  EXPECT_EQ(actions.undelivered(), 0);
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_NE(log_[0].find("does not begin with \"Mnist\""), std::string::npos) << log_[0];
}

TEST_F(RuleActionsTest, StopReplacesWhatAKilledProcessLeft) {
  const fs::path left = trial() / "stop_request.json.tmp";
  const auto stop = [&] {
    parse(R"({"name": "stoptraining", "training_job_prefix": ""})").invoke("R", violation_);
    return fs::exists(trial() / "stop_request.json");
  };
  std::ofstream(left) << "{";
  EXPECT_FALSE(stop()) << "another process may be writing it";
  fs::last_write_time(left, fs::file_time_type::clock::now() - std::chrono::minutes(5));
  EXPECT_TRUE(stop());
  EXPECT_FALSE(fs::exists(left));
}

TEST_F(RuleActionsTest, StopNeverMakesATrial) {
  fs::remove(trial());
  RuleActions actions = parse(R"({"name": "stoptraining", "training_job_prefix": ""})");
  actions.invoke("R", violation_);
  EXPECT_FALSE(fs::exists(trial()));
  EXPECT_EQ(actions.undelivered(), 1);
}

TEST_F(RuleActionsTest, AFileGetsALineForEachEvent) {
  const std::string once = R"({"name": "file", "path": ")" + path("Once") + "\"}";
  const std::string always = R"({"name": "file", "repeat": true, "path": ")" + path("Always") + "\"}";
  RuleActions actions = parse("[" + once + ", " + always + "]");
  for (int i = 0; i < 3; ++i) actions.invoke("ExplodingTensor", violation_);
  const std::string line = read_text(path("Once"));
  EXPECT_EQ(std::ranges::count(line, '\n'), 1);
  const std::string lines = read_text(path("Always"));
  EXPECT_EQ(std::ranges::count(lines, '\n'), 3);
  const auto json = parse_json(line);
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(*json->find("rule")->as_string(), "ExplodingTensor");
  EXPECT_EQ(*json->find("trial")->as_string(), trial().string() + "/");
  EXPECT_EQ(*json->find("step")->as_int(), 12);
  EXPECT_EQ(*json->find("mode")->as_string(), "TRAIN");
  EXPECT_EQ(*json->find("mode_step")->as_int(), 4);
  EXPECT_EQ(*json->find("worker")->as_string(), "worker_0");
  EXPECT_EQ(*json->find("tensor")->as_string(), "gradient/w");
  EXPECT_EQ(*json->find("value")->as_string(), "nan");
  EXPECT_EQ(*json->find("threshold")->as_double(), 0.5);
  EXPECT_EQ(*json->find("message")->as_string(), violation_.message);
  EXPECT_GT(*json->find("time")->as_double(), 1.7e9);
}

TEST_F(RuleActionsTest, AFailureIsLoggedAndTheOthersRun) {
  RuleActions actions = parse(R"([{"name": "file", "path": ")" + path("missing/x") + R"("}, )" +
                              R"({"name": "exec", "command": ["/no/such/program"]}, )" +
                              R"({"name": "exec", "command": ["sh", "-c", "exit 3"]}, )" +
                              R"({"name": "exec", "command": ["sh", "-c", "kill -9 $$"]}, )" +
                              R"({"name": "file", "path": ")" + path("Out") + R"("}])");
  actions.invoke("R", violation_);
  EXPECT_TRUE(fs::exists(path("Out")));
  EXPECT_EQ(actions.undelivered(), 4);
  ASSERT_EQ(log_.size(), 4U);
  EXPECT_NE(log_[0].find("rule R: action file failed: "), std::string::npos) << log_[0];
  EXPECT_NE(log_[1].find("/no/such/program cannot be started: No such file"), std::string::npos) << log_[1];
  EXPECT_NE(log_[2].find("sh ended with code 3"), std::string::npos) << log_[2];
  EXPECT_NE(log_[3].find("sh was ended by signal 9"), std::string::npos) << log_[3];
}

TEST_F(RuleActionsTest, AProgramGetsTheEventAndNoShellReadsItsArguments) {
  const std::string script = "cat > \\\"$0\\\"; echo \\\"$1\\\" >> \\\"$0\\\"; echo noise; echo noise >&2";
  RuleActions actions = parse(R"({"name": "exec", "command": ["sh", "-c", ")" + script + R"(", ")" + path("Out") +
                              R"(", "$(touch x); *"]})");
  testing::internal::CaptureStdout();
  testing::internal::CaptureStderr();
  actions.invoke("R", violation_);
  EXPECT_EQ(testing::internal::GetCapturedStdout() + testing::internal::GetCapturedStderr(), "");
  EXPECT_TRUE(log_.empty()) << log_[0];
  std::istringstream lines(read_text(path("Out")));
  std::string json, argument;
  // The event has no line break: the shell's own line follows it at once.
  std::getline(lines, json);
  EXPECT_TRUE(json.ends_with("}$(touch x); *")) << json;
  const auto event = parse_json(json.substr(0, json.rfind('}') + 1));
  ASSERT_TRUE(event.ok()) << json;
  EXPECT_EQ(*event->find("tensor")->as_string(), "gradient/w");
}

TEST_F(RuleActionsTest, AProgramThatReadsNothingIsNoProblem) {
  Violation large = violation_;
  large.message = std::string(1 << 20, 'x');  // more than a pipe holds
  RuleActions actions = parse(R"({"name": "exec", "command": ["true"]})");
  actions.invoke("R", large);
  EXPECT_EQ(actions.undelivered(), 0) << log_[0];
}

TEST_F(RuleActionsTest, AProgramThatHangsIsKilledWithItsChildren) {
  timeout_s_ = 0.2;
  RuleActions actions =
      parse(R"({"name": "exec", "command": ["sh", "-c", "(sleep 3; touch )" + path("Out") + R"() & sleep 100"]})");
  const auto start = std::chrono::steady_clock::now();
  actions.invoke("R", violation_);
  EXPECT_LT(std::chrono::steady_clock::now() - start, std::chrono::seconds(20));
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_NE(log_[0].find("took longer than 0.2 s and was killed"), std::string::npos) << log_[0];
  std::this_thread::sleep_for(std::chrono::milliseconds(3500));
  EXPECT_FALSE(fs::exists(path("Out"))) << "the child went on";
}

TEST_F(RuleActionsTest, MessagesGoToTheNotifier) {
  notifier_ = path("notifier");
  std::ofstream(notifier_) << "#!/bin/sh\nprintf '%s|' \"$@\" > " << path("Sent") << "\ncat >> " << path("Sent")
                           << "\n";
  fs::permissions(notifier_, fs::perms::owner_all);
  RuleActions actions = parse(R"({"name": "Email", "endpoint": "Some.One@Example.com"})");
  actions.invoke("Overfit", violation_);
  EXPECT_TRUE(log_.empty()) << log_[0];
  EXPECT_EQ(read_text(path("Sent")),
            "email|Some.One@Example.com|SMDebugRule:Overfit fired|SMDebugRule:Overfit fired. " + violation_.message);
}

TEST_F(RuleActionsTest, AMessageWithoutANotifierIsUndelivered) {
  RuleActions actions = parse(R"({"name": "sms", "endpoint": "+491234"})");
  actions.invoke("Overfit", violation_);
  EXPECT_EQ(actions.undelivered(), 1);
  ASSERT_EQ(log_.size(), 1U);
  EXPECT_NE(log_[0].find("not sent to +491234: SMDebugRule:Overfit fired. gradient/w"), std::string::npos) << log_[0];
}

TEST_F(RuleActionsTest, ActionsMayBeMoved) {
  RuleActions first = parse(R"({"name": "stoptraining", "training_job_prefix": ""})");
  RuleActions second = std::move(first);
  second.invoke("R", violation_);
  EXPECT_TRUE(fs::exists(trial() / "stop_request.json"));
}

// A server that answers one request and keeps what it got.
class OneAnswer {
 public:
  explicit OneAnswer(std::string reply) : reply_(std::move(reply)) {
    listener_ = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, 1), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    thread_ = std::thread([this] { serve(); });
  }
  ~OneAnswer() {
    shutdown(listener_, SHUT_RDWR);
    if (thread_.joinable()) thread_.join();
    close(listener_);
  }
  std::string url(const std::string& target) const { return "http://127.0.0.1:" + std::to_string(port_) + target; }
  std::string request() {
    thread_.join();
    return request_;
  }

 private:
  void serve() {
    const int peer = accept(listener_, nullptr, nullptr);
    if (peer < 0) return;
    char buffer[4096];
    while (request_.find("}") == std::string::npos) {
      const ssize_t size = recv(peer, buffer, sizeof(buffer), 0);
      if (size <= 0) break;
      request_.append(buffer, static_cast<std::size_t>(size));
    }
    // Without a reply it keeps the peer waiting until that gives up.
    if (reply_.empty()) {
      while (recv(peer, buffer, sizeof(buffer), 0) > 0) continue;
    } else {
      send(peer, reply_.data(), reply_.size(), MSG_NOSIGNAL);
    }
    close(peer);
  }

  std::string reply_, request_;
  int listener_ = -1;
  int port_ = 0;
  std::thread thread_;
};

TEST_F(RuleActionsTest, AWebhookIsPosted) {
  OneAnswer server("HTTP/1.1 204 No Content\r\n\r\n");
  RuleActions actions = parse(R"({"name": "webhook", "url": ")" + server.url("/hook?a=1#part") + "\"}");
  actions.invoke("Overfit", violation_);
  EXPECT_TRUE(log_.empty()) << log_[0];
  const std::string request = server.request();
  EXPECT_TRUE(request.starts_with("POST /hook?a=1 HTTP/1.1\r\nHost: 127.0.0.1:")) << request;
  const std::size_t body = request.find("\r\n\r\n");
  ASSERT_NE(body, std::string::npos);
  EXPECT_NE(request.find("Content-Length: " + std::to_string(request.size() - body - 4) + "\r\n"), std::string::npos);
  const auto json = parse_json(request.substr(body + 4));
  ASSERT_TRUE(json.ok());
  EXPECT_EQ(*json->find("rule")->as_string(), "Overfit");
}

TEST_F(RuleActionsTest, WhatAServerMayAnswer) {
  struct Case {
    const char* reply;
    const char* logged;
  };
  const Case cases[] = {
      {"HTTP/1.1 500 Oh\r\n\r\n", "the server answers 500"},
      {"HTTP/1.1 302 Found\r\nLocation: http://elsewhere/\r\n\r\n",
       "the server answers 302: redirects are not followed"},
      {"SSH-2.0-OpenSSH\r\n", "the answer is not HTTP: SSH-2.0-OpenSSH"},
      {"", "no answer within 0.3 s"},
  };
  timeout_s_ = 0.3;
  for (const Case& c : cases) {
    log_.clear();
    OneAnswer server(c.reply);
    RuleActions actions = parse(R"({"name": "webhook", "url": ")" + server.url("/") + "\"}");
    actions.invoke("R", violation_);
    ASSERT_EQ(log_.size(), 1U) << c.logged;
    EXPECT_NE(log_[0].find(c.logged), std::string::npos) << log_[0];
    EXPECT_EQ(actions.undelivered(), 1);
  }
}

TEST(HttpUrl, WhatIsAnAddress) {
  struct Case {
    const char* url;
    const char* host;  // null: refused
    const char* port;
    const char* target;
  };
  const Case cases[] = {
      {"http://host", "host", "80", "/"},
      {"http://host:8080/a/b?c=d", "host", "8080", "/a/b?c=d"},
      {"http://host?q", "host", "80", "/?q"},
      {"http://[::1]:81/x", "::1", "81", "/x"},
      {"http://[::1]", "::1", "80", "/"},
      {"http://", nullptr, "", ""},
      {"http://:80/", nullptr, "", ""},
      {"http://host:0/", nullptr, "", ""},
      {"http://host:65536/", nullptr, "", ""},
      {"http://host:80x/", nullptr, "", ""},
      {"http://host:/", nullptr, "", ""},
      {"http://[::1/", nullptr, "", ""},
      {"http://user:secret@host/", nullptr, "", ""},
      {"http://host/a\r\nX: y", nullptr, "", ""},
      {"http://host/a b", nullptr, "", ""},
      {"https://host/", "host", "443", "/"},
      {"https://host:8443/a", "host", "8443", "/a"},
      {"https://", nullptr, "", ""},
      {"host:80", nullptr, "", ""},
      {"", nullptr, "", ""},
  };
  for (const Case& c : cases) {
    const auto url = parse_http_url(c.url);
    ASSERT_EQ(url.ok(), c.host != nullptr) << c.url;
    if (!url.ok()) continue;
    EXPECT_EQ(url->host, c.host) << c.url;
    EXPECT_EQ(url->port, c.port) << c.url;
    EXPECT_EQ(url->target, c.target) << c.url;
  }
  EXPECT_TRUE(parse_http_url("https://host/")->is_secure);
}

}  // namespace
}  // namespace tornasole::rules
