// Comma-separated values as RFC 4180 has them, UTF-8, one line per element or statistic.

#include <fmt/format.h>

#include <cmath>
#include <utility>

#include "base/errors.h"
#include "base/utf8.h"
#include "tools/elements.h"
#include "tools/export_writer.h"

namespace tornasole::tools {
namespace {

constexpr std::size_t kFlushBytes = std::size_t{256} << 10;

void append_field(std::string* out, std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos && !text.empty()) {
    out->append(text);
    return;
  }
  *out += '"';
  for (const char c : text) {
    if (c == '"') *out += '"';
    *out += c;
  }
  *out += '"';
}

// As Python, R and spreadsheets read them.
template <typename T>
void append_number(std::string* out, T number) {
  if constexpr (kIsComplex<T>) {
    append_number(out, number.real());
    if (!std::signbit(number.imag())) *out += '+';
    append_number(out, number.imag());
    *out += 'j';
  } else if constexpr (std::is_floating_point_v<T>) {
    if (std::isfinite(number)) {
      fmt::format_to(std::back_inserter(*out), "{}", number);
    } else {
      *out += std::isnan(number) ? "nan" : number < 0 ? "-inf" : "inf";
    }
  } else {
    fmt::format_to(std::back_inserter(*out), "{}", number);
  }
}

class CsvWriter final : public ExportWriter {
 public:
  CsvWriter(std::unique_ptr<store::PendingFile> file, const ExportOptions& options, ExportReport* report)
      : file_(std::move(file)), options_(options), report_(*report) {
    text_ = "step,mode,mode_step,worker,tensor,index,statistic,value\n";
  }

  Status add(const ExportedValue& value) override {
    // What every line of the value begins with.
    std::string head =
        fmt::format("{},{},{},", value.global_step.number, mode_name(value.step.mode), value.step.number);
    append_field(&head, value.worker);
    head += ',';
    append_field(&head, replace_bad_utf8(value.tensor));
    if (value.reduction) return add_elements(head, reduction_name(*value.reduction), value.value);
    if (!options_.statistics.empty()) return add_statistics(head, value.value);
    return add_elements(head, {}, value.value);
  }

  Status finish() override {
    TORNASOLE_CHECK(flush());
    report_.files = 1;
    return file_->publish(options_.overwrite);
  }

 private:
  Status flush() {
    TORNASOLE_CHECK(file_->append(text_));
    report_.bytes += text_.size();
    text_.clear();
    return {};
  }
  Status end_line() {
    text_ += '\n';
    return text_.size() < kFlushBytes ? Status() : flush();
  }

  // A stored reduction has one element, which needs no index.
  Status add_elements(const std::string& head, std::string_view statistic, const TensorView& view) {
    const auto begin_line = [&](std::int64_t position) {
      text_ += head;
      if (statistic.empty()) {
        fmt::format_to(std::back_inserter(text_), ",{},,", position);
      } else {
        fmt::format_to(std::back_inserter(text_), ",,{},", statistic);
      }
    };
    if (view.dtype() == DType::kString) {
      std::int64_t position = 0;
      for (const std::string_view text : view.texts()) {
        begin_line(position++);
        append_field(&text_, replace_bad_utf8(text));
        TORNASOLE_CHECK(end_line());
      }
      return {};
    }
    Status status;
    visit_elements(view.dtype(), [&](auto load) {
      for (std::int64_t i = 0; i < view.element_count() && status.ok(); ++i) {
        begin_line(i);
        append_number(&text_, load(view.data(), i));
        status = end_line();
      }
    });
    return status;
  }

  Status add_statistics(const std::string& head, const TensorView& view) {
    if (view.dtype() == DType::kString) return unsupported_error("texts have no statistics");
    TORNASOLE_TRY(const Stats found, stats(view, options_.statistics));
    for (std::size_t i = 0; i < kStatCount; ++i) {
      const auto stat = static_cast<Stat>(i);
      const auto number = options_.statistics.has(stat) ? found[stat] : std::nullopt;
      if (!number) continue;
      text_ += head;
      fmt::format_to(std::back_inserter(text_), ",,{},", stat_name(stat));
      append_number(&text_, *number);
      TORNASOLE_CHECK(end_line());
    }
    return {};
  }

  const std::unique_ptr<store::PendingFile> file_;
  const ExportOptions& options_;
  ExportReport& report_;
  std::string text_;
};

}  // namespace

Result<std::unique_ptr<ExportWriter>> make_csv_writer(const ExportTarget& target, const ExportOptions& options,
                                                      ExportReport* report) {
  TORNASOLE_TRY(auto file, target.directory->create(target.name));
  return std::unique_ptr<ExportWriter>(std::make_unique<CsvWriter>(std::move(file), options, report));
}

}  // namespace tornasole::tools
