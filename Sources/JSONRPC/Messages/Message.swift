// SPDX-License-Identifier: Apache-2.0

/// One JSON-RPC message of a peer, checked against JSON-RPC alone.
package enum Message: Sendable {
  case request(Request)
  case notification(Notification)
  case response(Response)
  /// A request to be refused; without a usable id it is answered with id null.
  case invalid(id: RequestID?, ErrorObject)
  /// A malformed answer: not exactly one of `result` and `error`, no usable id, or not version 2.0. It is dropped and
  /// counted, because answers are never answered.
  case malformedResponse
}

extension Message {
  var isResponse: Bool {
    switch self {
    case .response, .malformedResponse: true
    case .request, .notification, .invalid: false
    }
  }
}

/// A call that must be answered exactly once.
package struct Request: Sendable {
  package let id: RequestID
  package let method: String
  package let parameters: Parameters

  package init(id: RequestID, method: String, parameters: Parameters) {
    (self.id, self.method, self.parameters) = (id, method, parameters)
  }
}

/// A call that is never answered.
package struct Notification: Sendable {
  package let method: String
  package let parameters: Parameters

  /// Why it must not be acted upon (a member given twice). It is delivered all the same, so that the failure can be
  /// reported in another way.
  package let fault: ErrorObject?

  package init(method: String, parameters: Parameters, fault: ErrorObject? = nil) {
    (self.method, self.parameters, self.fault) = (method, parameters, fault)
  }
}

package struct Response: Sendable {
  package let id: RequestID
  package let outcome: Outcome

  package enum Outcome: Sendable {
    case result(JSONSlice)
    /// The error object as received; its shape has not been checked.
    case error(JSONSlice)
  }

  package init(id: RequestID, outcome: Outcome) { (self.id, self.outcome) = (id, outcome) }

  /// The error of an answer without id: the peer takes no calls, or does not know which call failed.
  var refusal: JSONSlice? { if case .error(let error) = outcome, id.isNull { error } else { nil } }
}

package enum Parameters: Sendable {
  case none
  /// An object; its names and those of the objects directly in it are unique.
  case named(JSONSlice)
  /// The elements of an array; the names of objects directly in it are unique.
  case positional([JSONSlice])

  package var bytes: Int {
    switch self {
    case .none: 0
    case .named(let slice): slice.range.count
    case .positional(let slices): slices.reduce(0) { $0 + $1.range.count }
    }
  }
}

package enum Outcome: Sendable, Equatable {
  case result(JSONText)
  case error(ErrorObject)
}
