# SPDX-License-Identifier: Apache-2.0
"""An OpenRPC document, and whether messages match it."""

import copy
import json

from jsonschema_rs import Draft7, Draft7Validator, Registry, meta
from openrpc import OpenRPC

# Shapes whose content is the application's, or another specification's.
OPEN_SHAPES = {"State", "Parameters"}
OPEN_METHODS = {"rpc.discover"}


class Document:
    """The document as it is, or closed: then objects have only the described members."""

    def __init__(self, document, closed=False):
        self.is_closed = closed
        self.document = close(copy.deepcopy(document)) if closed else document
        self.registry = Registry([("urn:document", self.document)], draft=Draft7)
        self.validators = {}
        self.methods = {method["name"]: (index, method) for index, method in enumerate(document["methods"])}

    def faults(self, value, *place):
        """Why `value` does not match the schema at this place of the document; empty if it matches."""
        if place not in self.validators:
            pointer = "/".join(str(step).replace("~", "~0").replace("/", "~1") for step in place)
            schema = {"$ref": f"urn:document#/{pointer}"}
            self.validators[place] = Draft7Validator(schema, registry=self.registry)
        return [
            f"{'/'.join(map(str, error.instance_path))}: {error.message[:300]}"
            for error in self.validators[place].iter_errors(value)
        ]

    def result_faults(self, name, result):
        index, method = self.methods[name]
        return self.faults(result, "methods", index, "result", "schema")

    def error_faults(self, name, error):
        """An error must be listed by the method, or possible for every call."""
        listed = self.methods[name][1].get("errors", []) + self.document["x-errors"]["everyCall"]
        faults = self.faults(error.get("data"), "x-errors", "data")
        if (error["code"], error["data"]["kind"]) not in {(one["code"], one["data"]["kind"]) for one in listed}:
            faults.append(f"{error['data']['kind']} is not listed")
        return faults

    def named(self, name, parameters):
        """The described parameters by name, even if they were given by position."""
        method = self.methods[name][1]
        if parameters is None:
            return {}
        if isinstance(parameters, list):
            return {one["name"]: value for one, value in zip(method["params"], parameters)}
        if method["x-direction"] == "toClient":
            return parameters
        known = {one["name"] for one in method["params"]}
        if "x-scoped" in method:
            known |= set(self.document["x-scope"])
        return {one: value for one, value in parameters.items() if one in known}

    def parameter_faults(self, name, parameters):
        index, method = self.methods[name]
        parameters = self.named(name, parameters)
        faults = []
        for position, one in enumerate(method["params"]):
            if one["name"] in parameters:
                place = ("methods", index, "params", position, "schema")
                faults += [f"{one['name']}/{fault}" for fault in self.faults(parameters[one["name"]], *place)]
            elif one.get("required"):
                faults.append(f"{one['name']} is missing")
        if "x-scoped" in method:
            for one in set(self.document["x-scope"]) & set(parameters):
                faults += self.faults(parameters[one], "x-scope", one)
        if "x-events" in method:
            if not faults:
                faults += self.faults(parameters, "methods", index, "x-events", parameters["name"])
        elif method["x-direction"] == "toClient":
            surplus = set(parameters) - {one["name"] for one in method["params"]}
            faults += [f"{one} is not told" for one in surplus if self.is_closed]
        return faults


def close(document):
    """Forbids members that are not described."""

    def visit(schema):
        if isinstance(schema, list):
            for one in schema:
                visit(one)
        if not isinstance(schema, dict):
            return
        if "object" in schema.get("type", []):
            schema.setdefault("additionalProperties", False)
        for name, one in schema.items():
            if name == "properties":
                for member in one.values():
                    visit(member)
            elif name not in ("const", "enum", "examples"):
                visit(one)

    for method in document["methods"]:
        if method["name"] not in OPEN_METHODS:
            for one in method["params"] + [method.get("result", {})]:
                visit(one.get("schema"))
    for name, shape in document["components"]["schemas"].items():
        if name not in OPEN_SHAPES:
            visit(shape)
    return document


def check(document):
    """What is wrong with the document by itself."""
    faults = []
    model = copy.deepcopy(document)
    for method in model["methods"]:
        # Since OpenRPC 1.3 a method without result is a notification; the models require one nevertheless.
        method.setdefault("result", {"name": "none", "schema": {"type": "null"}})
    OpenRPC(**model)
    names = [method["name"] for method in document["methods"]]
    faults += [f"{name} is there twice" for name in set(names) if names.count(name) > 1]
    for method in document["methods"]:
        required = [one.get("required", False) for one in method["params"]]
        if required != sorted(required, reverse=True):
            faults.append(f"{method['name']}: a required parameter comes after an optional one")
        if method.get("x-notification", False) == ("result" in method):
            faults.append(f"{method['name']} is neither a method nor a notification")
        if method["x-direction"] not in ("toBroker", "toClient"):
            faults.append(f"{method['name']} goes nowhere")
    shapes = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    used = set()
    for _, schema in schemas(document):
        meta.validate({"$schema": "http://json-schema.org/draft-07/schema#"} | schema)
        used |= set(references(schema))
    faults += [f"{one} leads nowhere" for one in used - shapes]
    faults += [f"nothing leads to {one}" for one in shapes - used]
    return faults


def schemas(document):
    """Every schema with its place."""
    for method in document["methods"]:
        for one in method["params"] + ([method["result"]] if "result" in method else []):
            yield f"{method['name']} {one['name']}", one["schema"]
        for name, schema in method.get("x-events", {}).items():
            yield f"{method['name']} {name}", schema
    for name, schema in document["components"]["schemas"].items():
        yield name, schema
    yield from document["x-scope"].items()
    yield "x-errors", document["x-errors"]["data"]


def references(schema):
    if isinstance(schema, dict):
        if isinstance(schema.get("$ref"), str):
            yield schema["$ref"]
        schema = schema.values()
    if not isinstance(schema, (str, bytes)) and hasattr(schema, "__iter__"):
        for one in schema:
            yield from references(one)


def load(path):
    with open(path, encoding="utf-8") as file:
        return json.load(file)
