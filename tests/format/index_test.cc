#include "format/index.h"

#include <gtest/gtest.h>

#include <random>

#include "base/crc32c.h"

namespace tornasole::format {
namespace {

Index small_index() {
  Index index;
  index.mode = Mode::kTrain;
  index.mode_step = 1;
  index.event_file = "events/000000000007/000000000007_worker_0.tfevents";
  index.tensors = {{.name = "t", .offset = 0, .length = 88}};
  return index;
}

void expect_equal(const Index& a, const Index& b) {
  EXPECT_EQ(a.mode, b.mode);
  EXPECT_EQ(a.mode_step, b.mode_step);
  EXPECT_EQ(a.event_file, b.event_file);
  EXPECT_EQ(a.is_partial, b.is_partial);
  EXPECT_EQ(a.optimizer_step, b.optimizer_step);
  EXPECT_EQ(a.training, b.training);
  EXPECT_EQ(a.grad_enabled, b.grad_enabled);
  EXPECT_EQ(a.backward_in_eval, b.backward_in_eval);
  EXPECT_EQ(a.grad_scale, b.grad_scale);
  ASSERT_EQ(a.tensors.size(), b.tensors.size());
  for (std::size_t i = 0; i < a.tensors.size(); ++i) {
    EXPECT_EQ(a.tensors[i].name, b.tensors[i].name);
    EXPECT_EQ(a.tensors[i].offset, b.tensors[i].offset);
    EXPECT_EQ(a.tensors[i].length, b.tensors[i].length);
    EXPECT_EQ(a.tensors[i].crc, b.tensors[i].crc);
  }
  ASSERT_EQ(a.shapes.size(), b.shapes.size());
  for (std::size_t i = 0; i < a.shapes.size(); ++i) {
    EXPECT_EQ(a.shapes[i].name, b.shapes[i].name);
    EXPECT_EQ(a.shapes[i].original_name, b.shapes[i].original_name);
    EXPECT_EQ(a.shapes[i].shape, b.shapes[i].shape);
  }
}

TEST(Index, IsTheDocumentedExampleToTheByte) {
  EXPECT_EQ(encode_index(small_index(), false),
            R"({"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": )"
            R"("events/000000000007/000000000007_worker_0.tfevents"}, "tensor_payload": [{"tensorname": "t", )"
            R"("start_idx": 0, "length": 88}], "shape_payload": []})");
}

TEST(Index, OurKeysComeAfterThoseOfTheReference) {
  Index index = small_index();
  index.is_partial = true;
  index.optimizer_step = 4;
  index.training = true;
  index.grad_enabled = false;
  index.backward_in_eval = true;
  index.grad_scale = 65536;
  index.tensors[0].crc = 4294967295U;
  index.shapes = {{.name = "s", .original_name = "o\n", .shape = {2, 0}}};
  const Bytes text = encode_index(index);
  EXPECT_EQ(text.substr(0, text.rfind(", \"crc32c\"")),
            R"({"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": )"
            R"("events/000000000007/000000000007_worker_0.tfevents", "partial": true, "optimizer_step": 4, )"
            R"("training": true, "grad_enabled": false, "backward_in_eval": true, "grad_scale": 65536.0}, )"
            R"("tensor_payload": [{"tensorname": "t", "start_idx": 0, "length": 88, "crc32c": 4294967295}], )"
            R"("shape_payload": [{"tensorname": "s", "originalname": "o\n", "shape": [2, 0]}])");
  const auto decoded = decode_index(text);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  EXPECT_TRUE(decoded->is_verified);
  expect_equal(*decoded, index);
}

TEST(Index, TheChecksumCoversAllBytesBeforeItsComma) {
  const Bytes text = encode_index(small_index());
  const Bytes covered = encode_index(small_index(), false);
  EXPECT_EQ(text, covered.substr(0, covered.size() - 1) + ", \"crc32c\": " +
                      std::to_string(masked_crc32c(ByteView(covered).substr(0, covered.size() - 1))) + "}");
  EXPECT_FALSE(decode_index(covered)->is_verified);
}

Index random_index(std::mt19937& random) {
  const std::string_view names[] = {"a", "fc1.weight", "smdebug/reductions/l2/x", "\xC3\xA4\n\"\\", "\xF0\x9F\x98\x80",
                                    ""};
  const auto flag = [&random]() -> std::optional<bool> {
    return random() % 3 == 0 ? std::nullopt : std::optional<bool>(random() % 2 == 0);
  };
  Index index = small_index();
  index.mode = kAllModes[random() % 4];
  index.mode_step = static_cast<std::int64_t>(random());
  index.is_partial = random() % 2 == 0;
  index.training = flag();
  index.grad_enabled = flag();
  index.backward_in_eval = flag();
  if (random() % 2 == 0) index.optimizer_step = static_cast<std::int64_t>(random());
  if (random() % 2 == 0) index.grad_scale = static_cast<double>(random()) / 7;
  index.tensors.clear();
  for (std::size_t n = random() % 20; n > 0; --n) {
    index.tensors.push_back({.name = std::string(names[random() % std::size(names)]),
                             .offset = std::uint64_t{random()} << (random() % 31),
                             .length = random()});
    if (random() % 4 != 0) index.tensors.back().crc = static_cast<std::uint32_t>(random());
  }
  if (random() % 2 == 0) index.event_file.clear();
  for (std::size_t n = random() % 5; n > 0; --n) {
    index.shapes.push_back(
        {.name = "s", .original_name = std::string(names[random() % std::size(names)]), .shape = {}});
    for (std::size_t rank = random() % 10; rank > 0; --rank)
      index.shapes.back().shape.push_back(static_cast<std::int64_t>(random()));
  }
  return index;
}

TEST(Index, DecodesWhatItEncoded) {
  std::mt19937 random(11);
  for (int round = 0; round < 1000; ++round) {
    const Index index = random_index(random);
    const bool with_checksum = random() % 2 == 0;
    const auto decoded = decode_index(encode_index(index, with_checksum));
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_EQ(decoded->is_verified, with_checksum);
    expect_equal(*decoded, index);
  }
}

constexpr std::string_view kMeta = R"("meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": "events/e"})";

TEST(Index, ReadsWhatTheReferenceReads) {
  const std::string meta(kMeta);
  const std::pair<const char*, std::string> cases[] = {
      {"other white space and a newline at the end", "\n{ " + meta + " ,\t\"tensor_payload\":[ ] }\n"},
      {"another order of keys", "{\"shape_payload\": [], \"tensor_payload\": [], " + meta + "}"},
      {"only shapes", "{" + meta + ", \"shape_payload\": []}"},
      {"raw UTF-8",
       "{" + meta + ", \"tensor_payload\": [{\"tensorname\": \"\xC3\xA4\", \"start_idx\": 0, \"length\": 16}]}"},
      {"unknown keys of every kind, numbers of any size among them",
       "{" + meta +
           ", \"tensor_payload\": [], \"x\": [1, -0.5e3, 1e999, 123456789012345678901234567890, null, true, "
           "{\"y\": {\"\\u0041\": \"\\ud83d\\ude00\"}}]}"},
      {"a shape without originalname", "{" + meta + ", \"shape_payload\": [{\"tensorname\": \"a\", \"shape\": []}]}"},
      {"a scale that was not finite",
       R"({"meta": {"mode": "EVAL", "mode_step": 0, "grad_scale": null}, "shape_payload": []})"},
      {"a byte-order mark", "\xEF\xBB\xBF{" + meta + ", \"tensor_payload\": []}"},
      {"numbers that are not finite",
       "{" + meta + R"(, "tensor_payload": [], "x": [NaN, {"y": -Infinity}, Infinity]})"},
      {"space around the mode", R"({"meta": {"mode": "\n EVAL ", "mode_step": 0}, "shape_payload": []})"},
      {"a key spelled with escapes", R"({"m\u0065ta": {"mode": "EVAL", "mode_step": 0}, "shape_payload": []})"},
      {"values that no file holds",
       R"({"meta": {"mode": "EVAL", "mode_step": 0, "event_file_name": ""}, "tensor_payload": )"
       R"([{"tensorname": "a", "start_idx": 0, "length": 1}]})"},
      {"64 levels",
       "{" + meta + ", \"tensor_payload\": [], \"x\": " + std::string(63, '[') + std::string(63, ']') + "}"},
  };
  for (const auto& [what, text] : cases) {
    const auto index = decode_index(text);
    EXPECT_TRUE(index.ok()) << what << ": " << index.error().message;
  }
}

TEST(Index, OfARepeatedKeyTheLastValueCounts) {
  const auto index = decode_index(
      R"({"meta": {"mode_step": 9, "partial": true}, "tensor_payload": [{"tensorname": "gone", )"
      R"("start_idx": 0, "length": 16}], "shape_payload": [{"tensorname": "gone", "shape": [1]}], "meta": )"
      R"({"mode": "EVAL", "mode_step": 5, "mode": "TRAIN", "event_file_name": "x", "mode_step": 2, )"
      R"("event_file_name": "events/e"}, "shape_payload": [{"tensorname": "s", "shape": [7, 8], "shape": [2]}], )"
      R"("tensor_payload": [{"tensorname": "x", "start_idx": 1, "length": 2, "tensorname": "t", "length": 88}]})");
  ASSERT_TRUE(index.ok()) << index.error().message;
  Index wanted = small_index();
  wanted.mode_step = 2;
  wanted.event_file = "events/e";
  wanted.tensors[0].offset = 1;
  wanted.shapes = {{.name = "s", .original_name = "s", .shape = {2}}};
  expect_equal(*index, wanted);
}

TEST(Index, AWholeNumberMayBeWrittenAsAFraction) {
  const auto index = decode_index(
      R"({"meta": {"mode": "TRAIN", "mode_step": 1e18, "event_file_name": "e"}, "tensor_payload": [{"tensorname": )"
      R"("t", "start_idx": 12.0, "length": 0.88e2}], "shape_payload": [{"tensorname": "s", "shape": [2.0, -0.0]}]})");
  ASSERT_TRUE(index.ok()) << index.error().message;
  EXPECT_EQ(index->mode_step, 1'000'000'000'000'000'000);
  EXPECT_EQ(index->tensors[0].offset, 12U);
  EXPECT_EQ(index->tensors[0].length, 88U);
  EXPECT_EQ(index->shapes[0].shape, (std::vector<std::int64_t>{2, 0}));
}

TEST(Index, ThePathOfTheEventFileIsMadePlain) {
  const std::pair<const char*, const char*> cases[] = {
      {"./events/e", "events/e"},           {"events//1///e", "events/1/e"},
      {"events/../events/e", "events/e"},   {"a/b/../../c", "c"},
      {"events/e/.", "events/e"},           {"...", "..."},
      {"events/..e/e..", "events/..e/e.."},
  };
  for (const auto& [path, plain] : cases) {
    const auto index = decode_index(std::string(R"({"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": ")") +
                                    path + R"("}, "tensor_payload": []})");
    ASSERT_TRUE(index.ok()) << path << ": " << index.error().message;
    EXPECT_EQ(index->event_file, plain);
  }
}

