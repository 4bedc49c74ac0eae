// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A client's name for one long call, a string or an integer. `progress` notifications repeat it byte for byte.
package struct ProgressToken: WireValue, Hashable {
  package static let schema = Schema.shared("ProgressToken", .either([.string, .integer]))
  package static let expected = "a string or an integer of at most \(bytesMax) bytes"

  /// Of the token's JSON text.
  package static let bytesMax = 1_024

  package let text: JSONText

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .string || slice.kind == .integer, slice.text.count <= Self.bytesMax else {
      throw Misfit(Self.expected)
    }
    text = slice.compactText.detached()
  }

  package init(_ name: String) { text = JSONText(.string(name)) }

  package func writeJSON(to writer: inout JSONWriter) { writer.text(text) }
}

/// A method that may take long and reports its progress.
package protocol LongMethod: RestorationMethod {
  var progressToken: ProgressToken? { get set }
}

/// A method that makes the broker call clients. Those calls belong to its trace.
package protocol TracedMethod: RestorationMethod {
  var trace: TraceContext? { get set }
}

package struct CancelRequest: Sendable {
  package static let method = "$/cancelRequest"
  package static let summary = "The client no longer wants the answer to one of its own requests."
  package static let parameters: [Schema.Member] = [
    .required("id", .either([.string, .integer, .null]), "Of the request, as it was sent.")
  ]

  package var id: RequestID

  package init(id: RequestID) { self.id = id }

  /// `nil` if the parameters name no call.
  package init?(_ parameters: Parameters) {
    guard let slice = parameters.first("id"), let id = RequestID(slice) else { return nil }
    self.id = id
  }
}
