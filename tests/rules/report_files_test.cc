#include "rules/report_files.h"

#include <filesystem>
#include <fstream>
#include <sstream>

#include "base/json.h"
#include "rules/rule_world.h"

namespace tornasole::rules {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

Json json_of(const fs::path& path) {
  auto json = parse_json(text_of(path));
  EXPECT_TRUE(json.ok()) << path;
  return json.ok() ? std::move(*json) : Json();
}

// A rule that writes a file of its own.
class Writes final : public Rule {
 public:
  explicit Writes(std::string bytes) : bytes_(std::move(bytes)) {}
  std::vector<Need> needs() const override { return {{.stats = {Stat::kMean}}}; }
  void look_at(const StepView& /*step*/, Findings& findings) override { findings.count_datapoint(); }
  std::map<std::string, std::string> files() const override { return {{"page.html", bytes_}}; }
  void reset() override {}

 private:
  std::string bytes_;
};

class ReportFilesTest : public ::testing::Test {
 protected:
  ReportFilesTest() {
    std::string pattern = (fs::temp_directory_path() / "report_files.XXXXXX").string();
    dir_ = mkdtemp(pattern.data());
    world_.save_series("loss", {1, NAN, 1});
    trial_.emplace(world_.open());
    runner_.emplace(&*trial_);
  }
  ~ReportFilesTest() override { fs::remove_all(dir_); }

  void add(const std::string& rule, const std::string& name) {
    auto made = make_rule(rule, {}, {.base = &*trial_});
    ASSERT_TRUE(made.ok());
    made->name = name;
    runner_->add(std::move(*made));
  }
  void write(const std::string& path, Evaluation evaluation, std::string_view details = {}) {
    auto files = ReportFiles::open(path, runner_->size());
    ASSERT_TRUE(files.ok()) << files.error().message;
    const Status written = files->write(*runner_, evaluation, details);
    EXPECT_TRUE(written.ok()) << written.error().message;
  }
  std::size_t file_count(const fs::path& path) const {
    return static_cast<std::size_t>(std::distance(fs::directory_iterator(path), fs::directory_iterator()));
  }

  fs::path dir_;
  RuleWorld world_;
  std::optional<Trial> trial_;
  std::optional<RuleRunner> runner_;
};

TEST_F(ReportFilesTest, OneRuleGivesItsReportAndItsStatus) {
  add("ExplodingTensor", "ExplodingTensor");
  const fs::path out = dir_ / "a" / "b";
  const auto status = [&](const char* key) {
    const Json json = json_of(out / "status.json");
    const Json* value = json.find(key);
    return value == nullptr ? std::string() : *value->as_string();
  };
  write(out.string(), Evaluation::kInProgress);
  EXPECT_EQ(status("RuleConfigurationName"), "ExplodingTensor");
  EXPECT_EQ(status("RuleEvaluationStatus"), "InProgress");
  write(out.string(), Evaluation::kEnded);
  EXPECT_EQ(status("RuleEvaluationStatus"), "NoIssuesFound");
  write(out.string(), Evaluation::kStopped);
  EXPECT_EQ(status("RuleEvaluationStatus"), "Stopped");
  write(out.string(), Evaluation::kFailed, std::string(2000, 'x'));
  EXPECT_EQ(status("RuleEvaluationStatus"), "Error");
  EXPECT_EQ(status("StatusDetails").size(), 1024U);
  ASSERT_TRUE(runner_->run().ok());
  write(out.string(), Evaluation::kInProgress);
  EXPECT_EQ(status("RuleEvaluationStatus"), "IssuesFound") << "as soon as the condition was met";
  const Json report = json_of(out / "ExplodingTensor.json");
  EXPECT_EQ(*report.find("RuleTriggered")->as_int(), 1);
  EXPECT_EQ(report.as_object()->size(), 5U);
  EXPECT_EQ(file_count(out), 2U) << "no temporary file is left";
}

TEST_F(ReportFilesTest, SeveralRulesGiveAReportEachAndAListOfStatuses) {
  add("ExplodingTensor", "exploding");
  add("VanishingGradient", "vanishing");
  ASSERT_TRUE(runner_->run().ok());
  write(dir_.string(), Evaluation::kEnded);
  EXPECT_EQ(*json_of(dir_ / "exploding.json").find("RuleTriggered")->as_int(), 1);
  EXPECT_EQ(*json_of(dir_ / "vanishing.json").find("RuleTriggered")->as_int(), 0);
  const Json status = json_of(dir_ / "status.json");
  ASSERT_NE(status.as_array(), nullptr);
  ASSERT_EQ(status.as_array()->size(), 2U);
  EXPECT_EQ(*(*status.as_array())[0].find("RuleEvaluationStatus")->as_string(), "IssuesFound");
  EXPECT_EQ(*(*status.as_array())[1].find("RuleEvaluationStatus")->as_string(), "NoIssuesFound");
}

TEST_F(ReportFilesTest, AFileMayBeNamedForOneRule) {
  add("ExplodingTensor", "ExplodingTensor");
  write((dir_ / "mine.json").string(), Evaluation::kEnded);
  EXPECT_TRUE(fs::exists(dir_ / "mine.json"));
  EXPECT_TRUE(fs::exists(dir_ / "status.json"));
  EXPECT_EQ(ReportFiles::open((dir_ / "mine.json").string(), 2).error().code, ErrorCode::kInvalid);
  EXPECT_EQ(ReportFiles::open((dir_ / "status.json").string(), 1).error().code, ErrorCode::kInvalid);
}

TEST_F(ReportFilesTest, ADirectoryThatCannotBeIsAnError) {
  std::ofstream(dir_ / "file") << "x";
  for (const char* name : {"file", "file/below"}) {
    const auto files = ReportFiles::open((dir_ / name).string(), 1);
    ASSERT_FALSE(files.ok()) << name;
    EXPECT_NE(files.error().message.find(name), std::string::npos) << files.error().message;
  }
}

TEST_F(ReportFilesTest, FilesOfRulesAreKeptApart) {
  runner_->add({.name = "one", .rule = std::make_unique<Writes>("first")});
  runner_->add({.name = "two", .rule = std::make_unique<Writes>("second")});
  write(dir_.string(), Evaluation::kInProgress);  // a run that is followed can be looked at meanwhile
  EXPECT_EQ(text_of(dir_ / "page.html"), "first");
  EXPECT_EQ(text_of(dir_ / "two-page.html"), "second");
}

}  // namespace
}  // namespace tornasole::rules
