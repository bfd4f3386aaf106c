#!/usr/bin/env bash
# format.sh [--check]: lays out every C and C++ file of the project; with --check, names those that are not.
set -euo pipefail

cd "$(dirname "$0")/.."
folders=()
for folder in adapters bench examples include python src tests; do
  if [[ -d "$folder" ]]; then folders+=("$folder"); fi
done
mode=(-i)
if [[ "${1:-}" == --check ]]; then mode=(--dry-run -Werror); fi
# What others wrote keeps its own layout.
find "${folders[@]}" -type d -name third_party -prune -o \
  -type f \( -name '*.cc' -o -name '*.h' -o -name '*.c' \) -print0 |
  xargs -0 -r -n 20 -P "$(nproc)" clang-format-19 "${mode[@]}"
