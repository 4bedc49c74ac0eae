// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Answers a call of the broker that `nextRequest` gave.
package struct AnswerRequest: RestorationMethod {
  package static let method = "answerRequest"
  package static let summary = "Answers a call of the broker."
  package static let parameters: [Schema.Member] = [
    .required("id", .handle, "As `nextRequest` gave it."),
    .optional("result", .any, "The answer, in the form that the call wants; null is one."),
    .optional(
      "error",
      .object([.optional("code", .integer, "For people."), .optional("message", .string, "For people.")]),
      "Why the call failed, where it did."
    ),
  ]
  package static let errors: [ErrorDescription] = [.notInitialized, .unknownApplication, .invalidParams]

  package typealias Reply = EmptyResult

  package enum Outcome: Sendable {
    /// Whatever the call is to be answered with, also null.
    case result(JSONSlice)
    case error(code: Int64, message: String)
  }

  /// As `nextRequest` gave it.
  package var id: Int64
  package var outcome: Outcome

  package init(id: Int64, _ outcome: Outcome) {
    self.id = id
    self.outcome = outcome
  }

  package init(_ reader: ParameterReader) throws(ErrorObject) {
    _ = try reader.required("id")
    guard let id = try reader.optionalInteger("id", in: 1...Int64.max) else {
      throw reader.wrong("id", "the id of a call, a positive integer")
    }
    self.id = id
    // By position the result of an error is null, so that null is only a result where there is no error.
    if let error = reader.present("error") {
      guard error.kind == .object else { throw reader.wrong("error", "an object with code and message") }
      guard reader.present("result") == nil else {
        throw .invalidParameter(
          reader.pointer("error"),
          "there are a result and an error",
          hint: "Give result, or error where the call failed."
        )
      }
      self.outcome = .error(code: error["code"]?.integer() ?? 0, message: error["message"]?.string() ?? "")
    } else {
      self.outcome = .result(try reader.required("result"))
    }
  }

  package func writeMembers(to writer: inout JSONWriter) {
    writer.member("id", id)
    switch outcome {
    case .result(let result):
      writer.member("result", result.compactText)
    case .error(let code, let message):
      writer.key("error")
      writer.object { writer in
        writer.member("code", code)
        writer.member("message", message)
      }
    }
  }
}
