#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# Makes .build/venv with the packages of Tests/requirements.txt, unless it is there already.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

venv=.build/venv
# A new version of Python leaves the old one's packages behind, pip among them.
if cmp --quiet Tests/requirements.txt "$venv/requirements.txt" && "$venv/bin/python" -c 'import pip' 2>/dev/null; then
  exit 0
fi

printf '== Installing the Python packages of Tests/requirements.txt\n'
python3 -m venv --clear "$venv"
"$venv/bin/python" -m pip install --quiet --disable-pip-version-check --requirement Tests/requirements.txt
cp Tests/requirements.txt "$venv/requirements.txt"
