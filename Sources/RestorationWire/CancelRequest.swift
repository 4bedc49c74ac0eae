// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The notification by which a client says that it does not want the answer to one of its calls any more.
package struct CancelRequest: Sendable {
  package static let method = "$/cancelRequest"
  package static let summary = "The answer to one of the client's own requests is not wanted any more."
  package static let parameters: [Schema.Member] = [
    .required("id", .either([.string, .integer, .null]), "Of the request, as it was sent.")
  ]

  /// The id of the call, as it was sent.
  package var id: RequestID

  package init(id: RequestID) {
    self.id = id
  }

  /// Nil where the parameters name no call.
  package init?(_ parameters: Parameters) {
    guard let slice = parameters.first("id"), let id = RequestID(slice) else { return nil }
    self.id = id
  }
}
