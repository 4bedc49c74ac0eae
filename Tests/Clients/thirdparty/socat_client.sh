#!/usr/bin/env bash
# SPDX-License-Identifier: Apache-2.0
#
# socat as a coprocess: a conversation in a shell script, line by line, both directions.
source "$(dirname "${BASH_SOURCE[0]}")/contract.sh"

coproc broker { exec socat - "UNIX-CONNECT:$RESTORATIOND_SOCKET"; }
answers=${broker[0]} requests=${broker[1]}

# call ID METHOD PARAMS: reads the answer. Not in subshells, which lack the coprocess's descriptors.
call() {
  request "$@" >&"$requests"
  read -r answer <&"$answers"
}

call 1 initialize "{\"application\":\"$application\",\"process\":\"socat\",\"serves\":$serves}"
expect initialize "$(jq .result.protocolVersion <<<"$answer")" 1
call 2 registerObjectForStateRestoration '{"restorationIdentifier":"Notes","objectClass":"Notes"}'
expect register "$(jq -c .result.path <<<"$answer")" '["Notes"]'
object=$(jq .result.object <<<"$answer")
request - encodeRestorableState "{\"object\":[\"Notes\"],\"state\":$draft}" >&"$requests"
call 3 decodeRestorableState '{"object":["Notes"]}'
expect_state notify "$answer" "$draft"
call 4 encodeRestorableState "{\"object\":$object,\"state\":$state}"
expect encode "$(jq -r .result.durability <<<"$answer")" disk
call 5 decodeRestorableState '{"object":["Notes"]}'
expect_state decode "$answer" "$state"
call 6 decodeRestorableState '{"object":["Missing"]}'
expect "error -32002 unknownObject" "$(error_of "$answer")" "-32002 unknownObject"

echo waiting
read -r question <&"$answers"
expect_call "$question"
printf '{"jsonrpc":"2.0","id":%s,"result":{"states":[{"object":%s,"state":%s}]}}\n' \
  "$(jq .id <<<"$question")" "$object" "$asked" >&"$requests"
read -r notice <&"$answers"
expect_saved "$notice"
call 7 goodbye '{"reason":"restart"}'
expect goodbye "$(jq -c .result <<<"$answer")" '{}'
