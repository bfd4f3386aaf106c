#include "cli/help_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "cli/text_width.h"

namespace tornasole::cli {
namespace {

constexpr std::size_t kNameColumn = 26;
constexpr std::size_t kMaxTextWidth = 100;

std::string first_sentence(const std::string& text) {
  const std::size_t colon = text.find(": ");
  const std::size_t stop = text.find(". ");
  const std::size_t end = std::min(colon, stop);
  return end == std::string::npos ? text.substr(0, text.find_last_not_of('.') + 1) : text.substr(0, end);
}

// "--from-step" -> "FROM-STEP": what stands for a value that has no other name.
std::string placeholder_of(const CLI::Option& option) {
  const std::string type = option.get_type_name();
  const std::string plain = type.substr(0, type.find(':'));
  if (!plain.empty() && plain != "TEXT" && plain != "INT" && plain != "FLOAT") return plain;
  std::string name = option.get_single_name();
  std::transform(name.begin(), name.end(), name.begin(),
                 [](char c) { return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c; });
  return name;
}

class HelpFormatter : public CLI::Formatter {
 public:
  explicit HelpFormatter(std::size_t width) : width_(std::min(width, kMaxTextWidth)) {
    label("Positionals", "Arguments");
    label("Subcommands", "Commands");
  }

  std::string make_description(const CLI::App* app) const override {
    return wrap(app->get_description(), width_, "") + "\n\n";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string text = "Usage: " + name;
    for (const CLI::Option* option : app->get_options([](const CLI::Option* o) { return o->get_positional(); })) {
      const std::string word = option->get_single_name() + (option->get_expected_max() > 1 ? "..." : "");
      text += option->get_required() ? " " + word : " [" + word + "]";
    }
    const auto is_named = [](const CLI::Option* o) { return o->nonpositional(); };
    for (const CLI::Option* option : app->get_options(is_named)) {
      if (option->get_required()) text += fmt::format(" {} {}", option->get_name(), placeholder_of(*option));
    }
    if (app->get_options(is_named).size() > 1) text += " [OPTIONS]";
    if (!app->get_subcommands({}).empty()) text += " COMMAND ...";
    return text + "\n\n";
  }

  std::string make_subcommand(const CLI::App* sub) const override {
    return row(sub->get_name(), first_sentence(sub->get_description()));
  }

  std::string make_option(const CLI::Option* option, bool is_positional) const override {
    std::string name = is_positional ? option->get_single_name() : option->get_name(false, true);
    std::replace(name.begin(), name.end(), ',', ' ');
    if (!is_positional && takes_value(*option)) name += " " + placeholder_of(*option);
    std::string text = option->get_description();
    const std::vector<std::string> choices = choices_of(*option);
    if (!choices.empty()) text += fmt::format("; one of {}", fmt::join(choices, ", "));
    if (!option->get_default_str().empty()) text += fmt::format(" (default {})", option->get_default_str());
    return row(name, text);
  }

  // Examples keep their lines.
  std::string make_footer(const CLI::App* app) const override {
    return app->get_footer().empty() ? "" : "\n" + app->get_footer() + "\n";
  }

 private:
  std::string row(const std::string& name, const std::string& text) const {
    std::string line = "  " + name;
    const std::string indent(kNameColumn, ' ');
    if (line.size() + 2 > kNameColumn) {
      line += "\n" + indent;
    } else {
      line.append(kNameColumn - line.size(), ' ');
    }
    return line + wrap(text, width_, indent, kNameColumn) + "\n";
  }

  std::size_t width_;
};

}  // namespace

bool takes_value(const CLI::Option& option) { return option.get_items_expected_max() > 0; }

std::vector<std::string> choices_of(const CLI::Option& option) {
  std::vector<std::string> choices;
  const std::string type = option.get_type_name();
  const std::size_t begin = type.find('{');
  const std::size_t end = type.find('}', begin);
  if (begin == std::string::npos || end == std::string::npos) return choices;
  std::string_view list(type);
  list = list.substr(begin + 1, end - begin - 1);
  while (!list.empty()) {
    const std::size_t comma = list.find(',');
    choices.emplace_back(list.substr(0, comma));
    list.remove_prefix(comma == std::string_view::npos ? list.size() : comma + 1);
  }
  return choices;
}

std::shared_ptr<CLI::FormatterBase> make_help_formatter(std::size_t width) {
  return std::make_shared<HelpFormatter>(width);
}

}  // namespace tornasole::cli
