#include "store/s3/s3_xml.h"

#include <gtest/gtest.h>

#include "store/store.h"

namespace tornasole::store::s3 {
namespace {

TEST(S3Xml, ReadsWhatTheServiceWrites) {
  const auto listing = parse_listing(R"(<?xml version="1.0" encoding="UTF-8"?>
<ListBucketResult xmlns="http://s3.amazonaws.com/doc/2006-03-01/">
  <Name>b</Name><EncodingType>url</EncodingType><IsTruncated>true</IsTruncated>
  <NextContinuationToken>1ueGcx&amp;</NextContinuationToken>
  <Contents><Key>a+b%2Bc/%C3%A4</Key><LastModified>2009-10-12T17:50:30.500Z</LastModified><Size>434234</Size>
    <ETag>&quot;fba9dede5f27731c9771645a39863328&quot;</ETag><Owner><ID>x</ID></Owner></Contents>
  <CommonPrefixes><Prefix>photos/</Prefix></CommonPrefixes>
</ListBucketResult>
)");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  ASSERT_EQ(listing->objects.size(), 1U);
  EXPECT_EQ(listing->objects[0].key, "a b+c/\xC3\xA4");
  EXPECT_EQ(listing->objects[0].size_bytes, 434234U);
  EXPECT_EQ(listing->objects[0].modified_s, 1255369830) << "whole seconds";
  EXPECT_EQ(listing->objects[0].etag, "fba9dede5f27731c9771645a39863328");
  EXPECT_EQ(listing->prefixes, std::vector<std::string>{"photos/"});
  EXPECT_EQ(listing->next_token, "1ueGcx&");
}

TEST(S3Xml, KeysWithoutAnEncodingAreTakenAsTheyAre) {
  const auto listing = parse_listing(
      "<ListBucketResult><Contents><Key>a+b%20&lt;&#x41;&#228;</Key><LastModified>2009-10-12T17:50:30Z</LastModified>"
      "<Size>0</Size></Contents></ListBucketResult>");
  ASSERT_TRUE(listing.ok()) << listing.error().message;
  EXPECT_EQ(listing->objects[0].key, "a+b%20<A\xC3\xA4");
  EXPECT_EQ(listing->next_token, std::nullopt);
}

TEST(S3Xml, AnEntityTagIsAWord) {
  EXPECT_EQ(parse_etag("\"abc-3\""), "abc-3");
  EXPECT_EQ(parse_etag("abc"), "abc") << "some services leave the quotes away";
  EXPECT_EQ(parse_etag("W/\"abc\""), "W/\"abc\"");
  EXPECT_EQ(parse_etag(std::string(kMaxVersionBytes, 'a')), std::string(kMaxVersionBytes, 'a'));
  for (const std::string& text : {std::string("\""), std::string()}) EXPECT_LE(parse_etag(text).size(), 1U);
  for (const std::string& text : {std::string("a b"), std::string("a\nb"), std::string("\xC3\xA4"),
                                  std::string(kMaxVersionBytes + 1, 'a'), std::string("a\0b", 3)}) {
    EXPECT_EQ(parse_etag(text), "") << text;
  }
}

TEST(S3Xml, RefusesWhatIsNotOfTheSmallKind) {
  std::string deep;
  for (int i = 0; i < 100'000; ++i) deep += "<a>";
  const std::string cases[] = {
      "",
      "x",
      "<",
      "<a",
      "<a>",
      "<a></b>",
      "<a/>x",
      "<a b></a>",
      "<a b=c></a>",
      "<a b='c></a>",
      "<a>&nbsp;</a>",
      "<a>&#0;</a>",
      "<a>&#xD800;</a>",
      "<a>&#x110000;</a>",
      "<a>&#99999999999;</a>",
      "<a>&lt</a>",
      "<!DOCTYPE a [<!ENTITY x 'y'>]><a>&x;</a>",
      "<a><!-- c --></a>",
      "<a><![CDATA[x]]></a>",
      "<?xml",
      deep,
  };
  for (const std::string& text : cases) {
    const auto parsed = parse_xml(text);
    ASSERT_FALSE(parsed.ok()) << text.substr(0, 60);
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt) << text.substr(0, 60);
  }
}

TEST(S3Xml, RefusesListingsThatCannotBe) {
  const char* object = "<Key>k</Key><LastModified>2009-10-12T17:50:30Z</LastModified><Size>1</Size>";
  const auto wrap = [](const std::string& inside) { return "<ListBucketResult>" + inside + "</ListBucketResult>"; };
  EXPECT_TRUE(parse_listing(wrap(std::string("<Contents>") + object + "</Contents>")).ok());
  const std::string cases[] = {
      "<Error><Code>x</Code></Error>",
      wrap("<Contents><Size>1</Size></Contents>"),
      wrap("<Contents><Key>k</Key><LastModified>2009-10-12T17:50:30Z</LastModified><Size>-1</Size></Contents>"),
      wrap("<Contents><Key>k</Key><LastModified>yesterday</LastModified><Size>1</Size></Contents>"),
      wrap("<Contents><Key>k</Key><LastModified>2009-10-12T17:50:30Z</LastModified><Size>9e9</Size></Contents>"),
      wrap("<IsTruncated>true</IsTruncated>"),
      wrap("<EncodingType>url</EncodingType><CommonPrefixes><Prefix>%</Prefix></CommonPrefixes>"),
  };
  for (const std::string& text : cases) EXPECT_FALSE(parse_listing(text).ok()) << text;
}

TEST(S3Xml, FindsTheCodeOfAnError) {
  EXPECT_EQ(parse_service_error("<?xml version='1.0'?><Error><Code>SlowDown</Code><Message>m</Message></Error>").code,
            "SlowDown");
  EXPECT_EQ(parse_service_error("<ErrorResponse><Error><Code>Expired</Code></Error></ErrorResponse>").code, "Expired");
  for (const char* text : {"", "<html>", "{}", "<a/>"}) EXPECT_EQ(parse_service_error(text).code, "") << text;
}

TEST(S3Xml, ReadsTimes) {
  EXPECT_EQ(parse_http_time("Mon, 12 Oct 2009 17:50:30 GMT"), 1255369830);
  EXPECT_EQ(parse_iso_time("1970-01-01T00:00:00Z"), 0);
  for (const char* text : {"", "Mon, 12 Okt 2009 17:50:30 GMT", "Mon, 12 Oct 2009 17:50:30 CET", "12 Oct 2009"}) {
    EXPECT_EQ(parse_http_time(text), std::nullopt) << text;
  }
  for (const char* text : {"", "2009-10-12", "2009-13-12T17:50:30Z", "2009-10-12T17:50:3xZ", "2009-10-12 17:50:30Z"}) {
    EXPECT_EQ(parse_iso_time(text), std::nullopt) << text;
  }
}

}  // namespace
}  // namespace tornasole::store::s3
