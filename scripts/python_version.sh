#!/usr/bin/env bash
# python_version.sh VERSION [REPORT]: installs the package into a new environment of that Python as a user would, from
# the source tree, and runs the tests that need no framework; what each of them came to goes to REPORT, as JUnit XML.
# Exits with 77 if there is no such Python on this machine.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
version="${1:?usage: python_version.sh VERSION [REPORT]}"
report="${2:-}"
uv="$("$root/scripts/uv.sh")"
python=
for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
  if "$candidate" -c '' 2> /dev/null; then python="$candidate"; fi
done
if [[ -z "$python" ]]; then exit 77; fi
directory="$root/.venvs/.python-$version"
"$uv" venv --quiet --no-project --no-config --clear --python "$python" "$directory"
# The compiler is called as everywhere else, which the compiler cache goes by.
CC=cc CXX=c++ "$uv" pip install --quiet --no-config --python "$directory/bin/python" "$root" pytest \
  ml_dtypes pandas matplotlib
cd "$root"
exec "$directory/bin/python" -m pytest -q -rs -p no:cacheprovider ${report:+"--junitxml=$report"} tests/python/core tests/python/trials tests/python/rules
