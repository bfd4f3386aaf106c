#!/usr/bin/env bash
# env.sh NAME: makes the Python environment .venvs/NAME from requirements/NAME.txt and prints the path of its
# interpreter. Does nothing when the environment was made from the same requirements.
#
# requirements/NAME.txt lists every distribution with version and hashes, so nothing is resolved here: what is not in
# the file is not installed.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
known="$(cd "$root/requirements" && ls -- *.txt | sed 's/\.txt$//' | tr '\n' ' ')"
name="${1:-}"
requirements="$root/requirements/$name.txt"
if [[ ! "$name" =~ ^[a-z0-9][a-z0-9_.-]*$ || ! -f "$requirements" ]]; then
  echo "env: no environment is called '$name'; there are: $known" >&2
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

directory="$root/.venvs/$name"
stamp="$directory/.made-from"
python="$(find_python)"
hash="$(cat "$requirements" "$root/scripts/env.sh" | sha256sum | cut -d ' ' -f 1) $python"
if [[ -x "$directory/bin/python" && "$(cat "$stamp" 2> /dev/null)" == "$hash" ]]; then
  echo "$directory/bin/python"
  exit 0
fi

uv="$("$root/scripts/uv.sh")"
# Made under another name: an environment that exists is complete, also when this is interrupted or runs twice.
fresh="$(mktemp -d "$root/.venvs/.$name.XXXXXX" 2> /dev/null || { mkdir -p "$root/.venvs" && mktemp -d "$root/.venvs/.$name.XXXXXX"; })"
trap 'rm -rf "$fresh"' EXIT
"$uv" venv --quiet --no-project --no-config --clear --relocatable --python "$python" "$fresh" >&2
"$uv" pip install --quiet --python "$fresh/bin/python" --no-deps --require-hashes -r "$requirements" >&2
echo "$hash" > "$fresh/.made-from"
rm -rf "$directory"
mv -T "$fresh" "$directory"
echo "$directory/bin/python"
