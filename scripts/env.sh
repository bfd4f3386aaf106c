#!/usr/bin/env bash
# env.sh NAME: makes the Python environment .venvs/NAME from requirements/NAME.txt and prints the path of its
# interpreter. Does nothing when the environment was made from the same requirements.
#
# requirements/NAME.txt lists every distribution with version and hashes, so nothing is resolved here: what is not in
# the file is not installed. requirements/NAME.own, if there is one, names the project's own distributions that belong
# into it; they are installed again when their sources changed.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
known="$(cd "$root/requirements" && ls -- *.txt | sed 's/\.txt$//' | tr '\n' ' ')"
name="${1:-}"
# The one that is no Python: a server.
if [[ "$name" == s3 ]]; then exec "$root/scripts/s3_server.sh"; fi
requirements="$root/requirements/$name.txt"
if [[ ! "$name" =~ ^[a-z0-9][a-z0-9_.-]*$ || ! -f "$requirements" ]]; then
  echo "env: no environment is called '$name'; there are: ${known}s3" >&2
  exit 2
fi

# smdebug and its peers do not run on anything newer.
find_python() {
  local candidate
  for candidate in /usr/bin/python3.11 python3.11 python3; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2> /dev/null; then
      command -v "$candidate"
      return
    fi
  done
  echo "env: Python 3.11 is needed; tried /usr/bin/python3.11, python3.11 and python3" >&2
  return 1
}

# Who comes second waits, and finds it made.
mkdir -p "$root/.venvs"
exec {lock}> "$root/.venvs/.$name.lock"
flock "$lock"

directory="$root/.venvs/$name"
own="$root/requirements/$name.own"

# Of each distribution that $own names, the wheel.
own_wheels() {
  local distribution wheels
  wheels="$("$root/scripts/wheels.sh")"
  grep -v '^#' "$own" | while read -r distribution; do
    grep "/${distribution//-/_}-[0-9][^/]*\.whl$" <<< "$wheels"
  done
}

# Installs them, unless the same ones are there, and prints the path of the interpreter.
finish() {
  if [[ -f "$own" ]]; then
    local wheels state
    wheels="$(own_wheels)"
    state="$(xargs -d '\n' sha256sum <<< "$wheels")"
    if [[ "$(cat "$directory/.own-made-from" 2> /dev/null)" != "$state" ]]; then
      xargs -d '\n' "$("$root/scripts/uv.sh")" pip install --quiet --python "$directory/bin/python" --no-deps \
        --reinstall <<< "$wheels" >&2
      echo "$state" > "$directory/.own-made-from"
    fi
  fi
  echo "$directory/bin/python"
}
stamp="$directory/.made-from"
python="$(find_python)"
hash="$(cat "$requirements" "$root/scripts/env.sh" | sha256sum | cut -d ' ' -f 1) $python"
if [[ -x "$directory/bin/python" && "$(cat "$stamp" 2> /dev/null)" == "$hash" ]]; then
  finish
  exit 0
fi

uv="$("$root/scripts/uv.sh")"
# Made under another name: an environment that exists is complete, also when this is interrupted.
fresh="$(mktemp -d "$root/.venvs/.$name.XXXXXX")"
trap 'rm -rf "$fresh"' EXIT
"$uv" venv --quiet --no-project --no-config --clear --relocatable --python "$python" "$fresh" >&2
"$uv" pip install --quiet --python "$fresh/bin/python" --no-deps --require-hashes -r "$requirements" >&2
echo "$hash" > "$fresh/.made-from"
rm -rf "$directory"
mv -T "$fresh" "$directory"
finish
