#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# nc of OpenBSD: all requests at once, the sending direction closed after them (-N), all answers until the end.
source "$(dirname "${BASH_SOURCE[0]}")/contract.sh"

answers=$(
  {
    request 1 initialize "{\"application\":\"$application\",\"process\":\"nc\"}"
    request 2 registerObjectForStateRestoration '{"restorationIdentifier":"Notes","objectClass":"Notes"}'
    # No line feeds between them, and one request over many lines.
    request - encodeRestorableState "{\"object\":[\"Notes\"],\"state\":$draft}"
    request 3 decodeRestorableState '[["Notes"]]' | jq .
    request 4 encodeRestorableState "{\"object\":[\"Notes\"],\"state\":$state}"
    request 5 decodeRestorableState '{"object":["Notes"]}'
    printf '[%s,%s]' "$(request '"a"' ping '{}')" "$(request '"b"' pong '{}')"
    request 6 decodeRestorableState '{"object":["Missing"]}'
    request 7 goodbye '{"reason":"restart"}'
  } | nc -N -U "$RESTORATIOND_SOCKET"
)

# answer ID: the line that answers the request.
answer() { grep -F "{\"jsonrpc\":\"2.0\",\"id\":$1," <<<"$answers"; }

expect initialize "$(answer 1 | jq .result.protocolVersion)" 1
expect register "$(answer 2 | jq -c .result.path)" '["Notes"]'
expect_state notify "$(answer 3)" "$draft"
expect encode "$(answer 4 | jq -r .result.durability)" disk
expect_state decode "$(answer 5)" "$state"
batch=$(jq -c 'select(type == "array") | sort_by(.id) | map(.id, .result // .error.code)' <<<"$answers")
expect batch "$batch" '["a",{},"b",-32601]'
expect "error -32002 unknownObject" "$(error_of "$(answer 6)")" "-32002 unknownObject"
expect goodbye "$(answer 7 | jq -c .result)" '{}'

# A single call: a state of an unclaimed path, from a process without a session.
request 8 encodeRestorableState "{\"application\":\"$application\",\"object\":[\"Notes\",\"Script\"],\"state\":$state}" |
  nc -N -U "$RESTORATIOND_SOCKET" >/dev/null
script=$(request 9 decodeRestorableState "{\"application\":\"$application\",\"object\":[\"Notes\",\"Script\"]}" |
  nc -N -U "$RESTORATIOND_SOCKET")
expect_state oneShot "$script" "$state"
