# SPDX-License-Identifier: Apache-2.0
#
# Shared by the shell programs of this directory: the states, and the reports. See README.md.
# States are compared as text: they are returned as they were sent.
set -euo pipefail

application=$RESTORATION_APPLICATION
draft='{"draft":true}'
rest='"nested":{"list":[1,[true,null],{"a":{"b":[]}}],"":{}},"ratio":0.1,"big":9007199254740993,"huge":12345678901234567890123'
state='{"text":"Grüße, 世界 🗒 \"\\\u2028",'"$rest}"
asked="${state%\}},\"asked\":true}"

# request ID METHOD PARAMS: the text of a request; without an id (-) that of a notification.
request() {
  local id=
  [[ $1 == - ]] || id="\"id\":$1,"
  printf '{"jsonrpc":"2.0",%s"method":"%s","params":%s}' "$id" "$2" "$3"
}

# expect STEP ACTUAL EXPECTED: reports a step, or ends the program if the value is not the expected one.
expect() {
  if [[ $2 != "$3" ]]; then
    printf 'not ok %s: %s instead of %s\n' "$1" "$2" "$3"
    exit 1
  fi
  printf 'ok %s\n' "$1"
}

# expect_state STEP ANSWER STATE: the answer to decodeRestorableState has this state, byte for byte.
expect_state() {
  local prefix='*"result":{"status":"available","state":'
  # shellcheck disable=SC2053
  [[ $2 == $prefix"$3",* ]] || expect "$1" "$2" "the state $3"
  printf 'ok %s\n' "$1"
}

# A client that is called, or fetches its calls, serves these.
serves='["encodeRestorableStateWithCoder","applicationStateSaved"]'

# Method and path of a call to encode, method and generation of a notification.
expect_call() { expect encodeRequest "$(jq -c '[.method, .params.objects[0].path]' <<<"$1")" \
  '["encodeRestorableStateWithCoder",["Notes"]]'; }
expect_saved() { expect saved "$(jq -c '[.method, .params]' <<<"$1")" '["applicationStateSaved",{"generation":1}]'; }

# Code and kind of an error.
error_of() { jq -r '.error | "\(.code) \(.data.kind)"' <<<"$1"; }
