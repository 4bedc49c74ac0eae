# SPDX-License-Identifier: Apache-2.0
"""jsonrpcclient makes and reads the messages; httpx posts them over the Unix socket."""

import httpx
from jsonrpcclient import Error, Ok, notification, parse, request

from contract import (APPLICATION, DRAFT, MISSING, OBJECT, PATH, SERVES, SOCKET, STATE, answer_polled, expect,
                      expect_saved, expect_state, say)

# The time is that of a nextRequest that waits.
with httpx.Client(transport=httpx.HTTPTransport(uds=SOCKET), base_url="http://restorationd", timeout=30) as http:

    def call(method, **params):
        return parse(http.post("/", json=request(method, params)).raise_for_status().json())

    opened = call("initialize", application=APPLICATION, process="jsonrpcclient", serves=SERVES)
    expect("initialize", (type(opened), opened.result["protocolVersion"]), (Ok, 1))
    session = {"application": APPLICATION, "session": opened.result["session"]}
    registered = call("registerObjectForStateRestoration", **OBJECT, **session)
    expect("register", registered.result["path"], PATH)
    push = notification("encodeRestorableState", {"object": PATH, "state": DRAFT, **session})
    assert http.post("/", json=push).status_code == 204
    expect_state("notify", call("decodeRestorableState", object=PATH, **session).result, DRAFT)
    stored = call("encodeRestorableState", object=registered.result["object"], state=STATE, **session)
    expect("encode", stored.result["durability"], "disk")
    expect_state("decode", call("decodeRestorableState", object=PATH, **session).result, STATE)
    batch = [
        request("decodeRestorableState", {"object": PATH, **session}, id="found"),
        request("decodeRestorableState", {"object": MISSING, **session}, id="missing"),
    ]
    answers = {answer.id: answer for answer in parse(http.post("/", json=batch).json())}
    expect("batch", (answers["found"].result["state"], answers["missing"].code), (STATE, -32002))
    failed = call("decodeRestorableState", object=MISSING, **session)
    expect(
        "error -32002 unknownObject", (type(failed), failed.code, failed.data["kind"]), (Error, -32002, "unknownObject")
    )
    say("waiting")
    polled = call("nextRequest", waitMilliseconds=20000, **session).result
    call("answerRequest", id=polled["id"], result=answer_polled(polled), **session)
    expect_saved(call("nextRequest", waitMilliseconds=20000, **session).result)
    expect("goodbye", call("goodbye", reason="restart", **session).result, {})
