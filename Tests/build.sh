#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Builds the tests as Tests/run.sh runs them, and prints the options of swift test that run them, one a line. With other
# options SwiftPM would make another plan, and build everything again the next time.
#
# They are optimised: that takes ten minutes more when everything is built, and a third off each run. They have the
# checks of a debug build, and what only optional traits of the package add. `swift build --build-tests` builds faster,
# and for a debugger; it stays apart, because neither could use what the other has compiled.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

options=(--scratch-path "$PWD/.build/tests" --enable-all-traits -Xswiftc -O -Xswiftc -assert-config -Xswiftc Debug)
swift build --build-tests "${options[@]}" >&2
printf '%s\n' "${options[@]}"
