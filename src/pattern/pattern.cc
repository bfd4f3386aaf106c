// How a search is done, cheapest first; every way gives the same answer:
//   1. texts with .* between them, which most patterns are: compared directly (glob.h)
//   2. a text that every match contains is not in the name: no match
//   3. the work of a backtracking search in a name of this length is bounded by the pattern's shape: PCRE2's JIT
//   4. otherwise PCRE2's interpreter, which reports every item it tries; after a number of steps it is given up
// The JIT alone would not do: it counts neither the rounds of simple repetitions nor those of every starting place.

#include "pattern/pattern.h"

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include <array>
#include <atomic>
#include <cmath>
#include <cstring>
#include <mutex>
#include <optional>

#include "base/errors.h"
#include "base/utf8.h"
#include "pattern/glob.h"
#include "pattern/python_regex.h"

namespace tornasole::pattern {
namespace {

constexpr std::size_t kMaxPatternBytes = 4096;
constexpr std::uint64_t kMaxSteps = 1'000'000;
constexpr std::uint32_t kMaxHeapKib = 20 * 1024;
// Steps of the JIT, which takes about a nanosecond for each.
constexpr double kJitSteps = 1e7;
constexpr std::size_t kMaxNameBytes = std::size_t{1} << 24;

template <auto kFree>
struct Freer {
  template <typename T>
  void operator()(T* pointer) const noexcept {
    kFree(pointer);
  }
};
using Code = std::unique_ptr<pcre2_code, Freer<pcre2_code_free>>;
using CompileContext = std::unique_ptr<pcre2_compile_context, Freer<pcre2_compile_context_free>>;
using MatchContext = std::unique_ptr<pcre2_match_context, Freer<pcre2_match_context_free>>;
using MatchData = std::unique_ptr<pcre2_match_data, Freer<pcre2_match_data_free>>;

PCRE2_SPTR units(std::string_view text) noexcept { return reinterpret_cast<PCRE2_SPTR>(text.data()); }

Result<Code> compile_pcre2(const std::string& text, std::uint32_t extra_options) {
  const CompileContext context(pcre2_compile_context_create(nullptr));
  if (!context) return io_error("out of memory while compiling a pattern");
  pcre2_set_newline(context.get(), PCRE2_NEWLINE_LF);
  pcre2_set_parens_nest_limit(context.get(), 1000);
  int error_code = 0;
  PCRE2_SIZE error_offset = 0;
  Code code(pcre2_compile(units(text), text.size(), PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C | extra_options, &error_code,
                          &error_offset, context.get()));
  if (code) return code;
  std::array<PCRE2_UCHAR, 200> message = {};
  pcre2_get_error_message(error_code, message.data(), message.size());
  return invalid_error("it cannot be compiled: {}", reinterpret_cast<const char*>(message.data()));
}

// The longest name in which the JIT's work is bounded well below the time a match may take.
std::size_t max_jit_name(const SearchCost& cost) {
  if (!cost.is_bounded) return 0;
  if (cost.degree == 0) return cost.factor <= kJitSteps ? kMaxNameBytes : 0;
  double ordered = 1;  // places of several repetitions come in order, so n^d / d! of them
  for (int i = 2; i <= cost.degree; ++i) ordered *= i;
  const double longest = std::pow(kJitSteps / cost.factor * ordered, 1.0 / cost.degree);
  return static_cast<std::size_t>(std::min(longest, static_cast<double>(kMaxNameBytes)));
}

bool is_ascii(std::string_view text) noexcept {
  std::uint64_t seen = 0;
  std::size_t i = 0;
  for (; i + 8 <= text.size(); i += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, text.data() + i, 8);
    seen |= word;
  }
  for (; i < text.size(); ++i) seen |= static_cast<unsigned char>(text[i]);
  return (seen & 0x8080808080808080U) == 0;
}

// Steps spent by one guarded match.
struct Budget {
  std::uint64_t steps = 0;
  std::uint64_t base = 1;  // of one item
  PCRE2_SIZE last_position = 0;
};

int count_step(pcre2_callout_block* block, void* data) {
  auto* budget = static_cast<Budget*>(data);
  const PCRE2_SIZE here = block->current_position;
  const PCRE2_SIZE last = budget->last_position;
  // A repeated character is one item however far it runs, so that the way counts too.
  budget->steps += budget->base + (here > last ? here - last : last - here) / 16;
  budget->last_position = here;
  return budget->steps > kMaxSteps ? PCRE2_ERROR_CALLOUT : 0;
}

}  // namespace

struct Pattern::Compiled {
  std::string text = {};
  std::string pcre2_text = {};
  Requirement requirement = {};
  std::string literal = {};
  std::optional<Glob> glob = {};
  Code code = {};
  bool has_jit = false;
  bool has_backreference = false;
  std::size_t max_jit_name = 0;

  // Any thread. Taken and given back by exchange; a second thread makes its own.
  mutable std::atomic<pcre2_match_data*> spare_match_data = nullptr;
  mutable std::once_flag guarded_once = {};
  mutable Code guarded_code = {};  // made at the first name that needs it

  ~Compiled() { MatchData(spare_match_data.load()); }

  Match search_jit(std::string_view name) const noexcept;
  Match search_guarded(std::string_view name) const noexcept;
};

