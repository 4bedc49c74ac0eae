#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Installs Debian packages that are missing: Tests/packages.sh PACKAGE…
# Debian does not have `swift`: whether it is there is only checked. What it needs of Debian is installed.
set -euo pipefail

packages=() missing=()
for package in "$@"; do
  if [[ $package != swift ]]; then packages+=("$package"); continue; fi
  if ! command -v swift >/dev/null; then
    printf 'Swift is not installed. Get Swift 6.3 for Debian 12 from https://www.swift.org/install/linux/\n' >&2
    exit 1
  fi
  # It links with what comes with g++, and fetches packages with git. In a bare system its own programs do not start.
  packages+=(ca-certificates g++ git)
  swift --version >/dev/null 2>&1 || packages+=(libcurl4 libncurses6 libxml2)
done
for package in "${packages[@]}"; do
  case "$(dpkg-query -W -f '${db:Status-Status}' "$package" 2>/dev/null || true)" in
    installed) ;;
    *) missing+=("$package") ;;
  esac
done

# A program that is there, from wherever, need not be Debian's.
is_there() {
  case "$1" in
    ca-certificates) [[ -e /etc/ssl/certs/ca-certificates.crt ]] ;;
    emacs-nox) emacs -Q --batch --eval '(progn (require (quote jsonrpc)) (json-serialize nil))' ;;
    golang-go) command -v go ;;
    node-typescript) command -v tsc ;;
    netcat-openbsd) command -v nc.openbsd ;;
    nodejs) command -v node ;;
    python3-venv) python3 -c 'import ensurepip, venv' ;;
    vim-nox) [[ $(vim --version) == *+channel* ]] ;;
    curl | fish | g++ | git | jq | make | perl | pkg-config | python3 | socat | sqlite3 | strace | valgrind | zsh)
      command -v "$1"
      ;;
    *) false ;;
  esac >/dev/null 2>&1
}

still_missing=()
for package in "${missing[@]}"; do
  is_there "$package" || still_missing+=("$package")
done

if ((${#still_missing[@]})); then
  printf '== Installing %s\n' "${still_missing[*]}"
  as_root=(env)
  if ((EUID != 0)); then
    if ! command -v sudo >/dev/null; then
      printf 'These packages are missing and only root can install them: %s\n' "${still_missing[*]}" >&2
      printf 'Run as root: apt-get install %s\n' "${still_missing[*]}" >&2
      exit 1
    fi
    as_root=(sudo env)
  fi
  as_root+=(DEBIAN_FRONTEND=noninteractive)
  # Another installation may be under way, as after the start of a fresh machine.
  apt_get=("${as_root[@]}" apt-get -qq -o DPkg::Lock::Timeout=300)
  install=("${apt_get[@]}" install -y --no-install-recommends "${still_missing[@]}")
  # Package lists may be missing or too old.
  "${install[@]}" >/dev/null 2>&1 || { "${apt_get[@]}" update && "${install[@]}" >/dev/null; } || {
    printf 'apt-get could not install %s; install them by hand and run this again.\n' "${still_missing[*]}" >&2
    exit 1
  }
fi
