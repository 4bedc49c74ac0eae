// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Answers the broker's calls to a `BrokerConnection`, as text in and text out.
struct BrokerCallResponder: Sendable {
  let answer: @Sendable (_ method: String, _ parametersText: String) async throws -> String

  func answer(_ request: Request) async -> Outcome {
    let parameters =
      switch request.parameters {
      case .none: "{}"
      case .named(let object): object.compactText.string
      case .positional(let values): "[\(values.map(\.compactText.string).joined(separator: ","))]"
      }
    do {
      let text = try await answer(request.method, parameters)
      return .result(try JSONInput.scan(text, subject: "the answer").compactText)
    } catch {
      return .error(ErrorObject(thrown: error))
    }
  }
}

extension ErrorObject {
  /// The answer to the broker's call for an error of the application.
  init(thrown error: any Error) {
    if let object = error as? ErrorObject {
      self = object
    } else {
      let hint = "The client's own log may say more."
      self.init(
        code: -32603,
        message: error.shortDescription,
        data: .object(["kind": "internalError", "hint": .string(hint)])
      )
    }
  }
}

extension Error {
  /// Without the full output of a file's parser, which the broker would not read.
  var shortDescription: String {
    let description = String(describing: self)
    return description.utf8.count <= 1_024 ? description : "\(description.prefix(250))…"
  }
}