Result<Pattern> Pattern::compile(std::string_view python_pattern) {
  if (python_pattern.size() > kMaxPatternBytes) {
    return invalid_error("pattern \"{}...\" has {} bytes; at most {} are allowed",
                         printable(python_pattern.substr(0, 40)), python_pattern.size(), kMaxPatternBytes);
  }
  const auto refuse = [&](const std::string& why) {
    return invalid_error("pattern \"{}\" is not valid: {}", printable(python_pattern), why);
  };
  if (!is_valid_utf8(python_pattern)) return refuse("it is not UTF-8");
  auto regex = parse_python_regex(python_pattern);
  if (!regex) return refuse(regex.error().message);
  auto compiled = std::make_unique<Compiled>();
  compiled->text = python_pattern;
  TORNASOLE_TRY(compiled->pcre2_text, to_pcre2(*regex));
  // The JIT of PCRE2 10.42 skips starting places it must not skip, as in (?:[.].|)y*?[.] on "a.w".
  auto code = compile_pcre2(compiled->pcre2_text, PCRE2_NO_START_OPTIMIZE);
  if (!code) return refuse(code.error().message);
  compiled->code = *std::move(code);
  compiled->has_jit = pcre2_jit_compile(compiled->code.get(), PCRE2_JIT_COMPLETE) == 0;
  compiled->has_backreference = regex->has_backreference;
  compiled->glob = Glob::make(*regex);
  if (compiled->glob) {
    compiled->requirement = compiled->glob->requirement();
  } else if (const std::string text = required_literal(*regex); !text.empty()) {
    compiled->requirement.kind = Requirement::Kind::kText;
    for (const char byte : text) compiled->requirement.append(byte);
  }
  compiled->literal = longest_literal(*regex);
  if (compiled->has_jit) compiled->max_jit_name = max_jit_name(search_cost(*regex));
  return Pattern(std::move(compiled));
}

Pattern::Pattern(std::unique_ptr<Compiled> compiled) : compiled_(std::move(compiled)) {}
Pattern::Pattern(Pattern&&) noexcept = default;
Pattern& Pattern::operator=(Pattern&&) noexcept = default;
Pattern::~Pattern() = default;

const std::string& Pattern::text() const noexcept { return compiled_->text; }
const Requirement& Pattern::requirement() const noexcept { return compiled_->requirement; }
const std::string& Pattern::literal() const noexcept { return compiled_->literal; }

SearchedName::SearchedName(std::string_view text) noexcept
    : text_(text), has_line_feed_(!text.empty() && std::memchr(text.data(), '\n', text.size()) != nullptr) {}

Match Pattern::search(const SearchedName& searched) const noexcept {
  const Compiled& compiled = *compiled_;
  const std::string_view name = searched.text();
  if (compiled.glob && !searched.has_line_feed()) return compiled.glob->search(name) ? Match::kYes : Match::kNo;
  if (!compiled.requirement.is_met_by(name)) return Match::kNo;
  return name.size() <= compiled.max_jit_name ? compiled.search_jit(name) : compiled.search_guarded(name);
}

Match Pattern::Compiled::search_jit(std::string_view name) const noexcept {
  MatchData data(spare_match_data.exchange(nullptr, std::memory_order_acquire));
  if (!data) data.reset(pcre2_match_data_create_from_pattern(code.get(), nullptr));
  if (!data) return Match::kLimit;
  // The quick entry does not look at the encoding, which plain ASCII has right.
  const int found = is_ascii(name) ? pcre2_jit_match(code.get(), units(name), name.size(), 0, 0, data.get(), nullptr)
                                   : pcre2_match(code.get(), units(name), name.size(), 0, 0, data.get(), nullptr);
  MatchData(spare_match_data.exchange(data.release(), std::memory_order_release));
  if (found >= 0) return Match::kYes;
  if (found == PCRE2_ERROR_JIT_STACKLIMIT) return search_guarded(name);
  // What is left are names that are not UTF-8: no pattern matches those.
  return Match::kNo;
}

Match Pattern::Compiled::search_guarded(std::string_view name) const noexcept {
  std::call_once(guarded_once, [&] {
    auto guarded = compile_pcre2(pcre2_text, PCRE2_AUTO_CALLOUT);
    if (guarded) guarded_code = *std::move(guarded);
  });
  const MatchContext context(pcre2_match_context_create(nullptr));
  const MatchData data(pcre2_match_data_create_from_pattern(code.get(), nullptr));
  if (!guarded_code || !context || !data) return Match::kLimit;
  // Comparing with a group is one item too, and may take as long as the name.
  Budget budget{.base = 1 + (has_backreference ? name.size() / 64 : 0)};
  pcre2_set_match_limit(context.get(), static_cast<std::uint32_t>(kMaxSteps));
  pcre2_set_heap_limit(context.get(), kMaxHeapKib);
  pcre2_set_callout(context.get(), count_step, &budget);
  const int found =
      pcre2_match(guarded_code.get(), units(name), name.size(), 0, PCRE2_NO_JIT, data.get(), context.get());
  if (found >= 0) return Match::kYes;
  switch (found) {
    case PCRE2_ERROR_CALLOUT:
    case PCRE2_ERROR_MATCHLIMIT:
    case PCRE2_ERROR_DEPTHLIMIT:
    case PCRE2_ERROR_HEAPLIMIT:
    case PCRE2_ERROR_NOMEMORY: return Match::kLimit;
    default: return Match::kNo;
  }
}

}  // namespace tornasole::pattern
