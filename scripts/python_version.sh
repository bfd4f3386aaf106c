#!/usr/bin/env bash
# python_version.sh VERSION: installs the package into a new environment of that Python as a user would, from the
# source tree, and runs the tests that need no framework. Exits with 3 if there is no such Python on this machine.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
version="${1:?usage: python_version.sh VERSION}"
uv="$("$root/scripts/uv.sh")"
python=
for candidate in "python$version" "$HOME/.pyenv/versions/$version".*/bin/python; do
  if "$candidate" -c '' 2> /dev/null; then python="$candidate"; fi
done
if [[ -z "$python" ]]; then exit 3; fi
directory="$root/.venvs/.python-$version"
"$uv" venv --quiet --no-project --no-config --clear --python "$python" "$directory"
# The compiler is called as everywhere else, which the compiler cache goes by.
CC=cc CXX=c++ "$uv" pip install --quiet --no-config --python "$directory/bin/python" "$root" pytest
cd "$root"
exec "$directory/bin/python" -m pytest -q -p no:cacheprovider tests/python/core tests/python/trials
