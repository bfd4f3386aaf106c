#include "cli/completion.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <vector>

#include "cli/help_text.h"
#include "tornasole/rule.h"

namespace tornasole::cli {
namespace {

struct OptionWords {
  std::vector<std::string> names = {};  // "--json", "-o"
  std::string description = {};
  bool takes_value = false;
  std::vector<std::string> choices = {};
};

struct CommandWords {
  std::string path = {};  // "" for the program, "config check"
  std::vector<OptionWords> options = {};
  std::vector<std::string> subcommands = {};
  bool has_directory = false;             // the first argument
  bool has_tensors = false;               // the arguments after it
  std::vector<std::string> choices = {};  // of the first argument
  std::vector<std::string> second = {};   // of the arguments after it
};

std::vector<std::string> rule_names() {
  std::vector<std::string> names;
  for (const RuleType& type : builtin_rules()) names.emplace_back(type.name);
  return names;
}

CommandWords words_of(const CLI::App& app, const std::string& path) {
  CommandWords words{.path = path};
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_single_name();
    if (option->get_positional()) {
      words.has_directory |= name == "DIR" || name == "A";
      words.has_tensors |= name == "NAME" || name == "PATTERN";
      if (name == "SHELL") words.choices = choices_of(*option);
      if (name == "RULE") words.second = rule_names();
      continue;
    }
    OptionWords entry{
        .description = option->get_description(), .takes_value = takes_value(*option), .choices = choices_of(*option)};
    if (option->get_type_name() == "RULE") entry.choices = rule_names();
    for (const std::string& flag : option->get_lnames()) entry.names.push_back("--" + flag);
    for (const std::string& flag : option->get_snames()) entry.names.push_back("-" + flag);
    words.options.push_back(std::move(entry));
  }
  for (const CLI::App* sub : app.get_subcommands({})) words.subcommands.push_back(sub->get_name());
  return words;
}

void collect(const CLI::App& app, const std::string& path, std::vector<CommandWords>* all) {
  all->push_back(words_of(app, path));
  for (const CLI::App* sub : app.get_subcommands({})) {
    collect(*sub, path.empty() ? sub->get_name() : path + " " + sub->get_name(), all);
  }
}

std::string option_names(const CommandWords& command) {
  std::vector<std::string> names;
  for (const OptionWords& option : command.options) names.insert(names.end(), option.names.begin(), option.names.end());
  return fmt::format("{}", fmt::join(names, " "));
}

std::string first_words(const CommandWords& command) {
  return fmt::format("{}", fmt::join(command.subcommands.empty() ? command.choices : command.subcommands, " "));
}

// The cases that bash and zsh share: which words may follow, which options take a value.
std::string case_lines(const std::vector<CommandWords>& commands) {
  std::string text;
  for (const CommandWords& command : commands) {
    for (const std::string& sub : command.subcommands) {
      const std::string path = command.path.empty() ? sub : command.path + " " + sub;
      text += fmt::format("      '{} {}') command='{}'; first=$((i + 1)) ;;\n", command.path, sub, path);
    }
  }
  return text;
}

std::string value_cases(const std::vector<CommandWords>& commands) {
  std::string text;
  for (const CommandWords& command : commands) {
    for (const OptionWords& option : command.options) {
      if (!option.takes_value) continue;
      for (const std::string& name : option.names) {
        text += option.choices.empty() ? fmt::format("    '{} {}') kind=file ;;\n", command.path, name)
                                       : fmt::format("    '{} {}') kind=words; list='{}' ;;\n", command.path, name,
                                                     fmt::join(option.choices, " "));
      }
    }
  }
  return text;
}

std::string word_cases(const std::vector<CommandWords>& commands) {
  std::string text;
  for (const CommandWords& command : commands) {
    text += fmt::format("    '{}') options='{}'; list='{}'; second='{}'; directory={}; tensors={} ;;\n", command.path,
                        option_names(command), first_words(command), fmt::join(command.second, " "),
                        command.has_directory ? 1 : 0, command.has_tensors ? 1 : 0);
  }
  return text;
}

constexpr std::string_view kBashScript =
    R"script(# bash completion for tornasole; source it, or put it into bash-completion's directory.
_tornasole() {
  local current="${COMP_WORDS[COMP_CWORD]}" previous="${COMP_WORDS[COMP_CWORD - 1]}"
  local command='' kind='' list='' second='' options='' directory=0 tensors=0 first=1 i
  COMPREPLY=()
  for ((i = 1; i < COMP_CWORD; i++)); do
    case "$command ${COMP_WORDS[i]}" in
@COMMANDS@
    esac
  done
  case "$command $previous" in
@VALUES@
  esac
  if [ "$kind" = file ]; then
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
    return
  fi
  if [ "$kind" = words ]; then
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$current")
    return
  fi
  case "$command" in
@WORDS@
  esac
  if [[ "$current" == -* ]]; then
    mapfile -t COMPREPLY < <(compgen -W "$options" -- "$current")
  elif [ -n "$list" ]; then
    mapfile -t COMPREPLY < <(compgen -W "$list" -- "$current")
  elif [ -n "$second" ] && ((COMP_CWORD > first)); then
    mapfile -t COMPREPLY < <(compgen -W "$second" -- "$current")
  elif [ "$tensors" = 1 ] && ((COMP_CWORD > first)); then
    local name
    while IFS= read -r name; do
      [[ "$name" == "$current"* ]] && COMPREPLY+=("$(printf '%q' "$name")")
    done < <(tornasole ls --names "${COMP_WORDS[first]}" 2> /dev/null)
  elif [ "$directory" = 1 ]; then
    mapfile -t COMPREPLY < <(compgen -d -- "$current")
  else
    mapfile -t COMPREPLY < <(compgen -f -- "$current")
  fi
}
complete -o filenames -F _tornasole tornasole
)script";

