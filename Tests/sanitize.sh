#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests under a sanitizer: Tests/sanitize.sh thread|address [arguments of swift test]
#
# Without arguments it runs all that start no program of the product: those programs would have to be sanitized too.
# The build is kept in .build/SANITIZER.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

case "${1-}" in
  thread | address) sanitizer=$1 ;;
  *) sed -n '4,7s/^# \{0,1\}//p' "${BASH_SOURCE[0]}"; exit 64 ;;
esac
shift
if [[ $# -eq 0 ]]; then set -- --skip 'IntegrationTests|TidyTests'; fi

# Whoever awaits something would wait behind all other tests for one of the few threads that tasks share.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-6}"
# The backtracer would outlive a program that is ended by a sanitizer. Constants whose addresses Swift tags look like leaks.
export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0 TSAN_OPTIONS=halt_on_error=0:exitcode=66
exec swift test --sanitize "$sanitizer" --scratch-path ".build/$sanitizer" "$@"
