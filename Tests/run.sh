#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs all tests: Tests/run.sh [--long] [arguments of swift test]
#
#   --long   the batteries in their long form: every kill point, hundreds of kills (RESTORATIOND_LONG=1)
#
# Installs the Debian packages that are missing (as root or through sudo), and Python's into .build/venv, and builds
# everything. Memory, time and instructions are those of optimised programs, and the simulation plays six times as many
# histories a second, so these programs are built as they are installed.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

arguments=()
for argument in "$@"; do
  case "$argument" in
    --long) export RESTORATIOND_LONG=1 ;;
    -h | --help) sed -n '4,10s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 0 ;;
    *) arguments+=("$argument") ;;
  esac
done

step() { printf '\n== %s\n' "$*"; }

# What is built needs the first line, tests in general the second, Debian's packages and the site the third, clients and
# examples in other languages the rest.
packages=(
  libjansson-dev libpq-dev libsqlite3-dev libsystemd-dev pkg-config
  binutils dbus-user-session dpkg-dev iproute2 libsodium23 perl postgresql python3 python3-venv socat sqlite3 strace systemd valgrind
  debhelper dh-python lintian mmdebstrap patchelf python3-myst-parser umoci
  chromium curl emacs-nox g++ gcc golang-github-sourcegraph-jsonrpc2-dev golang-go jq libjsonrpc-glib-1.0-dev libjsonrpccpp-dev make
  default-jdk-headless gir1.2-adw-1 gobject-introspection libgirepository1.0-dev libgtk-4-dev neovim netcat-openbsd
  node-typescript nodejs procps python3-gi python3-pyside2.qtcore qt6-base-dev rustc tmux vim-nox xvfb zsh fish
)
# With it comes a program that every manager of a user's services runs at its start.
if [[ ${RESTORATIOND_LONG:-} == 1 ]]; then packages+=(elfutils flatpak-builder); fi
Tests/packages.sh swift "${packages[@]}"
Tests/venv.sh

step "Checking the format"
swift format lint --strict --parallel --recursive Package.swift Sources Tests

step "Building the programs (release)"
programs="$(systemd/build.sh restorationd restorationctl restoration-gateway simulation benchmarks)"
export RESTORATIOND_BINARY="$programs/restorationd" RESTORATIONCTL_BINARY="$programs/restorationctl"
export RESTORATION_GATEWAY_BINARY="$programs/restoration-gateway"
export RESTORATION_SIMULATION_BINARY="$programs/simulation" RESTORATION_BENCHMARKS_BINARY="$programs/benchmarks"

step "Building the tests"
built="$(Tests/build.sh)"
mapfile -t tests <<<"$built"

# What stands for Python in the search path may be a shim, as of pyenv, which takes longer to find it than it takes to
# start; tests start it hundreds of times.
python="$(python3 -c 'import os, sys; print(os.path.dirname(sys.executable))')"
[[ "$python/python3" -ef "$(command -v python3)" ]] || export PATH="$python:$PATH"

# The runner would begin all tests at once: their time limits would count what others take, and whoever awaits something
# would wait behind all of them for one of the few threads that tasks share.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-8}"

step "Testing"
output=.build/test-output.txt
swift test --skip-build "${tests[@]}" "${arguments[@]}" 2>&1 | tee "$output" && exit
status=$?
# Thousands of lines stand between a failure and the end.
step "What failed"
grep --text -A 8 -E '^✘|error:' "$output" | cut -c 1-500 || true
exit "$status"
