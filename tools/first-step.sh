#!/bin/bash
# From a bare Debian 12 to a simulated training step and its trace. A second run builds nothing.
set -euo pipefail
called_from=$PWD
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

install_missing "${program_packages[@]}"
if [[ ! -f build/release/build.ninja ]]; then
  cmake --preset release -Dforetrain_TESTS=OFF >/dev/null
fi
cmake --build build/release --target foretrain_cli -j "$(nproc)"

trace=$called_from/step.json.gz
outcome=0
build/release/foretrain run scenarios/llama3-405b-8k.json --trace "$trace" || outcome=$?
# 1 is an answer too (does not fit in memory, deadlock); the report above says which.
if ((outcome <= 1)) && [[ -f $trace ]]; then
  echo
  echo "The step, kernel by kernel: open https://ui.perfetto.dev and drop $trace on it."
  echo "The program: $PWD/build/release/foretrain (foretrain --help)"
fi
exit "$outcome"
