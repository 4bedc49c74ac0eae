// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Fetches the next call or notification, for clients that cannot be called over their connection.
package struct NextRequest: RestorationMethod {
  package static let method = "nextRequest"
  package static let summary = "Fetches a call of the broker."
  package static let errors: [ErrorCode] = [
    .notInitialized, .unknownApplication, .invalidParams, .requestCancelled, .limitExceeded,
  ]

  /// `nil` if nothing came in time.
  package typealias Reply = PolledRequest?

  package static let waitMillisecondsMax: Int64 = 30_000

  /// `nil`: no wait.
  package var waitMilliseconds: Int64?
  package var serves: [ServedMethod]?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.optional(
      "waitMilliseconds",
      &waitMilliseconds,
      .range(0...Self.waitMillisecondsMax),
      "How long to wait if nothing is queued."
    )
    try members.optional("serves", &serves, "What the session serves from now on; null leaves it as it is.")
  }
}

package struct PolledRequest: WireObject, Hashable {
  package static let sharedName: String? = "PolledRequest"

  package var id: Int64?
  package var method = ""
  package var parameters = JSONText.null
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("id", &id, .handle, "The id to answer a call with. Null for a notification.")
    try members.required("method", &method, .text(of: ServedMethod.self), "The call or notification.")
    try members.required("params", &parameters, .parameters, "Parameters of that method.")
  }
}

package struct AnswerRequest: RestorationMethod {
  package static let method = "answerRequest"
  package static let summary = "Answers a call of the broker."
  package static let errors: [ErrorCode] = [.notInitialized, .unknownApplication, .invalidParams]

  /// The result of a call; may be null.
  package struct Result: WireValue {
    package static let schema = Schema.any
    package static let expected = "a value"
    package static let takesNull = true

    package let slice: JSONSlice

    package init(wire slice: JSONSlice) { self.slice = slice }

    package func writeJSON(to writer: inout JSONWriter) { slice.writeJSON(to: &writer) }
  }

  package struct Failure: WireObject {
    package var code: Int64 = 0
    package var message = ""
    package init() {}

    /// Any other form is ignored, because both members are for people.
    package init(wire slice: JSONSlice) throws(Misfit) {
      guard slice.kind == .object else { throw Misfit("an object with code and message") }
      code = slice["code"]?.integer() ?? 0
      message = slice["message"]?.string() ?? ""
    }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.member("code", &code, default: 0, "For people.")
      try members.member("message", &message, default: "", "For people.")
    }
  }

  package var id: Int64 = 0
  package var result: Result?
  package var error: Failure?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("id", &id, .handle, "As `nextRequest` gave it.")
    try members.optional("result", &result, "The answer, in the form that the call requires; null is valid.")
    try members.optional("error", &error, "Why the call failed, if it did.")
  }

  package mutating func check() throws(Misfit) {
    // By position, an error follows a null result. So null is a result only without an error.
    if error != nil, result?.slice.isNull == true { result = nil }
    switch (result, error) {
    case (_?, nil), (nil, _?): break
    case (nil, nil): throw Misfit(.missing, at: "result")
    case (_?, _?):
      let hint = "Give a result or, if the call failed, an error."
      throw Misfit(.unsuited("both a result and an error are given", hint: hint), at: "error")
    }
  }
}
