# SPDX-License-Identifier: Apache-2.0
"""aiorpcX: JSON-RPC on asyncio, one message a line, both directions."""

import asyncio

import aiorpcx

from contract import (APPLICATION, ASKED, DRAFT, MISSING, OBJECT, PATH, SERVES, SOCKET, STATE, expect, expect_state,
                      say)


class Session(aiorpcx.RPCSession):
    """A session whose requests and notifications are handled by functions."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.saved = asyncio.Event()

    async def handle_request(self, request):
        handlers = {
            "encodeRestorableStateWithCoder": self.encode,
            "applicationStateSaved": self.note_save,
        }
        return await aiorpcx.handler_invocation(handlers.get(request.method), request)()

    async def encode(self, round, objects):
        expect("encodeRequest", (round > 0, [entry["path"] for entry in objects]), (True, [PATH]))
        return {"states": [{"object": entry["object"], "state": ASKED} for entry in objects]}

    async def note_save(self, generation):
        expect("saved", generation, 1)
        self.saved.set()


async def main():
    async with aiorpcx.connect_us(SOCKET, session_factory=Session) as session:
        opened = await session.send_request(
            "initialize", {"application": APPLICATION, "process": "aiorpcX", "serves": SERVES}
        )
        expect("initialize", opened["protocolVersion"], 1)
        registered = await session.send_request("registerObjectForStateRestoration", OBJECT)
        expect("register", registered["path"], PATH)
        await session.send_notification("encodeRestorableState", {"object": PATH, "state": DRAFT})
        expect_state("notify", await session.send_request("decodeRestorableState", [PATH]), DRAFT)
        stored = await session.send_request("encodeRestorableState", [registered["object"], STATE])
        expect("encode", stored["durability"], "disk")
        expect_state("decode", await session.send_request("decodeRestorableState", {"object": PATH}), STATE)
        async with session.send_batch() as batch:
            batch.add_request("decodeRestorableState", {"object": PATH})
            batch.add_notification("ping")
            batch.add_request("decodeRestorableState", {"object": MISSING})
        expect("batch", (batch.results[0]["state"], batch.results[1].code), (STATE, -32002))
        try:
            await session.send_request("decodeRestorableState", {"object": MISSING})
        except aiorpcx.RPCError as error:
            # The library drops the error's data.
            expect("error -32002", error.code, -32002)
        say("waiting")
        await session.saved.wait()
        expect("goodbye", await session.send_request("goodbye", {"reason": "restart"}), {})


asyncio.run(main())
