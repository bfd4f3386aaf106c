#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "bindings/arrays.h"
#include "bindings/bindings.h"
#include "bindings/python_errors.h"
#include "tornasole/stats.h"

namespace tornasole::python {
namespace {

namespace nb = nanobind;

// Counts and positions are whole numbers.
bool is_count(Stat stat) noexcept { return stat == Stat::kCount || (stat >= Stat::kZeros && stat <= Stat::kAtMax); }

StatSet parse_names(nb::handle names) {
  if (names.is_none()) return StatSet::all();
  std::vector<std::string> given;
  if (nb::isinstance<nb::str>(names) || !nb::try_cast(names, given)) {
    const auto text = nb::cast<std::string>(nb::repr(names));
    raise({ErrorCode::kInvalid, "names: " + text + " is not allowed; allowed: a list of names", ErrorKind::kType});
  }
  StatSet wanted;
  for (const std::string& name : given) {
    const std::optional<Stat> stat = parse_stat(name);
    if (!stat) {
      std::string known;
      for (std::size_t i = 0; i < kStatCount; ++i) {
        known += (i == 0 ? "" : ", ") + std::string(stat_name(static_cast<Stat>(i)));
      }
      raise({ErrorCode::kInvalid, "no statistic is called '" + name + "'; there are " + known, ErrorKind::kValue});
    }
    wanted.add(*stat);
  }
  return wanted;
}

nb::dict stats_of(nb::handle array, nb::handle names) {
  const StatSet wanted = parse_names(names);
  const BorrowedArray borrowed(array);
  std::optional<Result<Stats>> computed;
  {
    const nb::gil_scoped_release unlocked;
    computed = stats(borrowed.view(), wanted);
  }
  const Stats result = value_of(std::move(*computed));
  nb::dict out;
  for (std::size_t i = 0; i < kStatCount; ++i) {
    const auto stat = static_cast<Stat>(i);
    const std::optional<double> value = result[stat];
    if (!value) continue;
    const std::string name(stat_name(stat));
    if (is_count(stat)) {
      out[name.c_str()] = static_cast<std::int64_t>(*value);
    } else {
      out[name.c_str()] = *value;
    }
  }
  return out;
}

}  // namespace

void bind_stats(nb::module_& module) {
  module.def(
      "stats", &stats_of, nb::arg("array").none(), nb::arg("names") = nb::none(),
      nb::sig("def stats(array: object, names: collections.abc.Sequence[str] | None = None) -> dict[str, float]"),
      "Statistics of an array in one read, as a dict; `names` chooses, None is all of them.");
}

}  // namespace tornasole::python
