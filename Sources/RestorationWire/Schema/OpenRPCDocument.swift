// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The protocol as an OpenRPC document, generated from the tables that the broker uses.
///
/// Members that begin with `x-` extend OpenRPC; `Protocol/methods/rpc.discover.md` explains them.
package struct OpenRPCDocument: WireValue {
  package static let expected = "an OpenRPC document"
  package static let schema = Schema.object([
    .required("openrpc", .string, "The version of OpenRPC."),
    .required(
      "info",
      .object([
        .required("title", .string, "The protocol's name."),
        .required("version", .string, "The protocol's version."),
      ]),
      "The protocol described."
    ),
    .required("methods", .list(.object([.required("name", .string, "On the wire.")])), "Those of both directions."),
    .required("components", .object([.required("schemas", .map(.any), "Shapes by name.")]), "What methods share."),
  ])

  package let text: JSONText

  package init(text: JSONText) { self.text = text }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice["openrpc"]?.string() != nil, slice["methods"]?.elements != nil else { throw Misfit(Self.expected) }
    text = slice.compactText
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.text(text) }
}
