#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "cli/number_text.h"
#include "cli/progress_bar.h"
#include "cli/table_text.h"
#include "cli/terminal_chart.h"
#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

Terminal terminal_of(std::size_t width, bool has_unicode, bool is_terminal = true) {
  return {.style = Style::plain(), .is_terminal = is_terminal, .has_unicode = has_unicode, .width = width};
}

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin);
    lines.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return lines;
}

TEST(TextWidth, CountsColumns) {
  struct Case {
    const char* what;
    std::string text;
    std::size_t columns;
  };
  const Case kCases[] = {
      {"a letter is one", "abc", 3},
      {"an accented letter is one", "\u00e9", 1},
      {"a combining mark stands on its letter", "e\u0301", 1},
      {"a Chinese character is two", "\u6f22\u5b57", 4},
      {"an emoji is two", "\U0001F600", 2},
      {"nothing is none", "", 0},
  };
  for (const Case& c : kCases) EXPECT_EQ(columns_of(c.text), c.columns) << c.what;
}

TEST(TextWidth, ClipsTheMiddle) {
  EXPECT_EQ(clip_middle("gradient/fc1.weight", 19, true), "gradient/fc1.weight");
  EXPECT_EQ(clip_middle("gradient/fc1.weight", 11, true), "gradi\u2026eight");
  EXPECT_EQ(clip_middle("gradient/fc1.weight", 11, false), "grad...ight");
  EXPECT_EQ(clip_middle("abcdef", 2, false), "..");
  for (std::size_t columns = 0; columns < 20; ++columns) {
    for (const bool has_unicode : {false, true}) {
      const std::string clipped = clip_middle("\u6f22\u5b57abc\u6f22\u5b57xyz\u0301\u6f22", columns, has_unicode);
      EXPECT_LE(columns_of(clipped), columns) << clipped;
    }
  }
}

TEST(TextWidth, WrapsAtBlanks) {
  EXPECT_EQ(wrap("one two three", 7, "  "), "one two\n  three");
  EXPECT_EQ(wrap("incomprehensible", 5, ""), "incomprehensible");
  EXPECT_EQ(wrap("a b", 4, "  ", 3), "a\n  b");
}

TEST(TableText, AlignsAndGivesWay) {
  TableText table({{"name", TableText::Align::kLeft, true}, {"count", TableText::Align::kRight}, {"note"}});
  table.add({{"a"}, {"12"}, {""}});
  table.add({{"a much longer name than the others"}, {"3"}, {"x\x1b[31m"}});
  EXPECT_EQ(table.text(terminal_of(200, true)),
            "name                                count  note\n"
            "a                                      12\n"
            "a much longer name than the others      3  x\\x1b[31m\n");
  for (const std::string& line : lines_of(table.text(terminal_of(40, true)))) EXPECT_LE(columns_of(line), 40U) << line;
  EXPECT_EQ(table.text(terminal_of(40, true, false)), table.text(terminal_of(200, true))) << "a pipe has no edge";
}

TEST(NumberText, Numbers) {
  EXPECT_EQ(number_text(0.1), "0.1");
  EXPECT_EQ(number_text(1234567), "1.23457e+06");
  EXPECT_EQ(number_text(NAN), "NaN");
  EXPECT_EQ(number_text(-INFINITY), "-Inf");
  EXPECT_EQ(bytes_text(0), "0 B");
  EXPECT_EQ(bytes_text(1023), "1023 B");
  EXPECT_EQ(bytes_text(1536), "1.5 KiB");
  EXPECT_EQ(bytes_text((std::uint64_t{1} << 20) - 1), "1.0 MiB");
  EXPECT_EQ(bytes_text(std::numeric_limits<std::uint64_t>::max()), "16.0 EiB");
  EXPECT_EQ(counted(1, "step"), "1 step");
  EXPECT_EQ(counted(0, "step"), "0 steps");
}

TEST(ProgressBar, Line) {
  EXPECT_EQ(ProgressBar::line("reading", 5, 10, terminal_of(80, false)),
            "reading ###############...............  50 %");
  EXPECT_EQ(ProgressBar::line("reading", 20, 10, terminal_of(30, false)), "reading 100 %");
  EXPECT_EQ(ProgressBar::line("values", 7, 0, terminal_of(80, false)), "values 7");
}

TEST(Chart, RisingLineInAscii) {
  const TerminalChart chart{.points = {{0, 0}, {1, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}}, .height = 6};
  EXPECT_EQ(chart_text(chart, terminal_of(20, false)),
            "6 |\n"
            "  |               **\n"
            "4 |            ***\n"
            "2 |     *******\n"
            "  |  ***\n"
            "0 |**\n"
            "  +-----------------\n"
            "   0               5\n");
}

