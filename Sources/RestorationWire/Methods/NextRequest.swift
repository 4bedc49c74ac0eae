// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Fetches the next call or notification of the broker, for clients that cannot be called over their connection.
package struct NextRequest: RestorationMethod {
  package static let method = "nextRequest"
  package static let summary = "Fetches a call of the broker."
  package static let errors: [ErrorDescription] = [
    .notInitialized, .unknownApplication, .invalidParams, .requestCancelled, .limitExceeded,
  ]

  /// What was fetched; null if nothing came in time.
  package typealias Reply = PolledRequest?

  package static let waitMillisecondsMax: Int64 = 30_000

  /// Nil does not wait.
  package var waitMilliseconds: Int64?
  package var serves: [ServedMethod]?

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "waitMilliseconds",
      &waitMilliseconds,
      .range(0...Self.waitMillisecondsMax),
      "How long to wait where there is nothing yet."
    )
    try members.optional("serves", &serves, "What the session serves from now on; null leaves it as it is.")
  }
}

/// A call or a notification of the broker as `nextRequest` gives it.
package struct PolledRequest: WireObject, Hashable {
  package static let sharedName: String? = "PolledRequest"

  package var id: Int64?
  package var method = ""
  package var parameters = JSONText.null

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("id", &id, .handle, "Of a call: what it is answered by. Null for a notification.")
    try members.required("method", &method, .text(of: ServedMethod.self), "What is asked or told.")
    try members.required("params", &parameters, .parameters, "What that method takes.")
  }
}
