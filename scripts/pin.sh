#!/usr/bin/env bash
# pin.sh NAME: writes requirements/NAME.txt, every distribution with version and hashes, from what
# requirements/NAME.in asks for. What NAME.nodeps.in lists is taken alone, without what it depends on.
set -euo pipefail

root="$(cd "$(dirname "$0")/.." && pwd)"
name="${1:?usage: pin.sh NAME}"
uv="$("$root/scripts/uv.sh")"
cd "$root/requirements"
compile() {
  "$uv" pip compile --quiet --no-header --no-annotate --no-emit-index-url --generate-hashes --python-version 3.11 \
    "$@"
}
{
  echo "# Written by scripts/pin.sh $name from $name.in: change that, then run it again."
  compile "$name.in"
  if [[ -f "$name.nodeps.in" ]]; then compile --no-deps "$name.nodeps.in"; fi
} > "$name.txt.new"
mv "$name.txt.new" "$name.txt"
