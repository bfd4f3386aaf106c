// S3Client and its credentials against a scripted server: what is tried again, what is said, what is never shown.

#include "store/s3/s3_client.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/errors.h"
#include "store/scripted_http.h"

namespace tornasole::store::s3 {
namespace {

using testing::HasSubstr;
using testing::Not;

constexpr const char* kMarker = "MARKERsecret";

class StoppedClock final : public Clock {
 public:
  double wall_seconds() const noexcept override { return 1.7e9 + static_cast<double>(now_ns) * 1e-9; }
  std::int64_t monotonic_ns() const noexcept override { return now_ns; }
  std::int64_t now_ns = 0;
};

using Variables = std::map<std::string, std::string, std::less<>>;
using Files = std::map<std::string, std::string>;

S3Environment environment(Variables variables, Files files = {}) {
  return {.variable = [variables](std::string_view name) -> std::optional<std::string> {
            const auto found = variables.find(name);
            return found == variables.end() ? std::nullopt : std::optional(found->second);
          },
          .read_file = [files](const std::string& path, std::size_t) -> Result<std::string> {
            const auto found = files.find(path);
            if (found == files.end()) return not_found_error("{}: no such file", path);
            return found->second;
          }};
}

const Variables kKeys = {{"AWS_ACCESS_KEY_ID", "AKID"}, {"AWS_SECRET_ACCESS_KEY", kMarker}};

struct World {
  ScriptedHttp::Log log = {};
  StoppedClock clock = {};
  std::vector<double> waits = {};

