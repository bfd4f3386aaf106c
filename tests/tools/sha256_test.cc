#include "tools/sha256.h"

#include <gtest/gtest.h>

namespace tornasole::tools {
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

}  // namespace
}  // namespace tornasole::tools
