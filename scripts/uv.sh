#!/usr/bin/env bash
# Prints the path of uv, the installer of the Python environments. It is the one on the PATH, else one of a pinned
# version in .venvs/.uv, made there at the first call.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
version="0.13.7"

if found="$(command -v uv)" && "$found" --version > /dev/null 2>&1; then
  echo "$found"
  exit 0
fi
own="$root/.venvs/.uv"
mkdir -p "$root/.venvs"
exec {lock}> "$own.lock"
flock "$lock"
if [[ "$("$own/bin/uv" --version 2> /dev/null)" != "uv $version"* ]]; then
  echo "uv: installing uv $version into .venvs/.uv" >&2
  rm -rf "$own"
  python3 -m venv "$own" >&2
  "$own/bin/python" -m pip install --quiet --disable-pip-version-check "uv==$version" >&2
fi
echo "$own/bin/uv"
