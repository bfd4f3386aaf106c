#include "tools/export_trial.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <fstream>
#include <random>
#include <set>
#include <sstream>

#include "base/errors.h"
#include "store/memory/memory_store.h"
#include "tools/local_trial.h"
#include "tools/npy.h"
#include "tools/zip.h"

namespace tornasole::tools {
namespace {

using testing::HasSubstr;

std::string text_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class ExportTest : public testing::Test {
 protected:
  ExportTest() : trial_("export"), out_(testing::TempDir() + "tornasole_export_out") {
    std::filesystem::remove_all(out_);
    std::filesystem::create_directories(out_);
    for (std::int64_t step = 0; step < 3; ++step) {
      trial_.step({.step = step,
                   .values = {{"a/b", tensor_of<float>({1, static_cast<float>(step)})},
                              {format::reduction_tensor_name("max", "a/b", false), tensor_of<float>({9})},
                              {"say \"x\", y", Tensor({"one,two", "three\n"}, Shape{2})}}});
    }
  }
  ~ExportTest() override { std::filesystem::remove_all(out_); }

  std::vector<std::string> left() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(out_)) names.push_back(entry.path().filename());
    return names;
  }

  LocalTrial trial_;
  const std::string out_;
};

TEST_F(ExportTest, CsvIsQuotedWhereItMustBe) {
  const auto report = export_trial(trial_.open(), {.path = out_ + "/x.csv", .end_step = 1});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->values, 2);
  EXPECT_EQ(report->reductions, 1);
  const std::string text = text_of(out_ + "/x.csv");
  EXPECT_EQ(report->bytes, text.size());
  EXPECT_EQ(text,
            "step,mode,mode_step,worker,tensor,index,statistic,value\n"
            "0,TRAIN,0,worker_0,a/b,0,,1\n"
            "0,TRAIN,0,worker_0,a/b,1,,0\n"
            "0,TRAIN,0,worker_0,a/b,,max,9\n"
            "0,TRAIN,0,worker_0,\"say \"\"x\"\", y\",0,,\"one,two\"\n"
            "0,TRAIN,0,worker_0,\"say \"\"x\"\", y\",1,,\"three\n\"\n");
}

TEST_F(ExportTest, WhatExistsIsNotReplacedUnlessAsked) {
  for (const ExportFormat format : {ExportFormat::kCsv, ExportFormat::kNpy, ExportFormat::kNpz, ExportFormat::kArrow}) {
    const std::string path = out_ + "/" + std::string(export_format_name(format));
    std::ofstream(path) << "mine";
    const auto refused = export_trial(trial_.open(), {.format = format, .path = path});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().code, ErrorCode::kInvalid);
    EXPECT_THAT(refused.error().message, HasSubstr(path));
    EXPECT_EQ(text_of(path), "mine");
    const auto replaced = export_trial(trial_.open(), {.format = format, .path = path, .overwrite = true});
    EXPECT_EQ(replaced.ok(), format != ExportFormat::kNpy);
  }
}

TEST_F(ExportTest, AnEmptyDirectoryMayBeFilled) {
  const std::string path = out_ + "/empty";
  std::filesystem::create_directories(path);
  const auto report = export_trial(trial_.open(), {.format = ExportFormat::kNpy, .path = path});
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_EQ(report->files, 10);
  EXPECT_TRUE(std::filesystem::exists(path + "/tensors/a%2Fb/000000000002_worker_0.npy"));
  EXPECT_TRUE(std::filesystem::exists(path + "/tensors/a%2Fb/reductions/max/000000000002_worker_0.npy"));
  EXPECT_THAT(left(), testing::ElementsAre("empty"));
}