TEST(Index, DamageIsNamed) {
  const std::string meta(kMeta);
  const auto entry = [&](const std::string& fields) {
    return "{" + meta + ", \"tensor_payload\": [{" + fields + "}]}";
  };
  const auto file = [](const std::string& path) {
    return R"({"meta": {"mode": "TRAIN", "mode_step": 1, "event_file_name": ")" + path + R"("}, "tensor_payload": []})";
  };
  const std::tuple<const char*, std::string, const char*> cases[] = {
      {"nothing", "", "not JSON"},
      {"no object", "[]", "not JSON"},
      {"cut", "{" + meta + ", \"tens", "not JSON"},
      {"a key where an item is due", "{" + meta + R"(, "x": ["a", "b": 0], "tensor_payload": []})", "not JSON"},
      {"two documents", "{" + meta + ", \"tensor_payload\": []}{}", ""},
      {"text after the end", "{" + meta + ", \"tensor_payload\": []} x", ""},
      {"no meta", R"({"tensor_payload": []})", "no meta"},
      {"an empty meta", R"({"meta": {}, "tensor_payload": []})", "no mode"},
      {"no mode step", R"({"meta": {"mode": "TRAIN"}, "tensor_payload": []})", "no mode_step"},
      {"an unknown mode", R"({"meta": {"mode": "VALIDATE", "mode_step": 1}, "tensor_payload": []})", "VALIDATE"},
      {"a negative mode step", R"({"meta": {"mode": "TRAIN", "mode_step": -1}, "tensor_payload": []})",
       "mode_step is -1"},
      {"neither list", "{" + meta + "}", "no tensor_payload and no shape_payload"},
      {"meta twice, the last one empty", "{" + meta + R"(, "tensor_payload": [], "meta": {}})", "no mode"},
      {"half a mode step", R"({"meta": {"mode": "TRAIN", "mode_step": 1.5}, "tensor_payload": []})",
       "mode_step is 1.5,"},
      {"a mode step that is no number", R"({"meta": {"mode": "TRAIN", "mode_step": NaN}, "tensor_payload": []})",
       "mode_step is NaN, not an integer of at least 0"},
      {"a mode step that is a text", R"({"meta": {"mode": "TRAIN", "mode_step": "1"}, "tensor_payload": []})",
       "mode_step is \"1\", not an integer of at least 0"},
      {"a mode step that is true", R"({"meta": {"mode": "TRAIN", "mode_step": true}, "tensor_payload": []})",
       "mode_step is true,"},
      {"a word that only looks like NaN", "{" + meta + ", \"tensor_payload\": [], \"x\": NaNs}", "not JSON"},
      {"two byte-order marks", "\xEF\xBB\xBF\xEF\xBB\xBF{" + meta + ", \"tensor_payload\": []}", "not JSON"},
      {"tensors without a file",
       R"({"meta": {"mode": "TRAIN", "mode_step": 1}, "tensor_payload": [{"tensorname": "a", "start_idx": 0, "length": 16}]})",
       "no event_file_name"},
      {"an absolute file", file("/etc/passwd"), "inside the trial"},
      {"a file that climbs out", file("events/../../x"), "inside the trial"},
      {"a file that ends climbing", file("events/.."), "inside the trial"},
      {"a file that climbs out by itself", file(".."), "inside the trial"},
      {"a file that is the trial", file("./"), "inside the trial"},
      {"a file with NUL", file("events/a\\u0000b"), "inside the trial"},
      {"a negative offset", entry(R"("tensorname": "a", "start_idx": -1, "length": 16)"), "start_idx is -1"},
      {"an offset of 2^63", entry(R"("tensorname": "a", "start_idx": 9223372036854775808, "length": 16)"), "start_idx"},
      {"a fraction as length", entry(R"("tensorname": "a", "start_idx": 0, "length": 16.5)"), "length is 16.5"},
      {"a length of 2^63", entry(R"("tensorname": "a", "start_idx": 0, "length": 9.223372036854775808e18)"),
       "length is 9.2"},
      {"a text as length", entry(R"("tensorname": "a", "start_idx": 0, "length": "16")"), "length"},
      {"a number with a leading zero", entry(R"("tensorname": "a", "start_idx": 00, "length": 16)"), "start_idx is 00"},
      {"no name", entry(R"("start_idx": 0, "length": 16)"), "no tensorname"},
      {"a name that is a number", entry(R"("tensorname": 5, "start_idx": 0, "length": 16)"),
       "tensorname is 5, not a string"},
      {"a lone surrogate in a name", entry(R"("tensorname": "\ud800", "start_idx": 0, "length": 16)"), "tensorname"},
      {"a checksum of 33 bits", entry(R"("tensorname": "a", "start_idx": 0, "length": 16, "crc32c": 4294967296)"),
       "32 bits"},
      {"a negative extent", "{" + meta + R"(, "shape_payload": [{"tensorname": "a", "shape": [-1]}]})",
       "extent of shape is -1"},
      {"bad JSON below an unknown key", "{" + meta + ", \"tensor_payload\": [], \"x\": {\"y\": [1 2]}}", "not JSON"},
      {"a bad number below an unknown key", "{" + meta + ", \"tensor_payload\": [], \"x\": 01}", "01 is no number"},
      {"a bad word below an unknown key", "{" + meta + ", \"tensor_payload\": [], \"x\": nul}", "not JSON"},
      {"too deep", "{" + meta + ", \"tensor_payload\": [], \"x\": " + std::string(64, '[') + std::string(64, ']') + "}",
       "64 levels"},
      {"far too deep", "{" + meta + ", \"x\": " + std::string(1000000, '[') + "}", ""},
      {"text that is not UTF-8", "{" + meta + ", \"tensor_payload\": [], \"x\": \"\xFF\"}", "not JSON"},
      {"a wrong checksum", "{" + meta + ", \"tensor_payload\": [], \"crc32c\": 1}", "checksum crc32c is 1"},
      {"a checksum that is no integer", "{" + meta + ", \"tensor_payload\": [], \"crc32c\": null}", "crc32c is null"},
      {"a key after the checksum",
       encode_index(small_index()).insert(encode_index(small_index()).size() - 1, ", \"x\": 1"), "not the last one"},
  };
  for (const auto& [what, text, says] : cases) {
    const auto index = decode_index(text);
    ASSERT_FALSE(index.ok()) << what;
    EXPECT_EQ(index.error().code, ErrorCode::kCorrupt) << what;
    EXPECT_NE(index.error().message.find(says), std::string::npos) << what << ": " << index.error().message;
  }
}

