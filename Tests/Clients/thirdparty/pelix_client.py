# SPDX-License-Identifier: Apache-2.0
"""jsonrpclib-pelix: a proxy object over HTTP on a Unix socket (unix+http)."""

import jsonrpclib

from contract import (APPLICATION, DRAFT, MISSING, OBJECT, PATH, SERVES, SOCKET, STATE, answer_polled, expect,
                      expect_saved, expect_state, say)

broker = jsonrpclib.ServerProxy(f"unix+http://{SOCKET}")
opened = broker.initialize(application=APPLICATION, process="jsonrpclib-pelix", serves=SERVES)
expect("initialize", opened["protocolVersion"], 1)
session = {"application": APPLICATION, "session": opened["session"]}
registered = broker.registerObjectForStateRestoration(**OBJECT, **session)
expect("register", registered["path"], PATH)
try:
    broker._notify.encodeRestorableState(object=PATH, state=DRAFT, **session)
except jsonrpclib.jsonrpc.TransportError as error:
    # The broker answers 204, which the library takes for a failure, and then it connects again. The
    # notification took effect.
    assert error.errcode == 204, error
    broker("close")()
expect_state("notify", broker.decodeRestorableState(object=PATH, **session), DRAFT)
stored = broker.encodeRestorableState(object=registered["object"], state=STATE, **session)
expect("encode", stored["durability"], "disk")
expect_state("decode", broker.decodeRestorableState(object=PATH, **session), STATE)
batch = jsonrpclib.MultiCall(broker)
batch.decodeRestorableState(object=PATH, **session)
batch.ping()
decoded, pong = batch()
expect("batch", (decoded["state"], pong), (STATE, {}))
try:
    broker.decodeRestorableState(object=MISSING, **session)
except jsonrpclib.ProtocolError as error:
    # The library drops the data of errors in JSON-RPC's own range.
    expect("error -32002", error.args[0][0], -32002)
say("waiting")
call = broker.nextRequest(waitMilliseconds=20000, **session)
broker.answerRequest(id=call["id"], result=answer_polled(call), **session)
expect_saved(broker.nextRequest(waitMilliseconds=20000, **session))
expect("goodbye", broker.goodbye(reason="restart", **session), {})
broker("close")()
