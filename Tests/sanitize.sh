#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Runs tests under AddressSanitizer: Tests/sanitize.sh [arguments of swift test]
#
# Without arguments it runs all that start no program of the product: those programs would have to be sanitized too.
# The build is kept in .build/address. ThreadSanitizer would be of no use: it does not know the locks of Swift's
# Synchronization, and reports all that they guard.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if [[ $# -eq 0 ]]; then set -- --skip 'IntegrationTests|TidyTests'; fi

# Whoever awaits something would wait behind all other tests for one of the few threads that tasks share.
export SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH="${SWT_EXPERIMENTAL_MAXIMUM_PARALLELIZATION_WIDTH:-6}"
# The backtracer would outlive a program that the sanitizer ends. Constants whose addresses Swift tags look like leaks.
export SWIFT_BACKTRACE=enable=no ASAN_OPTIONS=detect_leaks=0
exec swift test --sanitize address --scratch-path .build/address --enable-all-traits "$@"
