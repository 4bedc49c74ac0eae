# SPDX-License-Identifier: Apache-2.0
"""python-lsp-jsonrpc: Content-Length frames and threads, both directions."""

import socket
import threading

from pylsp_jsonrpc.endpoint import Endpoint
from pylsp_jsonrpc.exceptions import JsonRpcException
from pylsp_jsonrpc.streams import JsonRpcStreamReader, JsonRpcStreamWriter

from contract import (APPLICATION, ASKED, DRAFT, MISSING, OBJECT, PATH, SERVES, SOCKET, STATE, expect, expect_state,
                      say)

saved = threading.Event()


def encode(params):
    objects = params["objects"]
    expect("encodeRequest", (params["round"] > 0, [entry["path"] for entry in objects]), (True, [PATH]))
    return {"states": [{"object": entry["object"], "state": ASKED} for entry in objects]}


def note_save(params):
    expect("saved", params["generation"], 1)
    saved.set()


connection = socket.socket(socket.AF_UNIX)
connection.connect(SOCKET)
writer = JsonRpcStreamWriter(connection.makefile("wb"))
reader = JsonRpcStreamReader(connection.makefile("rb"))
endpoint = Endpoint({"encodeRestorableStateWithCoder": encode, "applicationStateSaved": note_save}, writer.write)
threading.Thread(target=reader.listen, args=(endpoint.consume,), daemon=True).start()


def call(method, params):
    return endpoint.request(method, params).result(timeout=20)


opened = call("initialize", {"application": APPLICATION, "process": "python-lsp-jsonrpc", "serves": SERVES})
expect("initialize", opened["protocolVersion"], 1)
registered = call("registerObjectForStateRestoration", OBJECT)
expect("register", registered["path"], PATH)
endpoint.notify("encodeRestorableState", {"object": PATH, "state": DRAFT})
expect_state("notify", call("decodeRestorableState", {"object": PATH}), DRAFT)
stored = call("encodeRestorableState", {"object": registered["object"], "state": STATE})
expect("encode", stored["durability"], "disk")
expect_state("decode", call("decodeRestorableState", {"object": PATH}), STATE)
try:
    call("decodeRestorableState", {"object": MISSING})
except JsonRpcException as error:
    expect("error -32002 unknownObject", (error.code, error.data["kind"]), (-32002, "unknownObject"))
say("waiting")
saved.wait(timeout=20)
expect("goodbye", call("goodbye", {"reason": "restart"}), {})
endpoint.shutdown()
