#include "support/faulty_store.h"

#include <charconv>
#include <cmath>

#include "base/errors.h"

namespace tornasole::store {
namespace {

template <typename Number>
std::optional<Number> parse_number(std::string_view text) {
  Number number{};
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return number;
}

// Counted from 1.
std::optional<std::int64_t> parse_count(std::string_view text) {
  const auto count = parse_number<std::int64_t>(text);
  return count && *count > 0 ? count : std::nullopt;
}

std::optional<double> parse_rate(std::string_view text) {
  if (text.ends_with("/s")) text.remove_suffix(2);
  struct Unit {
    std::string_view name;
    double bytes;
  };
  // Longer names first: each of them ends like a shorter one.
  constexpr Unit kUnits[] = {{"KiB", 1024.0}, {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"kB", 1e3},
                             {"KB", 1e3},     {"MB", 1e6},        {"GB", 1e9},           {"B", 1.0}};
  double factor = 1;
  for (const Unit& unit : kUnits) {
    if (!text.ends_with(unit.name)) continue;
    factor = unit.bytes;
    text.remove_suffix(unit.name.size());
    break;
  }
  const auto number = parse_number<double>(text);
  if (!number || !(*number > 0) || !std::isfinite(*number)) return std::nullopt;
  return *number * factor;
}

std::optional<FailurePlan> parse_failure(std::string_view text) {
  FailurePlan plan;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    const auto call = call_from_name(text.substr(at + 1));
    if (!call) return std::nullopt;
    plan.call = *call;
    text = text.substr(0, at);
  }
  if (text.ends_with('+')) {
    plan.is_lasting = true;
    text.remove_suffix(1);
  }
  const auto first = parse_count(text);
  if (!first) return std::nullopt;
  plan.first = *first;
  return plan;
}

std::optional<CrashOptions> parse_crash(std::string_view text) {
  CrashOptions options;
  if (const std::size_t at = text.find('@'); at != std::string_view::npos) {
    const auto call = parse_count(text.substr(at + 1));
    if (!call) return std::nullopt;
    options.crash_at_call = *call;
    text = text.substr(0, at);
  }
  const auto seed = parse_number<std::uint64_t>(text);
  if (!seed) return std::nullopt;
  options.seed = *seed;
  return options;
}

}  // namespace

Result<std::unique_ptr<Store>> wrap_store(std::string_view spec, std::unique_ptr<Store> base) {
  using Wrapped = std::unique_ptr<Store>;
  const std::size_t colon = spec.find(':');
  const std::string_view kind = spec.substr(0, colon);
  const std::string_view value = colon == std::string_view::npos ? std::string_view() : spec.substr(colon + 1);
  if (kind == "slow") {
    if (const auto rate = parse_rate(value)) {
      return Wrapped(std::make_unique<SlowStore>(std::move(base), std::make_shared<SlowControl>(*rate)));
    }
  } else if (kind == "hang") {
    if (const auto first = parse_count(value)) {
      return Wrapped(std::make_unique<HangStore>(std::move(base), std::make_shared<HangControl>(*first)));
    }
  } else if (kind == "fail") {
    if (const auto plan = parse_failure(value)) {
      return Wrapped(std::make_unique<FailingStore>(std::move(base), std::make_shared<FailureControl>(*plan)));
    }
  } else if (kind == "short") {
    if (const auto first = parse_count(value)) {
      const FailurePlan plan = {.call = Call::kAppend, .first = *first, .is_short = true};
      return Wrapped(std::make_unique<FailingStore>(std::move(base), std::make_shared<FailureControl>(plan)));
    }
  } else if (kind == "crash") {
    if (const auto options = parse_crash(value)) {
      TORNASOLE_TRY(auto store, CrashStore::open(std::move(base), *options));
      return Wrapped(std::move(store));
    }
  }
  return invalid_error(
      "store fault '{}': allowed are slow:RATE (1000000, 1MB/s), hang:N, fail:N, fail:N+, fail:N@CALL, short:N, "
      "crash:SEED and crash:SEED@N, with N counted from 1",
      spec);
}

}  // namespace tornasole::store
