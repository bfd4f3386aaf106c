// Mistakes in valid files: whatever one byte, one value or one piece becomes, the answer is a Config that keeps every
// promise of its header, or an error that names the file. Nothing in a text is ever run.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <random>

#include "config/config_texts.h"

namespace tornasole::config {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

const char* const kExamples[] = {"e1_minimal",
                                 "e2_all_hook_parameters",
                                 "e3_modes",
                                 "e4_collection_beats_mode_of_hook",
                                 "e5_default_collection_off",
                                 "e6_everything_as_text",
                                 "e7_xgboost",
                                 "e8_when_nan",
                                 "e9_collection_without_patterns"};

// Pieces that are right somewhere, hostile, or both.
const std::string kPieces[] = {"null",
                               "true",
                               "-1",
                               "0",
                               "1e999",
                               "9223372036854775808",
                               "[]",
                               "{}",
                               "[[[[",
                               "\"\"",
                               "\"\\u0000\"",
                               "\"\\ud800\"",
                               "\xFF\xFE",
                               ",",
                               "\"__import__('os').system('touch mutation_was_run')\"",
                               "\"$(touch mutation_was_run)\"",
                               "\"!!python/object/apply:os.system ['touch mutation_was_run']\"",
                               "\"(a+)+$\"",
                               "\"../../etc/passwd\"",
                               std::string(5000, 'x')};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : random_(seed) {}

  std::string mutate(std::string text) {
    const int changes = 1 + pick(3);
    for (int i = 0; i < changes && !text.empty(); ++i) change(&text);
    return text;
  }

 private:
  int pick(std::size_t count) { return static_cast<int>(random_() % count); }
  void change(std::string* text) {
    const std::size_t at = static_cast<std::size_t>(pick(text->size()));
    switch (pick(6)) {
      case 0: (*text)[at] = static_cast<char>(pick(256)); break;
      case 1: text->erase(at, 1 + static_cast<std::size_t>(pick(8))); break;
      case 2: text->insert(at, kPieces[static_cast<std::size_t>(pick(std::size(kPieces)))]); break;
      case 3: text->resize(at); break;
      case 4: text->insert(at, text->substr(static_cast<std::size_t>(pick(text->size())), 30)); break;
      default: replace_value(text, at); break;
    }
  }
  // The value after the next colon becomes another piece, so that the file often stays JSON.
  void replace_value(std::string* text, std::size_t from) {
    const std::size_t colon = text->find(": ", from);
    if (colon == std::string::npos) return;
    const std::size_t end = text->find_first_of(",}\n", colon);
    text->replace(colon + 2, end == std::string::npos ? end : end - colon - 2,
                  kPieces[static_cast<std::size_t>(pick(std::size(kPieces)))]);
  }

  std::mt19937 random_;
};

void expect_promises_kept(const Config& config, const std::string& text) {
  EXPECT_FALSE(config.location.empty()) << text;
  EXPECT_TRUE(config.location.front() == '/' || config.location.starts_with("s3://")) << text;
  EXPECT_EQ(config.location.find('\0'), std::string::npos) << text;
  const auto expect_schedule = [&](const Schedule& schedule) {
    EXPECT_GE(schedule.save_interval, 1) << text;
    EXPECT_TRUE(std::is_sorted(schedule.save_steps.begin(), schedule.save_steps.end())) << text;
  };
  for (const Schedule& schedule : config.schedules) expect_schedule(schedule);
  ASSERT_EQ(config.collections.size(), config.include_collections.size()) << text;
  for (std::size_t i = 0; i < config.collections.size(); ++i) {
    EXPECT_EQ(config.collections[i].name, config.include_collections[i]) << text;
    EXPECT_FALSE(config.collections[i].name.empty()) << text;
    for (const auto& schedule : config.collections[i].schedules) {
      if (schedule) expect_schedule(*schedule);
    }
    for (const std::string& pattern : config.collections[i].include_regex) EXPECT_LE(pattern.size(), 4096U) << text;
  }
}

TEST(Mutations, OfValidFilesGiveAConfigOrAnErrorThatNamesTheFile) {
  std::filesystem::remove("mutation_was_run");
  int accepted = 0;
  for (unsigned seed = 0; seed < 500; ++seed) {
    const std::string text = Mutator(seed).mutate(example(kExamples[seed % std::size(kExamples)]));
    const auto config = parse(text);
    const auto errors = check_config(text, "run.json", {.framework = Framework::kPytorch}, bare());
    ASSERT_EQ(config.ok(), errors.empty()) << text;
    if (config.ok()) {
      ++accepted;
      expect_promises_kept(*config, text);
      continue;
    }
    for (const Error& error : errors) {
      EXPECT_EQ(error.code, ErrorCode::kInvalid) << text;
      EXPECT_THAT(error.message, StartsWith("run.json")) << text;
    }
  }
  EXPECT_FALSE(std::filesystem::exists("mutation_was_run"));
  EXPECT_GT(accepted, 20) << "the mutations should not all be syntax errors";
  EXPECT_LT(accepted, 480) << "nor all harmless";
}

TEST(Mutations, AWrongValueAtAnyKeyIsAnErrorThatNamesTheKey) {
  const char* const kKeys[] = {
      "save_interval",   "start_step",      "end_step",   "train.save_steps", "when_nan",      "include_regex",
      "save_all",        "include_workers", "reductions", "save_raw_tensor",  "save_shape",    "dry_run",
      "tensorboard_dir", "queue_bytes",     "fsync",      "derived",          "reduce_threads"};
  for (const std::string key : kKeys) {
    const auto config = parse(with_hook("\n\"" + key + "\": {\"a\": 1}"));
    ASSERT_FALSE(config.ok()) << key;
    EXPECT_THAT(config.error().message, StartsWith("run.json:3: HookParameters." + key + ": {...}"));
  }
}

TEST(Mutations, CodeInAnAcceptedTextStaysText) {
  std::filesystem::remove("mutation_was_run");
  const std::string code = "$(touch mutation_was_run); __import__('os').system('touch mutation_was_run')";
  const auto config = parse("{\"LocalPath\": \"/r/" + code +
                            "\", \"CollectionConfigurations\": [{\"CollectionName\": \"" + code + "\"}]}");
  ASSERT_TRUE(config.ok()) << config.error().message;
  EXPECT_EQ(config->out_dir, "/r/" + code);
  EXPECT_EQ(config->include_collections.at(0), code);
  EXPECT_FALSE(std::filesystem::exists("mutation_was_run"));
}

}  // namespace
}  // namespace tornasole::config
