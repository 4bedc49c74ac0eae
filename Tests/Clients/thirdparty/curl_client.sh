#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# curl: HTTP over the Unix socket, each call on a connection of its own.
source "$(dirname "${BASH_SOURCE[0]}")/contract.sh"

post() { curl --silent --show-error --fail --unix-socket "$RESTORATIOND_SOCKET" --data-binary @- "$@" http://localhost/; }

answer=$(request 1 initialize "{\"application\":\"$application\",\"process\":\"curl\",\"serves\":$serves}" | post)
expect initialize "$(jq .result.protocolVersion <<<"$answer")" 1
session="\"application\":\"$application\",\"session\":$(jq .result.session <<<"$answer")"

answer=$(request 2 registerObjectForStateRestoration \
  "{\"restorationIdentifier\":\"Notes\",\"objectClass\":\"Notes\",$session}" | post)
expect register "$(jq -c .result.path <<<"$answer")" '["Notes"]'
object=$(jq .result.object <<<"$answer")

status=$(request - encodeRestorableState "{\"object\":[\"Notes\"],\"state\":$draft,$session}" |
  post --write-out '%{http_code}')
[[ $status == 204 ]] || expect notify "$status" 204
expect_state notify "$(request 3 decodeRestorableState "{\"object\":[\"Notes\"],$session}" | post)" "$draft"

answer=$(request 4 encodeRestorableState "{\"object\":$object,\"state\":$state,$session}" |
  post --header 'Content-Type: application/json')
expect encode "$(jq -r .result.durability <<<"$answer")" disk
expect_state decode "$(request 5 decodeRestorableState "{\"object\":[\"Notes\"],$session}" | post)" "$state"

answer=$(printf '[%s,%s]' "$(request '"a"' ping '{}')" "$(request '"b"' pong '{}')" | post)
expect batch "$(jq -c 'sort_by(.id) | map(.id, .result // .error.code)' <<<"$answer")" '["a",{},"b",-32601]'

answer=$(request 6 decodeRestorableState "{\"object\":[\"Missing\"],$session}" | post)
expect "error -32002 unknownObject" "$(error_of "$answer")" "-32002 unknownObject"

echo waiting
poll="{\"waitMilliseconds\":20000,$session}"
call=$(request 7 nextRequest "$poll" | post | jq -c .result)
expect_call "$call"
states="{\"states\":[{\"object\":$object,\"state\":$asked}]}"
request 8 answerRequest "{\"id\":$(jq .id <<<"$call"),\"result\":$states,$session}" | post >/dev/null
expect_saved "$(request 9 nextRequest "$poll" | post | jq -c .result)"

expect goodbye "$(request 10 goodbye "{\"reason\":\"restart\",$session}" | post | jq -c .result)" '{}'
