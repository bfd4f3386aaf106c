#include <gtest/gtest.h>

#include <fmt/format.h>

#include "base/sha256.h"
#include "store/s3/s3_address.h"
#include "store/s3/sigv4.h"

namespace tornasole::store::s3 {
namespace {

const Credentials kExample{"AKIAIOSFODNN7EXAMPLE", Secret("wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY")};
constexpr const char* kEmptyHash = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";
constexpr const char* kHost = "examplebucket.s3.amazonaws.com";
constexpr const char* kDate = "20130524T000000Z";

// The four worked examples of "Authenticating Requests: Using the Authorization Header".
TEST(SigV4, GivesThePublishedSignatures) {
  const struct {
    const char* what;
    SigningInput input;
    const char* signature;
  } cases[] = {
      {"GET of a range",
       {.method = "GET",
        .path = "/test.txt",
        .headers =
            {{"host", kHost}, {"range", "bytes=0-9"}, {"x-amz-content-sha256", kEmptyHash}, {"x-amz-date", kDate}},
        .payload_hash = kEmptyHash,
        .region = "us-east-1",
        .amz_date = kDate},
       "f0e8bdb87c964420e857bd35b5d6ed310bd44f0170aba48dd91039c6036bdb41"},
      {"PUT with a key that is escaped",
       {.method = "PUT",
        .path = "/test%24file.text",
        .headers = {{"date", "Fri, 24 May 2013 00:00:00 GMT"},
                    {"host", kHost},
                    {"x-amz-content-sha256", "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072"},
                    {"x-amz-date", kDate},
                    {"x-amz-storage-class", "REDUCED_REDUNDANCY"}},
        .payload_hash = "44ce7dd67c959e0d3524ffac1771dfbba87d2b6b4b4e99e42034a8b803f8b072",
        .region = "us-east-1",
        .amz_date = kDate},
       "98ad721746da40c64f1a55b78f14c238d841ea1380cd77a1b5971af0ece108bd"},
      {"GET with a query without a value",
       {.method = "GET",
        .path = "/",
        .query = {{"lifecycle", ""}},
        .headers = {{"host", kHost}, {"x-amz-content-sha256", kEmptyHash}, {"x-amz-date", kDate}},
        .payload_hash = kEmptyHash,
        .region = "us-east-1",
        .amz_date = kDate},
       "fea454ca298b7da1c68078a5d1bdbfbbe0d65c699e0f91ac7a200a0136783543"},
      {"a listing",
       {.method = "GET",
        .path = "/",
        .query = {{"prefix", "J"}, {"max-keys", "2"}},
        .headers = {{"host", kHost}, {"x-amz-content-sha256", kEmptyHash}, {"x-amz-date", kDate}},
        .payload_hash = kEmptyHash,
        .region = "us-east-1",
        .amz_date = kDate},
       "34b48302e7b5fa45bde8084f4b7868a86f0a534bc59db6670ed5711ef69dc6f7"},
  };
  for (const auto& c : cases) {
    const std::string header = sign(c.input, kExample);
    EXPECT_TRUE(header.ends_with(std::string("Signature=") + c.signature)) << c.what << ": " << header;
    EXPECT_TRUE(
        header.starts_with("AWS4-HMAC-SHA256 Credential=AKIAIOSFODNN7EXAMPLE/20130524/us-east-1/s3/aws4_request"))
        << header;
  }
  EXPECT_EQ(sha256_hex("Welcome to Amazon S3."), cases[1].input.payload_hash);
}

TEST(SigV4, WritesTimesAsTheServiceWantsThem) {
  EXPECT_EQ(amz_date(1369353600.9), kDate);
  EXPECT_EQ(amz_date(0), "19700101T000000Z");
}

TEST(SigV4, ASecretIsNotPrinted) { EXPECT_EQ(fmt::format("{}", kExample.secret_key), "***"); }

TEST(S3Address, TakesALocationApart) {
  const struct {
    const char* location;
    const char* bucket;  // null: refused
    const char* prefix;
  } cases[] = {
      {"s3://bucket/a/b", "bucket", "a/b"},
      {"s3://bucket", "bucket", ""},
      {"s3://bucket/", "bucket", ""},
      {"s3://bucket//a///b//", "bucket", "a/b"},
      {"s3://old_Bucket.x/a", "old_Bucket.x", "a"},
      {"s3://", nullptr, ""},
      {"s3:///x", nullptr, ""},
      {"s3://ab/x", nullptr, ""},
      {"s3://a@b.c/x", nullptr, ""},
      {"s3://a..b/x", nullptr, ""},
      {"s3://..", nullptr, ""},
      {"/local", nullptr, ""},
  };
  for (const auto& c : cases) {
    const auto address = parse_address(c.location);
    ASSERT_EQ(address.ok(), c.bucket != nullptr) << c.location;
    if (!address.ok()) continue;
    EXPECT_EQ(address->bucket, c.bucket) << c.location;
    EXPECT_EQ(address->prefix, c.prefix) << c.location;
  }
}

TEST(S3Address, EscapesWhatIsNotUnreserved) {
  EXPECT_EQ(escape_path("a b+c=d%e/\xC3\xA4~-._"), "a%20b%2Bc%3Dd%25e/%C3%A4~-._");
  EXPECT_EQ(escape_query("a/b c"), "a%2Fb%20c");
  EXPECT_EQ(unescape("a%20b%2Bc%c3%A4"), "a b+c\xC3\xA4");
  for (const char* bad : {"%", "%2", "a%zz", "%2g"}) EXPECT_EQ(unescape(bad), std::nullopt) << bad;
}

TEST(S3Address, FindsTheServiceOfABucket) {
  const struct {
    const char* what;
    const char* bucket;
    EndpointOptions options;
    const char* url;  // of the key "k"; null: refused
  } cases[] = {
      {"Amazon's own", "bucket", {.region = "eu-west-3"}, "https://bucket.s3.eu-west-3.amazonaws.com/k"},
      {"China", "bucket", {.region = "cn-north-1"}, "https://bucket.s3.cn-north-1.amazonaws.com.cn/k"},
      {"a certificate covers no dots", "a.bucket", {}, "https://s3.us-east-1.amazonaws.com/a.bucket/k"},
      {"path style when asked for", "bucket", {.addressing = "path"}, "https://s3.us-east-1.amazonaws.com/bucket/k"},
      {"another service has no names for buckets",
       "bucket",
       {.url = "https://minio:9000/"},
       "https://minio:9000/bucket/k"},
      {"unless it is said", "bucket", {.url = "https://x.y", .addressing = "virtual"}, "https://bucket.x.y/k"},
      {"below a path", "bucket", {.url = "https://x.y/s3"}, "https://x.y/s3/bucket/k"},
      {"plain text on this host", "bucket", {.url = "http://127.0.0.1:9000"}, "http://127.0.0.1:9000/bucket/k"},
      {"by name", "bucket", {.url = "http://localhost"}, "http://localhost/bucket/k"},
      {"and version 6", "bucket", {.url = "http://[::1]:9000"}, "http://[::1]:9000/bucket/k"},
      {"plain text elsewhere", "bucket", {.url = "http://minio:9000"}, nullptr},
      {"a host that looks like this one", "bucket", {.url = "http://127.0.0.1.evil.org"}, nullptr},
      {"plain text by the switch",
       "bucket",
       {.url = "http://minio:9000", .allow_http = true},
       "http://minio:9000/bucket/k"},
      {"a password in the address", "bucket", {.url = "https://user:pass@x.y"}, nullptr},
      {"no scheme", "bucket", {.url = "x.y"}, nullptr},
      {"another scheme", "bucket", {.url = "ftp://x.y"}, nullptr},
      {"a query", "bucket", {.url = "https://x.y/?a"}, nullptr},
      {"a region that is none", "bucket", {.region = "a.evil.org/"}, nullptr},
      {"an unknown style", "bucket", {.addressing = "dns"}, nullptr},
  };
  for (const auto& c : cases) {
    const auto endpoint = make_endpoint(c.bucket, c.options);
    ASSERT_EQ(endpoint.ok(), c.url != nullptr) << c.what;
    if (!endpoint.ok()) {
      EXPECT_EQ(endpoint.error().message.find("pass"), std::string::npos) << endpoint.error().message;
      continue;
    }
    EXPECT_EQ(endpoint->scheme + "://" + endpoint->host_for(c.bucket) + endpoint->path_for(c.bucket, "k"), c.url)
        << c.what;
  }
}

}  // namespace
}  // namespace tornasole::store::s3