TEST_F(ExportTest, StoppedItLeavesNothing) {
  for (const ExportFormat format : {ExportFormat::kCsv, ExportFormat::kNpy, ExportFormat::kNpz, ExportFormat::kArrow}) {
    ExportOptions options{.format = format, .path = out_ + "/x"};
    options.progress = [](std::int64_t values) { return values < 4; };
    const auto report = export_trial(trial_.open(), options);
    ASSERT_FALSE(report.ok());
    EXPECT_EQ(report.error().code, ErrorCode::kEnded);
    EXPECT_THAT(left(), testing::IsEmpty()) << export_format_name(format);
  }
}

TEST_F(ExportTest, DamagedValuesAreSkippedAndNamed) {
  trial_.made().flip(format::event_path(1, "worker_0"), 40);
  const auto report = export_trial(trial_.open(), {.path = out_ + "/x.csv"});
  ASSERT_TRUE(report.ok());
  EXPECT_EQ(report->values, 5);
  ASSERT_EQ(report->skipped.count, 1);
  EXPECT_EQ(report->skipped.listed[0].path, "a/b at step 1 of worker_0");
}

TEST_F(ExportTest, OptionsThatDisagreeAreRefused) {
  struct Case {
    ExportOptions options;
    ErrorCode code;
    const char* says;
  };
  const Case cases[] = {
      {{.format = ExportFormat::kParquet, .path = out_ + "/x"}, ErrorCode::kUnsupported, "Python package"},
      {{.format = ExportFormat::kCsv, .path = out_ + "/x", .compress = true}, ErrorCode::kInvalid, "compression"},
      {{.format = ExportFormat::kNpz, .path = out_ + "/x", .statistics = {Stat::kMin}}, ErrorCode::kInvalid, "csv"},
      {{.format = ExportFormat::kNpz, .path = out_ + "/x", .arrow_binary = true}, ErrorCode::kInvalid, "arrow"},
      {{.path = out_ + "/x", .values = false, .reductions = false}, ErrorCode::kInvalid, "neither"},
      {{.path = out_ + "/x", .worker = "nobody"}, ErrorCode::kInvalid, "nobody"},
      {{.path = out_ + "/x", .regex = {"("}}, ErrorCode::kInvalid, "("},
      {{.path = ""}, ErrorCode::kInvalid, "empty"},
      {{.path = out_}, ErrorCode::kInvalid, "directory"},
  };
  for (const Case& c : cases) {
    const auto report = export_trial(trial_.open(), c.options);
    ASSERT_FALSE(report.ok()) << c.says;
    EXPECT_EQ(report.error().code, c.code) << report.error().message;
    EXPECT_THAT(report.error().message, HasSubstr(c.says));
    EXPECT_THAT(left(), testing::IsEmpty());
  }
}

TEST(Npy, TypesThatNumpyLacksAreWidened) {
  struct Case {
    DType dtype;
    Bytes bytes;
    float expected;
  };
  const Case cases[] = {
      {DType::kBfloat16, Bytes("\xC0\x3F", 2), 1.5F},
      {DType::kFloat8E5m2, Bytes("\x3E", 1), 1.5F},
      {DType::kFloat8E4m3fn, Bytes("\xBC", 1), -1.5F},
  };
  for (const Case& c : cases) {
    NpyFile file;
    const Tensor tensor(c.dtype, Shape{1}, c.bytes);
    ASSERT_TRUE(encode_npy({c.dtype, tensor.bytes().data(), tensor.shape()}, &file).ok());
    EXPECT_TRUE(file.is_widened);
    EXPECT_EQ(file.dtype_written, "float32");
    EXPECT_THAT(file.header, HasSubstr("'<f4'"));
    float value = 0;
    ASSERT_EQ(file.content.size(), sizeof value);
    std::memcpy(&value, file.content.data(), sizeof value);
    EXPECT_EQ(value, c.expected);
  }
}

