#!/usr/bin/env bash
# wheels.sh: builds the project's own Python distributions for Python 3.11 into build/wheels and prints their paths, one
# a line. Does nothing when none of their sources changed.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
wheels="$root/build/wheels"
cd "$root"
mkdir -p "$root/build"
exec {lock}> "$root/build/.wheels.lock"
flock "$lock"
hash="$(find CMakeLists.txt pyproject.toml README.md LICENSE cmake include src python scripts/wheels.sh \
  -type f ! -path '*/__pycache__/*' ! -path '*/build/*' ! -path '*.egg-info/*' -print0 | sort -z | xargs -0 sha256sum | sha256sum | cut -d ' ' -f 1)"
if [[ "$(cat "$wheels/.made-from" 2> /dev/null)" != "$hash" ]]; then
  python="$("$root/scripts/env.sh" python-build)"
  uv="$("$root/scripts/uv.sh")"
  rm -rf "$wheels"
  mkdir -p "$wheels"
  # The build directory stays, so that the next wheel compiles what changed; the compiler is called as everywhere else,
  # which the compiler cache goes by.
  export CC=cc CXX=c++
  "$uv" build --quiet --wheel --no-build-isolation --no-config --python "$python" --out-dir "$wheels" "$root" >&2
  if [[ -f "$root/python/smdebug_dropin/pyproject.toml" ]]; then
    "$uv" build --quiet --wheel --no-build-isolation --no-config --python "$python" --out-dir "$wheels" \
      "$root/python/smdebug_dropin" >&2
  fi
  echo "$hash" > "$wheels/.made-from"
fi
ls "$wheels"/*.whl
