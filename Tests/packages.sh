#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs Debian packages that are missing: Tests/packages.sh PACKAGE…
# Checks for Swift as well, which Debian does not have.
set -euo pipefail

missing=()
for package in "$@"; do
  case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
    installed) ;;
    *) missing+=("$package") ;;
  esac
done

# A program that is there, from wherever, need not be Debian's.
still_missing=()
for package in "${missing[@]}"; do
  case "$package" in
    pkg-config | python3 | strace | sqlite3 | socat | gcc) command -v "$package" >/dev/null || still_missing+=("$package") ;;
    *) still_missing+=("$package") ;;
  esac
done

if ((${#still_missing[@]})); then
  printf '== Installing %s\n' "${still_missing[*]}"
  as_root=()
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      printf 'These packages are missing and only root can install them: %s\n' "${still_missing[*]}" >&2
      printf 'Run as root: apt-get install %s\n' "${still_missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo)
  fi
  export DEBIAN_FRONTEND=noninteractive
  install=("${as_root[@]}" apt-get install -y --no-install-recommends -qq "${still_missing[@]}")
  # Package lists may be missing or too old.
  "${install[@]}" >/dev/null 2>&1 || { "${as_root[@]}" apt-get update -qq && "${install[@]}" >/dev/null; } || {
    printf 'apt-get could not install %s; install them by hand and run this again.\n' "${still_missing[*]}" >&2
    exit 1
  }
fi

if ! command -v swift >/dev/null; then
  printf 'Swift is not installed. Get Swift 6.3 for Debian 12 from https://www.swift.org/install/linux/\n' >&2
  exit 1
fi