constexpr std::string_view kZshScript = R"script(#compdef tornasole
# zsh completion for tornasole; put it as _tornasole into a directory of $fpath.
_tornasole() {
  local current="${words[CURRENT]}" previous="${words[CURRENT - 1]}"
  local command='' kind='' list='' second='' options='' directory=0 tensors=0 first=2 i
  for ((i = 2; i < CURRENT; i++)); do
    case "$command ${words[i]}" in
@COMMANDS@
    esac
  done
  case "$command $previous" in
@VALUES@
  esac
  if [[ $kind == file ]]; then
    _files
    return
  fi
  if [[ $kind == words ]]; then
    compadd -- ${=list}
    return
  fi
  case "$command" in
@WORDS@
  esac
  if [[ $current == -* ]]; then
    compadd -- ${=options}
  elif [[ -n $list ]]; then
    compadd -- ${=list}
  elif [[ -n $second ]] && ((CURRENT > first)); then
    compadd -- ${=second}
  elif [[ $tensors == 1 ]] && ((CURRENT > first)); then
    compadd -- ${(f)"$(tornasole ls --names "${(Q)words[first]}" 2> /dev/null)"}
  elif [[ $directory == 1 ]]; then
    _files -/
  else
    _files
  fi
}
_tornasole "$@"
)script";

// The script with its tables in their places.
std::string filled(std::string_view script, const std::vector<CommandWords>& commands) {
  std::string text(script);
  const auto fill = [&](std::string_view place, const std::string& lines) {
    text.replace(text.find(place), place.size() + 1, lines);  // with the line break after it
  };
  fill("@COMMANDS@", case_lines(commands));
  fill("@VALUES@", value_cases(commands));
  fill("@WORDS@", word_cases(commands));
  return text;
}

std::string fish_quoted(const std::string& text) {
  std::string out = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') out += '\\';
    out += c;
  }
  return out + "'";
}

// By the place of the words: a command and a command of another command may have the same name.
std::string fish_condition(const std::string& path) {
  return path.empty() ? "__fish_use_subcommand" : "__tornasole_at " + path;
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string text =
      "# fish completion for tornasole; put it as tornasole.fish into fish's completions directory.\n"
      "function __tornasole_names\n"
      "  set -l words (commandline -opc)\n"
      "  if test (count $words) -ge 3\n"
      "    tornasole ls --names $words[3] 2> /dev/null\n"
      "  end\n"
      "end\n"
      "function __tornasole_at\n"
      "  set -l words (commandline -opc)\n"
      "  for i in (seq (count $argv))\n"
      "    set -l place (math $i + 1)\n"
      "    test \"$words[$place]\" = \"$argv[$i]\"; or return 1\n"
      "  end\n"
      "end\n";
  for (const CommandWords& command : commands) {
    const std::string start = fmt::format("complete -c tornasole -n {}", fish_quoted(fish_condition(command.path)));
    for (const std::string& sub : command.subcommands) text += fmt::format("{} -f -a {}\n", start, sub);
    if (!command.choices.empty()) text += fmt::format("{} -f -a '{}'\n", start, fmt::join(command.choices, " "));
    if (!command.second.empty()) text += fmt::format("{} -a '{}'\n", start, fmt::join(command.second, " "));
    if (command.has_tensors) text += start + " -a '(__tornasole_names)'\n";
    for (const OptionWords& option : command.options) {
      text += start;
      for (const std::string& name : option.names) {
        text += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      if (option.takes_value) text += " -r";
      if (!option.choices.empty()) text += fmt::format(" -f -a '{}'", fmt::join(option.choices, " "));
      text += " -d " + fish_quoted(option.description) + "\n";
    }
  }
  return text;
}

}  // namespace

std::string completion_script(const CLI::App& app, Shell shell) {
  std::vector<CommandWords> commands;
  collect(app, "", &commands);
  switch (shell) {
    case Shell::kBash: return filled(kBashScript, commands);
    case Shell::kZsh: return filled(kZshScript, commands);
    case Shell::kFish: break;
  }
  return fish_script(commands);
}

}  // namespace tornasole::cli
