#!/bin/bash
# Builds and runs every test: the release build with g++, and a build with clang and sanitizers
# whose program must print the same bytes. Ends with ctest's summary. ctest options may follow,
# e.g. tools/test.sh -L unit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

install_missing "${test_packages[@]}"
for preset in asan release; do
  cmake --preset "$preset" -Dforetrain_TESTS=ON >/dev/null
  cmake --build --preset "$preset" -j "$(nproc)"
done
exec ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" "$@"