  std::shared_ptr<S3Client> client(ScriptedHttp::Script script, S3ClientSettings settings = {}) {
    settings.address = {"bucket", ""};
    if (!settings.environment.variable) settings.environment = environment(kKeys);
    auto made = S3Client::make(std::move(settings), {.http = std::make_unique<ScriptedHttp>(std::move(script), &log),
                                                     .clock = &clock,
                                                     .sleep = [this](double seconds) {
                                                       waits.push_back(seconds);
                                                       clock.now_ns += static_cast<std::int64_t>(seconds * 1e9);
                                                     }});
    EXPECT_TRUE(made.ok()) << made.error().message;
    return *made;
  }
};

std::string error_xml(const std::string& code) { return "<Error><Code>" + code + "</Code></Error>"; }

TEST(S3Client, TriesAgainWhatMayPass) {
  const struct {
    const char* what;
    HttpOutcome first;
    std::size_t requests;  // in all
  } cases[] = {
      {"overload", answer(503, error_xml("SlowDown")), 2},
      {"a fault of the service", answer(500), 2},
      {"too many requests", answer(429), 2},
      {"a lost connection", no_answer(HttpFailure::Kind::kBroken), 2},
      {"no connection", no_answer(HttpFailure::Kind::kConnect), 2},
      {"a time-out", no_answer(HttpFailure::Kind::kTimeout), 2},
      {"bytes that changed on the way", answer(400, error_xml("BadDigest")), 2},
      {"a race of conditions", answer(409, error_xml("ConditionalRequestConflict")), 2},
      {"expired credentials, at once", answer(400, error_xml("ExpiredToken")), 2},
      {"a clock that is off, at once",
       answer(403, error_xml("RequestTimeTooSkewed"), {{"date", "Mon, 12 Oct 2009 17:50:30 GMT"}}), 2},
      {"another region, at once", answer(301, "", {{"x-amz-bucket-region", "eu-west-1"}}), 2},
      {"not a refusal", answer(403, error_xml("AccessDenied")), 1},
      {"not an absence", answer(404, error_xml("NoSuchKey")), 1},
      {"not a condition", answer(412), 1},
      {"not what it cannot do", answer(501), 1},
      {"not what is too long", no_answer(HttpFailure::Kind::kTooLong), 1},
  };
  for (const auto& c : cases) {
    World world;
    const auto client = world.client([&](const HttpRequest&, std::size_t n) { return n == 1 ? c.first : answer(200); });
    const auto result = client->call({.key = "k"});
    EXPECT_EQ(world.log.requests.size(), c.requests) << c.what;
    if (c.requests == 2) {
      ASSERT_TRUE(result.ok()) << c.what;
      EXPECT_EQ(result->http.status, 200) << c.what;
    }
  }
}

TEST(S3Client, WaitsLongerEachTimeAndGivesUpAfterItsBudget) {
  World world;
  const auto client =
      world.client([](const HttpRequest&, std::size_t n) { return n == 1 ? answer(200) : answer(503); });
  ASSERT_TRUE(client->call({.key = "k"}).ok());
  const auto result = client->call({.method = "PUT", .key = "k"});
  ASSERT_TRUE(result.ok()) << "the last answer";
  EXPECT_EQ(result->http.status, 503);
  EXPECT_GE(world.waits.front(), 0.05);
  EXPECT_LE(world.waits.front(), 0.1);
  for (const double wait : world.waits) EXPECT_LE(wait, 20);
  EXPECT_GE(world.waits.back(), 10);
  EXPECT_LE(static_cast<double>(world.clock.now_ns) * 1e-9, 600);
  EXPECT_GE(static_cast<double>(world.clock.now_ns) * 1e-9, 580 - 20);
}

TEST(S3Client, TheQuotaEndsRetriesWhenEverythingFails) {
  World world;
  bool is_up = true;
  const auto client = world.client([&](const HttpRequest&, std::size_t) { return answer(is_up ? 200 : 503); });
  EXPECT_EQ(client->call({.key = "k"})->http.status, 200);
  is_up = false;
  for (int i = 0; i < 5; ++i) EXPECT_EQ(client->call({.key = "k"})->http.status, 503);
  const std::size_t before = world.log.requests.size();
  EXPECT_EQ(client->call({.key = "k"})->http.status, 503);
  EXPECT_LE(world.log.requests.size() - before, 2U) << "no tokens are left";
  is_up = true;
  for (int i = 0; i < 100; ++i) EXPECT_EQ(client->call({.key = "k"})->http.status, 200);
  is_up = false;
  const std::size_t later = world.log.requests.size();
  EXPECT_EQ(client->call({.key = "k"})->http.status, 503);
  EXPECT_GT(world.log.requests.size() - later, 10U) << "successes give tokens back";
}

TEST(S3Client, AServiceThatNeverAnsweredIsNotWaitedForLong) {
  World world;
  const auto client =
      world.client([](const HttpRequest&, std::size_t) { return no_answer(HttpFailure::Kind::kConnect); });
  const auto result = client->call({.key = "k"});
  ASSERT_FALSE(result.ok());
  EXPECT_EQ(result.error().code, ErrorCode::kIo);
  EXPECT_LE(world.clock.now_ns, std::int64_t{15} * 1'000'000'000);
}

TEST(S3Client, MovesToTheRegionOfTheBucketAndStaysThere) {
  World world;
  const auto client = world.client([](const HttpRequest&, std::size_t n) {
    return n == 1 ? answer(400, error_xml("AuthorizationHeaderMalformed"), {{"x-amz-bucket-region", "eu-west-3"}})
                  : answer(200);
  });
  ASSERT_TRUE(client->call({.key = "k"}).ok());
  ASSERT_TRUE(client->call({.key = "k"}).ok());
  EXPECT_EQ(world.log.requests[0].url, "https://bucket.s3.us-east-1.amazonaws.com/k");
  EXPECT_EQ(world.log.requests[2].url, "https://bucket.s3.eu-west-3.amazonaws.com/k");
  EXPECT_THAT(header_of(world.log.requests[2], "authorization"), HasSubstr("/eu-west-3/s3/"));
}

TEST(S3Client, NothingItSaysHoldsASecret) {
  World world;
  // A service that repeats what it was sent.
  const auto client = world.client([](const HttpRequest& request, std::size_t) {
    return answer(403, "<Error><Code>MARKERsecret " + header_of(request, "authorization") +
                           "</Code><Message>MARKERsecret</Message></Error>");
  });
  const auto result = client->call({.key = "k"});
  ASSERT_TRUE(result.ok());
  const std::string message = client->to_error("read", "k", *result).message;
  EXPECT_THAT(message, Not(HasSubstr(kMarker)));
  EXPECT_THAT(message, HasSubstr("access refused"));
  for (const HttpRequest& request : world.log.requests) {
    EXPECT_THAT(request.url, Not(HasSubstr(kMarker)));
    for (const auto& [name, value] : request.headers) EXPECT_THAT(value, Not(HasSubstr(kMarker))) << name;
  }
}

struct Found {
  std::string id = {};
  std::string token = {};
  std::string message = {};  // of the failure
};
Found find(const S3Environment& environment, ScriptedHttp::Script script, ScriptedHttp::Log* log) {
  ScriptedHttp http(std::move(script), log);
  StoppedClock clock;
  CredentialChain chain(environment, &http, &clock);
  const auto found = chain.get();
  if (!found.ok()) return {.message = found.error().message};
  return {found->access_key_id, found->session_token.reveal()};
}

TEST(S3Credentials, AreLookedForInTheUsualPlacesInTheUsualOrder) {
  const std::string json =
      R"({"AccessKeyId": "FETCHED", "SecretAccessKey": "s", "Token": "t", "Expiration": "2030-01-01T00:00:00Z"})";
  const std::string xml =
      "<AssumeRoleWithWebIdentityResponse><AssumeRoleWithWebIdentityResult><Credentials><AccessKeyId>ROLE</AccessKeyId>"
      "<SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken></Credentials>"
      "</AssumeRoleWithWebIdentityResult></AssumeRoleWithWebIdentityResponse>";
  const Files shared = {{"/h/.aws/credentials",
                         "[default]\naws_access_key_id = DEFAULT\naws_secret_access_key=s\n"
                         "[other]\n# comment\naws_access_key_id=OTHER\naws_secret_access_key=s\n"},
                        {"/h/.aws/config",
                         "[profile far]\naws_access_key_id=FAR\naws_secret_access_key=s\n"
                         "[profile run]\ncredential_process = /bin/evil\n"},
                        {"/token", "identity\n"}};
  const Variables off = {{"AWS_EC2_METADATA_DISABLED", "true"}, {"HOME", "/h"}};
  const auto with = [](Variables base, const Variables& more) {
    for (const auto& [name, value] : more) base[name] = value;
    return base;
  };
  const struct {
    const char* what;
    Variables variables;
    const char* id;  // "" if nothing may be found
    std::size_t requests;
  } cases[] = {
      {"the environment first", with(off, {{"AWS_ACCESS_KEY_ID", "ENV"}, {"AWS_SECRET_ACCESS_KEY", "s"}}), "ENV", 0},
      {"half of it is nothing", with(off, {{"AWS_ACCESS_KEY_ID", "ENV"}}), "DEFAULT", 0},
      {"a web identity before the files",
       with(off, {{"AWS_WEB_IDENTITY_TOKEN_FILE", "/token"}, {"AWS_ROLE_ARN", "arn"}}), "ROLE", 1},
      {"the default profile", off, "DEFAULT", 0},
      {"another profile", with(off, {{"AWS_PROFILE", "other"}}), "OTHER", 0},
      {"a profile of the other file", with(off, {{"AWS_PROFILE", "far"}}), "FAR", 0},
      {"no program is run", with(off, {{"AWS_PROFILE", "run"}}), "", 0},
      {"the container", with(off, {{"AWS_PROFILE", "none"}, {"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/v2/x?y=z"}}),
       "FETCHED", 1},
      {"a container agent on this host",
       with(off, {{"AWS_PROFILE", "none"}, {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://127.0.0.1:80/x"}}), "FETCHED",
       1},
      {"no other host gets to see the token",
       with(off, {{"AWS_PROFILE", "none"}, {"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://evil.org/x"}}), "", 0},
      {"the instance, in three requests", {{"AWS_PROFILE", "none"}, {"HOME", "/h"}}, "FETCHED", 3},
      {"unless it is off", with(off, {{"AWS_PROFILE", "none"}}), "", 0},
  };
  for (const auto& c : cases) {
    ScriptedHttp::Log log;
    const Found found = find(
        environment(c.variables, shared),
        [&](const HttpRequest& request, std::size_t) {
          if (request.method == "POST") return answer(200, xml);
          if (request.url.ends_with("/api/token")) return answer(200, "imds-token");
          if (request.url.ends_with("/security-credentials/")) return answer(200, "role\n");
          return answer(200, json);
        },
        &log);
    EXPECT_EQ(found.id, c.id) << c.what << ": " << found.message;
    EXPECT_EQ(log.requests.size(), c.requests) << c.what;
  }
}

TEST(S3Credentials, WhatCannotBeUsedIsSaidWithoutShowingIt) {
  const Variables instance = {{"AWS_PROFILE", "none"}};
  const std::pair<const char*, std::string> cases[] = {
      {"no JSON", std::string("{MARKERsecret")},
      {"no keys", R"({"Token": "MARKERsecret"})"},
      {"a line break in a token",
       "{\"AccessKeyId\": \"a\", \"SecretAccessKey\": \"MARKERsecret\", \"Token\": \"x\\ny\"}"},
  };
  for (const auto& [what, body] : cases) {
    ScriptedHttp::Log log;
    const Found found = find(
        environment(instance), [&](const HttpRequest&, std::size_t n) { return answer(200, n < 3 ? "x" : body); },
        &log);
    EXPECT_THAT(found.message, HasSubstr("no AWS credentials")) << what;
    EXPECT_THAT(found.message, Not(HasSubstr(kMarker))) << what;
  }
}

TEST(S3Credentials, AreRenewedBeforeTheyExpire) {
  ScriptedHttp::Log log;
  ScriptedHttp http(
      [](const HttpRequest& request, std::size_t n) {
        if (request.url.ends_with("/api/token")) return answer(200, "t");
        if (request.url.ends_with("/security-credentials/")) return answer(200, "role");
        return answer(200, R"({"AccessKeyId": "K)" + std::to_string(n) +
                               R"(", "SecretAccessKey": "s", "Expiration": "2023-11-14T23:13:20Z"})");
      },
      &log);
  StoppedClock clock;  // 2023-11-14T22:13:20Z
  CredentialChain chain(environment({{"AWS_PROFILE", "none"}}), &http, &clock);
  EXPECT_EQ(chain.get()->access_key_id, "K3");
  EXPECT_EQ(chain.get()->access_key_id, "K3") << "kept";
  clock.now_ns = std::int64_t{56} * 60 * 1'000'000'000;
  EXPECT_EQ(chain.get()->access_key_id, "K6") << "five minutes before";
  chain.forget();
  EXPECT_EQ(chain.get()->access_key_id, "K9");
}

TEST(S3Credentials, RegionAndEndpointComeFromTheUsualPlaces) {
  const Files files = {{"/c", "[default]\nregion = eu-west-3\nendpoint_url = https://x.y\n"}};
  EXPECT_EQ(find_region(environment({{"AWS_REGION", "a"}, {"AWS_DEFAULT_REGION", "b"}})), "a");
  EXPECT_EQ(find_region(environment({{"AWS_REGION", "  "}, {"AWS_DEFAULT_REGION", "b"}})), "b") << "blank is unset";
  EXPECT_EQ(find_region(environment({{"AWS_CONFIG_FILE", "/c"}}, files)), "eu-west-3");
  EXPECT_EQ(find_region(environment({})), std::nullopt);
  EXPECT_EQ(find_endpoint_url(environment({{"AWS_ENDPOINT_URL_S3", "a"}, {"AWS_ENDPOINT_URL", "b"}})), "a");
  EXPECT_EQ(find_endpoint_url(environment({{"AWS_ENDPOINT_URL", "b"}, {"AWS_CONFIG_FILE", "/c"}}, files)), "b");
  EXPECT_EQ(find_endpoint_url(environment({{"AWS_CONFIG_FILE", "/c"}}, files)), "https://x.y");
  EXPECT_EQ(
      find_endpoint_url(environment({{"AWS_ENDPOINT_URL", "b"}, {"AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"}})),
      std::nullopt);
}

}  // namespace
}  // namespace tornasole::store::s3
