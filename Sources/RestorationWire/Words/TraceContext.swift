// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The place of a request in a trace, by W3C Trace Context: in `_meta` of the parameters.
package struct TraceContext: Hashable, Sendable {
  package let traceparent: String
  package let tracestate: String?

  /// A longer `tracestate` may be dropped.
  private static let tracestateBytesMax = 512

  /// `nil` if it is missing or invalid, which does not affect the request.
  package init?(_ parameters: Parameters) {
    guard case .named(let members) = parameters, let meta = members["_meta"] else { return nil }
    self.init(traceparent: meta["traceparent"]?.string(), tracestate: meta["tracestate"]?.string())
  }

  /// `nil` without a valid `traceparent`.
  package init?(traceparent: String?, tracestate: String?) {
    guard let traceparent, Self.isValid(traceparent) else { return nil }
    self.traceparent = traceparent
    self.tracestate = tracestate.flatMap { $0.utf8.count <= Self.tracestateBytesMax ? $0 : nil }
  }

  /// Whether the text is version, trace, span and flags: `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
  private static func isValid(_ traceparent: String) -> Bool {
    guard traceparent.utf8.count == 55 else { return false }
    let fields = traceparent.split(separator: "-", omittingEmptySubsequences: false)
    return fields.map(\.utf8.count) == [2, 32, 16, 2] && fields[0] != "ff"
      && fields[1...2].allSatisfy { $0.contains { $0 != "0" } }
      && fields.joined().utf8.allSatisfy { (0x30...0x39).contains($0) || (0x61...0x66).contains($0) }
  }
}

extension TraceContext {
  /// The parameters with this in `_meta`, which they do not have. Those by position stay as they are.
  package func added(to parameters: JSONText?) -> JSONText {
    var writer = JSONWriter()
    writer.object { writer in
      writer.key("_meta")
      writer.object { writer in
        writer.member("traceparent", traceparent)
        writer.member("tracestate", ifPresent: tracestate)
      }
    }
    guard let parameters, parameters != .emptyObject else { return JSONText(validated: writer.bytes) }
    guard parameters.bytes.first == UInt8(ascii: "{") else { return parameters }
    return JSONText(validated: writer.bytes.dropLast() + [UInt8(ascii: ",")] + parameters.bytes.dropFirst())
  }
}
