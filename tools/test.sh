#!/bin/bash
# Builds and runs every test: the release build with g++, a build with clang and sanitizers, and the
# program alone at other levels of both compilers; all of them must print the same bytes. Ends with
# ctest's summary. ctest options may follow, e.g. tools/test.sh -L unit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
source tools/packages.sh

build() {
  cmake --preset "$@" >/dev/null
  cmake --build --preset "$1" -j "$(nproc)"
}

install_missing "${test_packages[@]}"
build gcc-O0
build clang-O2
build asan -Dforetrain_TESTS=ON
build release -Dforetrain_TESTS=ON
exec ctest --test-dir build/release --output-on-failure --no-tests=error -j "$(nproc)" "$@"
