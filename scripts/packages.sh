#!/usr/bin/env bash
# packages.sh [LIST]: installs the Debian packages of packages.txt, or of packages-LIST.txt, that are missing; when none
# is, asks dpkg once and ends.
set -euo pipefail

list="$(dirname "$0")/packages${1:+-$1}.txt"
[[ -f "$list" ]] || { echo "packages: there is no list $list" >&2; exit 2; }
mapfile -t wanted < <(sed -e 's/#.*//' -e 's/[[:space:]]//g' -e '/^$/d' "$list")

if ! command -v dpkg-query > /dev/null; then
  echo "packages: this is not Debian; the names in scripts/$(basename "$list") are what has to be there" >&2
  exit 0
fi

# The architecture is part of what dpkg prints for some packages, so names are asked for without it.
installed="$(dpkg-query -W -f '${db:Status-Abbrev} ${Package}\n' "${wanted[@]}" 2> /dev/null || true)"
missing=()
for package in "${wanted[@]}"; do
  grep -qx "ii  $package" <<< "$installed" || missing+=("$package")
done
((${#missing[@]})) || exit 0

echo "packages: missing: ${missing[*]}"
as_root=()
if [[ $(id -u) != 0 ]]; then
  if command -v sudo > /dev/null && sudo -n true 2> /dev/null; then
    as_root=(sudo -n)
  else
    echo "packages: root is needed; run this, then make again:" >&2
    echo "  sudo apt-get update && sudo apt-get install -y --no-install-recommends ${missing[*]}" >&2
    exit 1
  fi
fi
echo "packages: apt-get update, then apt-get install"
"${as_root[@]}" apt-get update -q
"${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -q -y --no-install-recommends "${missing[@]}"