TEST(Index, CutAtAnyByteIsDamage) {
  for (const bool with_checksum : {false, true}) {
    const Bytes text = encode_index(small_index(), with_checksum);
    for (std::size_t cut = 0; cut < text.size(); ++cut) {
      EXPECT_FALSE(decode_index(ByteView(text).substr(0, cut)).ok()) << cut;
    }
  }
}

TEST(Index, NoChangedByteChangesTheMeaning) {
  std::mt19937 random(5);
  Index index = random_index(random);
  index.tensors = small_index().tensors;
  index.tensors[0].crc = 17;
  index.event_file = small_index().event_file;
  const Bytes text = encode_index(index);
  int accepted = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    for (int value = 0; value < 256; ++value) {
      if (static_cast<char>(value) == text[at]) continue;
      Bytes changed = text;
      changed[at] = static_cast<char>(value);
      const auto decoded = decode_index(changed);
      if (!decoded.ok()) continue;
      ++accepted;
      expect_equal(*decoded, index);
    }
  }
  // The blanks around the checksum, and its key, are all that nothing covers.
  EXPECT_GT(accepted, 0);
}

TEST(Index, ThousandsOfEntriesAreRead) {
  Index index = small_index();
  index.tensors.clear();
  for (std::uint64_t i = 0; i < 20000; ++i) {
    index.tensors.push_back(
        {.name = "layer" + std::to_string(i) + "/weight", .offset = i * 100, .length = 100, .crc = 1});
  }
  const auto decoded = decode_index(encode_index(index));
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  expect_equal(*decoded, index);
}

