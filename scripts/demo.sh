#!/bin/sh
# demo.sh BIN DIR: trains a small network twice, once well and once with a mistake in a parameter, and asks
# the command line about both.
set -eu
bin="$1"
runs="$2"
rm -rf "$runs"

ask() {
  printf '\n$ tornasole %s\n' "$*"
  "$bin/tornasole" "$@"
}

"$bin/tornasole_demo" "$runs/run"
ask ls "$runs/run"
ask show "$runs/run" gradient/fc1.weight

printf '\nThe same network with a momentum of 1.9, where 0.9 was meant:\n'
"$bin/tornasole_demo" "$runs/diverged" "" 1.9 1 > "$runs/diverged.txt"
# It found something, which is what its exit code says: 10.
status=0
ask first-bad "$runs/diverged" || status=$?
test "$status" -eq 10
