# SPDX-License-Identifier: Apache-2.0
"""Values that are almost valid: a schema that accepts one is too wide."""

import copy
import json
import re

# States belong to the application, counters may change, and parameters of a polled call are checked as such.
OPAQUE = {"state", "counters", "gauges", "params"}
# The result in answerRequest is checked as the answer that it is.
ANYTHING = {"result"}


def of_each_shape(pairs):
    """One of those pairs of a method and a value that a document cannot tell apart, but by numbers and names."""
    return {json.dumps([method, shape(value)]): (method, value) for method, value in pairs}.values()


def shape(value):
    """The value with its words; numbers and other strings are all the same."""
    if isinstance(value, dict):
        return {name: name in OPAQUE or shape(member) for name, member in value.items()}
    if isinstance(value, list):
        return [shape(element) for element in value[:3]]
    if isinstance(value, str):
        return value if re.fullmatch("[a-z][A-Za-z]+", value) else ""
    return 0 if isinstance(value, (int, float)) and not isinstance(value, bool) else value


def places(value, place=()):
    """The place of every member and element that the protocol describes."""
    if isinstance(value, dict):
        for name, member in value.items():
            if name in ANYTHING:
                continue
            yield place + (name,)
            if not (name in OPAQUE and isinstance(member, dict)):
                yield from places(member, place + (name,))
    elif isinstance(value, list):
        for index, element in enumerate(value[:3]):
            yield place + (index,)
            yield from places(element, place + (index,))


def changed(value, place, change):
    copied = copy.deepcopy(value)
    parent = copied
    for step in place[:-1]:
        parent = parent[step]
    change(parent, place[-1])
    return copied


def other_types(value):
    """Each place with a value of a type that the protocol does not allow there, or anywhere."""
    for place in places(value):

        def replace(parent, name):
            parent[name] = "text" if isinstance(parent[name], float) else 3.5

        yield place, changed(value, place, replace)


def without_members(value):
    """The value without each member."""
    for place in places(value):
        if isinstance(place[-1], str):
            yield place, changed(value, place, lambda parent, name: parent.pop(name))