// Puts together again what it is shown.
class Rebuilder final : public IndexVisitor {
 public:
  void on_tensor_list() override { tensors.clear(); }
  void on_shape_list() override { shapes.clear(); }
  void on_tensor(const Tensor& tensor) override {
    tensors.push_back({std::string(tensor.name), tensor.offset, tensor.length, tensor.crc});
  }
  void on_shape(const ShapeRecord& record) override {
    shapes.push_back({std::string(record.name), std::string(record.original_name),
                      std::vector<std::int64_t>(record.shape.begin(), record.shape.end())});
  }
  std::vector<IndexEntry> tensors;
  std::vector<ShapeEntry> shapes;
};

TEST(Index, OneDecoderShowsTheEntriesOfManyFiles) {
  const std::string kNames[] = {"plain", "", "quote\"d", "back\\slash", "line\nbreak", "\xE2\x82\xAC", "nul\\u0000"};
  IndexDecoder decoder;
  for (int round = 0; round < 3; ++round) {
    Index index = small_index();
    index.tensors.clear();
    for (const std::string& name : kNames) {
      index.tensors.push_back({name, static_cast<std::uint64_t>(round), 88, 7});
      index.shapes.push_back({name, name + "!", {round, 2}});
    }
    Rebuilder seen;
    Bytes text = encode_index(index);
    auto decoded = decoder.decode(text, seen);
    ASSERT_TRUE(decoded.ok()) << decoded.error().message;
    EXPECT_TRUE(decoded->tensors.empty() && decoded->shapes.empty());
    decoded->tensors = seen.tensors;
    decoded->shapes = seen.shapes;
    expect_equal(*decoded, index);
    // A damaged file in between leaves no trace.
    Bytes cut = text.substr(0, text.size() / 2);
    EXPECT_FALSE(decoder.decode(cut, seen).ok());
  }
}

TEST(Index, AnEscapedKeyIsTheKey) {
  Bytes text = encode_index(small_index(), false);
  text.replace(text.find("tensorname"), 1, "\\u0074");
  const auto decoded = decode_index(text);
  ASSERT_TRUE(decoded.ok()) << decoded.error().message;
  expect_equal(*decoded, small_index());
}

}  // namespace
}  // namespace tornasole::format
