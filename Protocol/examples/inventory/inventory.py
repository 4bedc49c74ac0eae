#!/usr/bin/env -S python3 -u
# SPDX-License-Identifier: Apache-2.0
"""A list of items, its user interface in three processes: inventory.py app|items|details FILE

FILE is the data, a line `KEY NAME` for each item. Standard input has commands: for app `front PATH` and `save`, for
items `mark selected KEY` and `mark topVisible KEY`, for details `open KEY`, `new` and `type PATH TEXT`.
"""

import asyncio
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "clients" / "python"))

import restorationd  # noqa: E402


async def app(session, names):
    """The navigation, which shows one of the others' controllers in front."""
    state = {"front": {"$restorable": ["Navigation"]}}

    def show():
        print("front", "/".join(state["front"]["$restorable"] or ["nothing"]))  # null if the object is gone

    await session.register(
        "Navigation", kind="viewController", encode=lambda: state, decode=state.update,
        finished=show)
    await session.restore()
    return {
        "front": lambda path: state.update(front={"$restorable": path.split("/")}),
        "save": session.save,
    }


async def items(session, names):
    """The table of all items, with its controller."""
    keys, rows = list(names), {"selected": 0, "topVisible": 0}

    class Source:
        """What a row stands for: the data may be in another order next time."""

        def identifier(self, index_path):
            return keys[index_path[1]]

        def index_path(self, key):
            return [0, keys.index(key)] if key in keys else None

    def encode():
        return restorationd.Snapshot({}, [{"role": role, "indexPath": [0, row]} for role, row in rows.items()])

    def decode(saved):
        rows.update((element["role"], element["indexPath"][1]) for element in saved.elements)

    def show():
        print("rows", *(f"{role} {row} {names[keys[row]]}" for role, row in rows.items()))

    controller = await session.register("Items", "Navigation", kind="viewController", wait=10)
    table = await session.register("Table", controller, kind="view", encode=encode, decode=decode, finished=show)
    await session.register_data_source(table, Source())
    return {"mark": lambda role, key: rows.update({role: keys.index(key)})}


async def details(session, names):
    """Controllers of one item each: on the navigation's stack or, while the item is new, in a sheet over it."""
    states = {}

    async def add(path, key=None):
        if key is not None and key not in names:
            return None  # it was deleted meanwhile
        state = states[path] = {"key": key, "text": names.get(key, "")}
        *parent, name = path.split("/")
        return await session.register(
            name, parent, kind="viewController", restoration_class="Controller", wait=10, encode=lambda: state,
            decode=state.update, finished=lambda: print("detail", path, state["text"]))

    async def new():
        await add("Navigation/Sheet")
        await add("Navigation/Sheet/Detail")

    await session.register_class(
        "Controller", lambda wanted: wanted.state and add("/".join(wanted.path), wanted.state["key"]))
    return {
        "open": lambda key: add("Navigation/Detail", key),
        "new": new,
        "type": lambda path, *words: states[path].update(text=" ".join(words)),
    }


async def main(role, file):
    names = dict(line.split(maxsplit=1) for line in pathlib.Path(file).read_text().splitlines())
    async with restorationd.AsyncSession("org.example.Inventory", process=role, serving=True) as session:
        commands = await {"app": app, "items": items, "details": details}[role](session, names)
        print("ready")
        while line := await asyncio.to_thread(sys.stdin.readline):
            command, *arguments = line.split()
            done = commands[command](*arguments)
            print("done", command, await done if asyncio.iscoroutine(done) else "")


asyncio.run(main(*sys.argv[1:]))
