# Sourced by the scripts beside it: what foretrain needs from Debian 12, and how to get what is
# missing. "a|b": either will do; a is what gets installed.

program_packages=(g++ cmake make ninja-build "libboost-dev|libboost-graph-dev" nlohmann-json3-dev
  libspdlog-dev libcli11-dev libexpected-dev libexpat1-dev zlib1g-dev)
test_packages=("${program_packages[@]}" libgtest-dev librapidcheck-dev
  clang-14 clang-format-14 libclang-rt-14-dev)

package_is_here() {
  [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$1" 2>/dev/null) == installed ]]
}

# install_missing PACKAGE...: calls apt only when something is missing.
install_missing() {
  local wanted alternative missing=()
  if ! command -v dpkg-query >/dev/null; then
    echo "This is not Debian; these Debian packages or their like are needed: $*" >&2
    return 0
  fi
  for wanted in "$@"; do
    for alternative in ${wanted//|/ }; do
      package_is_here "$alternative" && continue 2
    done
    missing+=("${wanted%%|*}")
  done
  ((${#missing[@]})) || return 0

  local as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      echo "Please install, as root: apt-get install ${missing[*]}" >&2
      return 1
    fi
    as_root=(sudo)
  fi
  echo "Installing ${missing[*]}"
  local apt=("${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get -q)
  local options=(install -y --no-install-recommends "${missing[@]}")
  # Package lists may be absent or stale: refresh them only if the first try fails.
  "${apt[@]}" "${options[@]}" </dev/null >/dev/null 2>&1 && return 0
  "${apt[@]}" update </dev/null >/dev/null && "${apt[@]}" "${options[@]}" </dev/null >/dev/null
}