// Whatever the numbers are: lines of the promised number and width, and no line for what is not finite.
TEST(Chart, FitsWhateverItShows) {
  const double kLargest = std::numeric_limits<double>::max();
  const std::vector<std::vector<double>> kSeries = {{1},
                                                    {0, 0, 0},
                                                    {NAN, NAN},
                                                    {-INFINITY, 1, INFINITY},
                                                    {-kLargest, kLargest},
                                                    {kLargest, kLargest},
                                                    {5e-324, 1e-323},
                                                    {1, std::nextafter(1.0, 2.0)},
                                                    {1e300, -1e-300, 7}};
  for (const auto& values : kSeries) {
    for (const bool has_unicode : {false, true}) {
      for (const bool is_log : {false, true}) {
        TerminalChart chart{.points = {}, .is_log = is_log};
        for (std::size_t i = 0; i < values.size(); ++i) chart.points.push_back({static_cast<double>(i), values[i]});
        const auto lines = lines_of(chart_text(chart, terminal_of(60, has_unicode)));
        EXPECT_EQ(lines.size(), chart.height + 2);
        for (const std::string& line : lines) EXPECT_LE(columns_of(line), 61U) << line;
      }
    }
  }
  EXPECT_EQ(chart_text({}, terminal_of(60, true)), "");
}

TEST(PlotScale, ThinningKeepsTheEndsTheExtremesAndWhatIsNotFinite) {
  std::vector<PlotPoint> points;
  for (int i = 0; i < 100'000; ++i) points.push_back({static_cast<double>(i), std::sin(i * 0.001)});
  points[54'321].y = 17;
  points[12'345].y = -17;
  points[70'000].y = NAN;
  EXPECT_TRUE(thin_out(&points, 1000));
  EXPECT_LE(points.size(), 1001U);
  const auto has = [&](double x) {
    return std::any_of(points.begin(), points.end(), [x](const PlotPoint& point) { return point.x == x; });
  };
  for (const double x : {0.0, 12'345.0, 54'321.0, 70'000.0, 99'999.0}) EXPECT_TRUE(has(x)) << x;
  EXPECT_TRUE(std::is_sorted(points.begin(), points.end(), [](auto a, auto b) { return a.x < b.x; }));
  EXPECT_FALSE(thin_out(&points, 2000));
}

TEST(PlotScale, TicksAreRoundNumbers) {
  const auto labels = [](PlotScale::Wish wish) {
    std::string text;
    const PlotScale scale = PlotScale::fit(wish);
    for (const auto& tick : scale.ticks()) text += tick.label + " ";
    return text;
  };
  EXPECT_EQ(labels({.low = 0, .high = 1, .ticks = 5}), "0 0.2 0.4 0.6 0.8 1 ");
  EXPECT_EQ(labels({.low = -0.03, .high = 0.011, .ticks = 4}), "-0.04 -0.02 0 0.02 ");
  EXPECT_EQ(labels({.low = 0, .high = 13, .ticks = 8, .whole_numbers = true, .rounds_out = false}), "0 2 4 6 8 10 12 ");
  EXPECT_EQ(labels({.low = 3e-5, .high = 20, .is_log = true, .ticks = 8}), "1e-5 1e-4 1e-3 1e-2 1e-1 1e0 1e1 1e2 ");
  EXPECT_EQ(labels({.low = 5, .high = 5, .ticks = 2, .whole_numbers = true}), "4 5 6 ");
}

TEST(Histogram, CountsEveryElementOnce) {
  std::vector<double> values(1000);
  std::iota(values.begin(), values.end(), -500.0);
  values.insert(values.end(), {NAN, NAN, INFINITY, -INFINITY});
  const Tensor tensor(TensorView::of(values));
  const Histogram histogram = histogram_of(ElementReader(tensor), 12);
  ASSERT_EQ(histogram.bins.size(), 12U);
  std::int64_t total = 0;
  for (const HistogramBin& bin : histogram.bins) {
    std::int64_t expected = 0;
    for (const double value : values) {
      const bool is_last = &bin == &histogram.bins.back();
      expected += value >= bin.low && (value < bin.high || (is_last && value <= bin.high)) ? 1 : 0;
    }
    EXPECT_NEAR(static_cast<double>(bin.count), static_cast<double>(expected), 1) << bin.low;
    total += bin.count;
  }
  EXPECT_EQ(total, 1000);
  EXPECT_EQ(histogram.nan, 2);
  EXPECT_EQ(histogram.positive_infinities, 1);
  EXPECT_EQ(histogram.negative_infinities, 1);
}

TEST(Histogram, FewWholeNumbersGetABinEach) {
  const std::vector<std::int32_t> values = {1, 1, 3, 5, 5, 5};
  const Tensor tensor(TensorView::of(values));
  EXPECT_EQ(histogram_text(histogram_of(ElementReader(tensor), 12), terminal_of(20, false)),
            "1  2  ##########\n"
            "2  0\n"
            "3  1  #####\n"
            "4  0\n"
            "5  3  ##############\n");
}

TEST(Histogram, TheWholeRangeOfADouble) {
  const double kLargest = std::numeric_limits<double>::max();
  const std::vector<double> values = {-kLargest, 0, kLargest};
  const Tensor tensor(TensorView::of(values));
  const Histogram histogram = histogram_of(ElementReader(tensor), 4);
  EXPECT_EQ(histogram.bins.front().count, 1);
  EXPECT_EQ(histogram.bins.back().count, 1);
}

}  // namespace
}  // namespace tornasole::cli
