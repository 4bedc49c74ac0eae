# SPDX-License-Identifier: Apache-2.0
"""pjrpc with its httpx backend, over the Unix socket."""

import httpx
import pjrpc.client.exceptions
from pjrpc.client.backend.httpx import Client

from contract import (APPLICATION, DRAFT, MISSING, OBJECT, PATH, SERVES, SOCKET, STATE, answer_polled, expect,
                      expect_saved, expect_state, say)

# The time is that of a nextRequest that waits.
with httpx.Client(transport=httpx.HTTPTransport(uds=SOCKET), timeout=30) as http:
    broker = Client("http://restorationd/", http_client=http)
    opened = broker.proxy.initialize(application=APPLICATION, process="pjrpc", serves=SERVES)
    expect("initialize", opened["protocolVersion"], 1)
    session = {"application": APPLICATION, "session": opened["session"]}
    registered = broker.call("registerObjectForStateRestoration", **OBJECT, **session)
    expect("register", registered["path"], PATH)
    broker.notify("encodeRestorableState", object=PATH, state=DRAFT, **session)
    expect_state("notify", broker.call("decodeRestorableState", object=PATH, **session), DRAFT)
    stored = broker.call("encodeRestorableState", object=registered["object"], state=STATE, **session)
    expect("encode", stored["durability"], "disk")
    expect_state("decode", broker.call("decodeRestorableState", object=PATH, **session), STATE)
    with broker.batch() as batch:
        batch.call("decodeRestorableState", object=PATH, **session)
        batch.notify("ping")
        batch.call("describeApplication", application=APPLICATION)
    decoded, described = batch.get_results()
    expect("batch", (decoded["state"], described["application"]), (STATE, APPLICATION))
    try:
        broker.call("decodeRestorableState", object=MISSING, **session)
    except pjrpc.client.exceptions.JsonRpcError as error:
        expect("error -32002 unknownObject", (error.code, error.data["kind"]), (-32002, "unknownObject"))
    say("waiting")
    call = broker.call("nextRequest", waitMilliseconds=20000, **session)
    broker.call("answerRequest", id=call["id"], result=answer_polled(call), **session)
    expect_saved(broker.call("nextRequest", waitMilliseconds=20000, **session))
    expect("goodbye", broker.call("goodbye", reason="restart", **session), {})
