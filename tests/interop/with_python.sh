#!/bin/sh
# with_python.sh PYTHON SCRIPT ARGUMENT...: runs the script with that Python. If there is none the test is skipped (77),
# or fails where CI=true, since there it must not be skipped.
python="$1"
shift
if [ ! -x "$python" ]; then
  echo "interop_test: skipped: there is no $python; make env NAME=smdebug makes it" >&2
  if [ "$CI" = true ]; then exit 1; fi
  exit 77
fi
exec "$python" "$@"
