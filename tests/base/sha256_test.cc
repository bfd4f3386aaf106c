#include "base/sha256.h"

#include <gtest/gtest.h>

namespace tornasole {
namespace {

TEST(Sha256, GivesThePublishedDigests) {
  struct Case {
    Bytes text;
    const char* digest;
  };
  const Case cases[] = {
      {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
      {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
      {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
       "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"},
      {Bytes(1'000'000, 'a'), "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"},
  };
  for (const Case& c : cases) EXPECT_EQ(sha256_hex(c.text), c.digest);
}

TEST(Sha256, DoesNotDependOnHowTheBytesArePassed) {
  Bytes text;
  for (int i = 0; i < 300; ++i) text.push_back(static_cast<char>(i * 7));
  for (std::size_t piece = 1; piece < 130; ++piece) {
    Sha256 hash;
    for (std::size_t at = 0; at < text.size(); at += piece) hash.update(ByteView(text).substr(at, piece));
    EXPECT_EQ(hash.finish(), sha256_hex(text)) << piece;
  }
}

// RFC 4231, test cases 1, 2, 3, 6.
TEST(Sha256, SignsAsPublished) {
  const struct {
    Bytes key, message;
    const char* digest;
  } cases[] = {
      {Bytes(20, '\x0b'), "Hi There", "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7"},
      {"Jefe", "what do ya want for nothing?", "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"},
      {Bytes(20, '\xaa'), Bytes(50, '\xdd'), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe"},
      {Bytes(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First",
       "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54"},
  };
  for (const auto& c : cases) EXPECT_EQ(to_hex(hmac_sha256(c.key, c.message)), c.digest);
}

}  // namespace
}  // namespace tornasole
