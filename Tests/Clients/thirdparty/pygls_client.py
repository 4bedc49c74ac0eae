# SPDX-License-Identifier: Apache-2.0
"""pygls: the JSON-RPC client below the language server framework, Content-Length frames on asyncio."""

import asyncio
import threading

from lsprotocol.converters import get_converter
from pygls.client import JsonRPCClient
from pygls.exceptions import JsonRpcException
from pygls.io_ import run_async

from contract import (APPLICATION, ASKED, DRAFT, MISSING, OBJECT, PATH, SERVES, SOCKET, STATE, expect, expect_state,
                      say)


async def main():
    # Objects stay dictionaries; by default they become named tuples, which cannot have all keys of a state.
    client = JsonRPCClient(converter_factory=get_converter)
    saved = asyncio.Event()

    @client.feature("encodeRestorableStateWithCoder")
    def encode(params):
        objects = params["objects"]
        expect("encodeRequest", (params["round"] > 0, [entry["path"] for entry in objects]), (True, [PATH]))
        return {"states": [{"object": entry["object"], "state": ASKED} for entry in objects]}

    @client.feature("applicationStateSaved")
    def note_save(params):
        expect("saved", params["generation"], 1)
        saved.set()

    reader, writer = await asyncio.open_unix_connection(SOCKET)
    protocol = client.protocol
    protocol.set_writer(writer)
    listener = asyncio.create_task(run_async(threading.Event(), reader, protocol))

    opened = await protocol.send_request_async(
        "initialize", {"application": APPLICATION, "process": "pygls", "serves": SERVES}
    )
    expect("initialize", opened["protocolVersion"], 1)
    registered = await protocol.send_request_async("registerObjectForStateRestoration", OBJECT)
    expect("register", registered["path"], PATH)
    protocol.notify("encodeRestorableState", {"object": PATH, "state": DRAFT})
    expect_state("notify", await protocol.send_request_async("decodeRestorableState", {"object": PATH}), DRAFT)
    stored = await protocol.send_request_async("encodeRestorableState", [registered["object"], STATE])
    expect("encode", stored["durability"], "disk")
    expect_state("decode", await protocol.send_request_async("decodeRestorableState", [PATH]), STATE)
    try:
        await protocol.send_request_async("decodeRestorableState", {"object": MISSING})
    except JsonRpcException as error:
        expect("error -32002 unknownObject", (error.code, error.data["kind"]), (-32002, "unknownObject"))
    say("waiting")
    await saved.wait()
    expect("goodbye", await protocol.send_request_async("goodbye", {"reason": "restart"}), {})
    writer.close()
    await listener


asyncio.run(main())
