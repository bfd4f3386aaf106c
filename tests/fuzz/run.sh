#!/bin/sh
# Runs every fuzz_* program of a directory for some seconds each, two at a time, and prints runs and edges.
#   tests/fuzz/run.sh BIN_DIRECTORY [SECONDS [EARLIER PROGRAM...]]
# Inputs that broke something are left in the directory that is named at the end. Exit 1 if there are any. With such a
# directory of an earlier run only the programs named run, and begin with the inputs that broke them.
set -u
if [ $# -lt 1 ] || [ ! -d "$1" ]; then
  echo "usage: $0 BIN_DIRECTORY [SECONDS]" >&2
  exit 2
fi
bin=$(cd "$1" && pwd)
seconds=${2:-30}
earlier=${3:-}
chosen=
if [ -n "$earlier" ]; then
  if [ ! -d "$earlier" ]; then
    echo "$0: no directory $earlier of an earlier run" >&2
    exit 2
  fi
  shift 3
  chosen=" $* "
fi
corpus=$(cd "$(dirname "$0")" && pwd)/corpus
work=$(mktemp -d)

fuzz_one() {
  name=$(basename "$1")
  mkdir -p "$work/$name/corpus" "$work/$name/broken"
  if [ -d "$corpus/$name" ]; then cp -r "$corpus/$name/." "$work/$name/corpus/"; fi
  if [ -n "$earlier" ]; then cp -r "$earlier/$name/broken/." "$work/$name/corpus/"; fi
  "$1" -max_total_time="$seconds" -timeout=5 -rss_limit_mb=512 -malloc_limit_mb=256 -print_final_stats=1 \
    -artifact_prefix="$work/$name/broken/" "$work/$name/corpus" >"$work/$name/log" 2>&1
  echo $? >"$work/$name/status"
}

count=0
for program in "$bin"/fuzz_*; do
  [ -x "$program" ] || continue
  case "$chosen" in
    "" | *" $(basename "$program") "*) ;;
    *) continue ;;
  esac
  fuzz_one "$program" &
  count=$((count + 1))
  if [ $((count % 2)) -eq 0 ]; then wait; fi
done
wait
if [ "$count" -eq 0 ]; then
  echo "no fuzz_* program in $bin; configure with -DTORNASOLE_FUZZ=ON and clang" >&2
  exit 2
fi

failed=0
printf '%-28s %12s %8s  %s\n' target runs edges result
for directory in "$work"/fuzz_*; do
  log=$directory/log
  runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log" | tail -1)
  edges=$(sed -n 's/.* cov: \([0-9]*\).*/\1/p' "$log" | tail -1)
  result=ok
  if [ "$(cat "$directory/status")" -ne 0 ]; then
    result="BROKEN, see $log"
    failed=1
  fi
  printf '%-28s %12s %8s  %s\n' "$(basename "$directory")" "${runs:-?}" "${edges:-?}" "$result"
done
if [ "$failed" -eq 0 ]; then rm -rf "$work"; else echo "inputs and logs: $work"; fi
exit "$failed"
