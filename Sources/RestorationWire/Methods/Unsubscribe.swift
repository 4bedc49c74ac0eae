// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Ends a subscription of this connection; none of its events follows the answer.
package struct Unsubscribe: RestorationMethod {
  package static let method = "unsubscribe"
  package static let summary = "Ends a subscription."
  package static let parameters: [Schema.Member] = [
    .required("subscription", .integer(1...), "As `subscribe` gave it on this connection."),
  ]
  package static let errors: [ErrorDescription] = [.invalidParams]
  package static let isScoped = false

  package typealias Reply = EmptyResult

  package var subscription: Int64

  package init(subscription: Int64) {
    self.subscription = subscription
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    _ = try reader.required("subscription")
    guard let subscription = try reader.optionalInteger("subscription", in: 1...Int64.max) else {
      throw reader.wrong("subscription", "the integer that subscribe gave")
    }
    self.subscription = subscription
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("subscription", subscription)
  }
}
