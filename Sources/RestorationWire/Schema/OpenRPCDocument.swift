// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The protocol as an OpenRPC document: everything the broker takes and sends, from the tables by which it does.
///
/// What OpenRPC has no word for are members that begin with `x-`; `Protocol/methods/rpc.discover.md` explains them.
package struct OpenRPCDocument: WireValue {
  package static let schema = Schema.object([
    .required("openrpc", .string, "The version of OpenRPC."),
    .required(
      "info",
      .object([
        .required("title", .string, "The protocol's name."),
        .required("version", .string, "The protocol's version."),
      ]),
      "What is described."
    ),
    .required("methods", .list(.object([.required("name", .string, "On the wire.")])), "Of both directions."),
    .required("components", .object([.required("schemas", .map(.any), "Shapes by name.")]), "What methods share."),
  ])

  /// The version of OpenRPC that the document is written by.
  package static let format = "1.3.2"

  package let text: JSONText

  package static let expected = "an OpenRPC document"

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice["openrpc"]?.string() != nil, slice["methods"]?.elements != nil else { throw Misfit(Self.expected) }
    text = slice.compactText
  }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.text(text)
  }

  /// - Parameter methods: what a client may call.
  package init(of methods: [any RestorationMethod.Type]) {
    var writer = JSONWriter(reserving: 128 << 10)
    writer.object { writer in
      writer.member("openrpc", Self.format)
      Self.writeInfo(to: &writer)
      let methods = DescribedMethod.all(methods)
      writer.member("methods", methods)
      writer.key("components")
      writer.object { writer in
        writer.key("schemas")
        Self.write(methods.flatMap(\.schemas) + EventName.allCases.map(\.shape) + [ErrorDescription.data], to: &writer)
      }
      writer.key("x-errors")
      writer.object { writer in
        writer.member("everyCall", ErrorDescription.everyCall)
        writer.member("data", ErrorDescription.data)
      }
      writer.key("x-scope")
      writer.object { Schema.Member.writeEach(of: CallScope.members, to: &$0) }
    }
    text = JSONText(validated: writer.bytes)
  }

  private static func writeInfo(to writer: inout JSONWriter) {
    writer.key("info")
    writer.object { writer in
      writer.member("title", "The restoration protocol")
      writer.member("version", String(ProtocolVersion.current))
      writer.member(
        "description",
        "How a program speaks to `restorationd`, the broker that keeps the state of an application's objects while the "
          + "application's processes come and go."
      )
      writer.key("license")
      writer.object { $0.member("name", "Apache-2.0") }
    }
  }

  /// Writes every shape that the schemas lead to, once and by name.
  private static func write(_ schemas: [Schema], to writer: inout JSONWriter) {
    var shapes: [String: Schema] = [:]
    for schema in schemas { schema.collectShapes(into: &shapes) }
    writer.object { writer in
      for (name, shape) in shapes.sorted(by: { $0.key < $1.key }) {
        writer.key(name)
        writer.object { writer in
          writer.member("title", name)
          shape.writeMembers(to: &writer)
        }
      }
    }
  }
}