TEST(Npy, HeadersAreAlignedAndNameTheShape) {
  struct Case {
    Shape shape;
    const char* text;
  };
  const Case cases[] = {{Shape{}, "'shape': ()"},
                        {Shape{0}, "'shape': (0,)"},
                        {Shape{2, 0}, "'shape': (2, 0)"},
                        {Shape{1, 1, 1, 1, 1, 1, 1, 1, 1, 1}, "'shape': (1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"}};
  for (const Case& c : cases) {
    NpyFile file;
    const std::vector<double> values(static_cast<std::size_t>(c.shape.element_count()));
    ASSERT_TRUE(encode_npy(TensorView::of(values, c.shape), &file).ok());
    EXPECT_EQ(file.header.size() % 64, 0U);
    EXPECT_THAT(file.header, HasSubstr(c.text));
    EXPECT_EQ(file.header.back(), '\n');
  }
}

TEST(Npy, TextsThatWouldFillTheMemoryAreRefused) {
  const std::string large(2'000'000, 'x');
  std::vector<std::string_view> texts(1000, "a");
  texts[500] = large;
  NpyFile file;
  const Status status = encode_npy(TensorView::strings(texts), &file);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kUnsupported);
}

TEST(SafeFileName, NamesBecomeOneHarmlessComponent) {
  struct Case {
    std::string name;
    std::string safe;
  };
  const Case cases[] = {
      {"gradient/fc1.weight", "gradient%2Ffc1.weight"},
      {"", "%"},
      {".", "%2E"},
      {"..", "%2E."},
      {".hidden", "%2Ehidden"},
      {"../../x", "%2E.%2F..%2Fx"},
      {std::string("a\0b", 3), "a%00b"},
      {"a%2Fb", "a%252Fb"},
      {"\xC3\xA9", "%C3%A9"},
      {"~", "%7E"},
  };
  for (const Case& c : cases) EXPECT_EQ(safe_file_name(c.name), c.safe);
}

TEST(SafeFileName, DifferentNamesGiveDifferentOnes) {
  std::mt19937_64 random(42);
  std::set<std::string> names;
  std::set<std::string> safe;
  const std::string alphabet = "a/.%~2F_";
  for (int round = 0; round < 20'000; ++round) {
    std::string name;
    const std::size_t length = round % 10 == 0 ? 150 + random() % 100 : random() % 6;
    for (std::size_t i = 0; i < length; ++i) name += alphabet[random() % alphabet.size()];
    names.insert(name);
    const std::string file = safe_file_name(name);
    EXPECT_LE(file.size(), 200U);
    EXPECT_EQ(file.find('/'), std::string::npos);
    safe.insert(file);
  }
  EXPECT_EQ(safe.size(), names.size());
}

TEST(Zip, LargeNumbersGoIntoTheirOwnRecords) {
  store::MemoryStore store;
  for (const bool is_large : {false, true}) {
    const std::string path = is_large ? "large.zip" : "small.zip";
    auto file = store.create(path);
    ASSERT_TRUE(file.ok());
    ZipWriter zip(file->get(), /*compress=*/false);
    if (is_large) zip.set_limits({.offset = 10, .entries = 2});
    const std::array<ByteView, 1> pieces = {"hello"};
    for (const char* name : {"a", "b"}) ASSERT_TRUE(zip.add(name, pieces).ok());
    ASSERT_TRUE(zip.finish().ok());
    ASSERT_TRUE((*file)->publish(false).ok());
    const Bytes bytes = *store.read_all(path, 1 << 20);
    EXPECT_EQ(bytes.find("PK\x06\x06") != Bytes::npos, is_large);
    EXPECT_EQ(bytes.find("PK\x06\x07") != Bytes::npos, is_large);
    std::ofstream(testing::TempDir() + path, std::ios::binary) << bytes;
    // Python reads both: its zipfile is an independent reader.
    const std::string command =
        "python3 -c \"import zipfile,sys; z = zipfile.ZipFile(sys.argv[1]); "
        "sys.exit(not (z.testzip() is None and z.namelist() == ['a', 'b'] and z.read('b') == b'hello'))\" " +
        testing::TempDir() + path;
    EXPECT_EQ(std::system(command.c_str()), 0) << path;
    std::filesystem::remove(testing::TempDir() + path);
  }
}

}  // namespace
}  // namespace tornasole::tools
