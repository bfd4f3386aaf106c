#!/usr/bin/env bash
# demo_torch.sh BUILD WORK: a network in PyTorch and its port to libtorch, both captured, then compared.
set -euo pipefail

build="$(cd "$1" && pwd)"
work="$2"
root="$(cd "$(dirname "$0")/.." && pwd)"
rm -rf "$work"
mkdir -p "$work"
cd "$work"

show() {
  echo
  echo "\$ $*"
}
export TORNASOLE_CLOSE_WAIT_S=60 SMDEBUG_LOG_LEVEL=warning
tornasole="$PWD/installed/bin/tornasole"
cmake --install "$build" --prefix "$PWD/installed" > /dev/null
echo "compiling two programs with libtorch; that takes a minute or two"
cmake -S "$root/tests/adapters/programs" -B programs -G Ninja -DCMAKE_PREFIX_PATH="$PWD/installed" -DWANTED=libtorch \
  -DCMAKE_BUILD_TYPE=Release -DTORNASOLE_LIBTORCH_DIR="$(echo "$root"/.venvs/torch/lib/python*/site-packages/torch)" \
  > /dev/null
cmake --build programs --target libtorch_cnn libtorch_port > /dev/null

show "python torch_original.py runs/original weights.bin          # the original, in PyTorch"
"$root/.venvs/torch/bin/python" "$root/examples/python/torch_original.py" runs/original weights.bin
show "libtorch_port runs/port weights.bin                         # its port to C++, with a mistake"
programs/libtorch_port runs/port weights.bin
show "tornasole diff runs/original runs/port --abs 1e-5           # where do they part?"
"$tornasole" diff runs/original runs/port --abs 1e-5 || [[ $? == 1 ]]
show "libtorch_port runs/fixed weights.bin fixed; tornasole diff runs/original runs/fixed --abs 1e-5"
programs/libtorch_port runs/fixed weights.bin fixed
"$tornasole" diff runs/original runs/fixed --abs 1e-5
show "libtorch_cnn runs/cnn; tornasole stats runs/cnn gradient    # statistics of gradients, from C++"
programs/libtorch_cnn runs/cnn
"$tornasole" stats runs/cnn gradient
