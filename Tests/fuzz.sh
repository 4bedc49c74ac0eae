#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Searches for inputs that make a part of the product trap, hang or contradict itself: Tests/fuzz.sh TARGET [OPTION...]
#
# The options are those of libFuzzer, such as -runs=10000000 or -max_total_time=3600. What reached new code is kept in
# .build/fuzz/corpus/TARGET, and a failing input in .build/fuzz/TARGET-*, from which it is tried again by
# `Tests/fuzz.sh TARGET FILE`. Without a target it lists them.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

scratch=.build/fuzz
# Coverage guides the search, and AddressSanitizer notices what C code does. Optimised, ten times as many are tried.
options=(
  -c release --product fuzz --scratch-path "$scratch" -Xswiftc -sanitize=fuzzer,address -Xswiftc -DFUZZING
)
swift build "${options[@]}"
program=$(swift build "${options[@]}" --show-bin-path)/fuzz
if [[ $# -eq 0 ]]; then exec "$program" --help; fi
target=$1
shift

corpus=$scratch/corpus/$target
mkdir -p "$corpus"
"$program" "$target" --write-seeds "$corpus"
for argument in "$@"; do
  # A file is only tried.
  if [[ -f $argument ]]; then corpus=; fi
done
# The backtracer would outlive a program that is ended by a sanitizer. Leaks are not looked for: constants whose
# addresses Swift tags look like some, and what a broker in memory still waited for at its end is never released.
export SWIFT_BACKTRACE=enable=no SWIFT_DETERMINISTIC_HASHING=1 ASAN_OPTIONS=detect_leaks=0
exec "$program" "$target" -artifact_prefix="$scratch/$target-" -timeout=20 -rss_limit_mb=4096 -detect_leaks=0 \
  -max_len=4096 "$@" ${corpus:+"$corpus"}
