// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Parameters of a method of the protocol, for `BrokerConnection.call`. Only the types of this module are.
public protocol BrokerCall<Reply>: Sendable {
  associatedtype Reply: Sendable
}

/// One method of the protocol: its name, its parameters as a value, and its result.
///
/// Both directions are here, so that broker and client read and write by the same words. The members are walked in the
/// order of `Protocol/methods`, for calls by position.
package protocol RestorationMethod: BrokerCall, WireObject {
  associatedtype Reply: WireValue = EmptyResult

  static var method: String { get }

  static var summary: String { get }

  /// In the order of the method's page, without those of every call.
  static var errors: [ErrorCode] { get }

  /// Whether its calls are about an application and may carry `application` and `session`.
  static var isScoped: Bool { get }

  /// Whether its answer is `{"discarded": true}` after the user quit the application (R30).
  static var mayBeDiscarded: Bool { get }

  /// Throws if valid parameters contradict each other.
  mutating func check() throws(Misfit)
}

extension RestorationMethod {
  package static var errors: [ErrorCode] { [] }
  package static var isScoped: Bool { true }
  package static var mayBeDiscarded: Bool { false }

  package mutating func walk(_: inout some MemberWalk) throws(Misfit) {}

  package func check() {}

  package init(_ parameters: Parameters) throws(ErrorObject) { try self.init(walking: parameters) }

  /// Frequent calls have their own initializer: the walk is specialized for a type in this module only.
  init(walking parameters: Parameters) throws(ErrorObject) {
    self.init()
    do throws(Misfit) {
      var members = MemberReader(parameters)
      try walk(&members)
      try check()
    } catch {
      let pointer = Self.pointer(to: error.place, in: parameters)
      throw error.invalidParameter(at: pointer, of: parameters.shown(at: pointer, error.place))
    }
  }

  /// A JSON pointer into the parameters as sent: by position, the first token is an index.
  ///
  /// - Parameter place: a parameter's name, or a place below it such as `children/2`.
  package static func pointer(to place: String, in parameters: Parameters) -> String {
    let name = place.prefix { $0 != "/" }
    guard case .positional = parameters, let index = members.firstIndex(where: { $0.name == name }) else {
      return "/\(place)"
    }
    return "/\(index)\(place[name.endIndex...])"
  }
}

public struct EmptyResult: WireObject, Hashable {
  package init() {}

  package mutating func walk(_: inout some MemberWalk) {}
}

/// Members of any call besides its own parameters, by name only.
package struct CallScope: Sendable, Hashable {
  package static let members: [Schema.Member] = [
    .optional("application", .applicationName, "The application that the call is about."),
    .optional("session", .string, "Token of a detached session."),
  ]

  /// The call's application, for clients without a session.
  package var application: String?
  package var session: String?

  package init(application: String? = nil, session: String? = nil) {
    (self.application, self.session) = (application, session)
  }

  /// - Parameter application: the application of the caller's last call; most calls name the same one.
  package init(_ parameters: Parameters, after application: String = "") throws(ErrorObject) {
    guard case .named(let members) = parameters else { return }
    self.application = try Self.text(members["application"], "application", expecting: application)
    self.session = try Self.text(members["session"], "session")
  }

  /// - Parameter expected: avoids making a new string.
  private static func text(
    _ slice: JSONSlice?,
    _ name: String,
    expecting expected: String = ""
  ) throws(ErrorObject) -> String? {
    guard let slice, !slice.isNull else { return nil }
    guard let text = slice.string(expecting: expected) else {
      throw Misfit(String.expected, at: name).invalidParameter(at: "/\(name)", of: slice.compactText.brief)
    }
    return text
  }
}

extension Parameters {
  /// Parameters that may be or contain a state.
  private static let confidential: Set<Substring> = ["state", "coder", "elements", "result", "document", "part"]

  /// The value as sent, for an error message; only its type if it may contain a state. `nil` if it is absent.
  ///
  /// - Parameters:
  ///   - pointer: its JSON pointer.
  ///   - place: the same by names only.
  fileprivate func shown(at pointer: String, _ place: String) -> String? {
    var tokens = pointer.split(separator: "/")[...]
    guard let first = tokens.popFirst() else { return nil }
    var value: JSONSlice? =
      switch self {
      case .none: nil
      case .named(let members): members[String(first)]
      case .positional(let values): Int(first).flatMap { values.indices.contains($0) ? values[$0] : nil }
      }
    for token in tokens {
      if let elements = value?.elements {
        value = Int(token).flatMap { elements.indices.contains($0) ? elements[$0] : nil }
      } else {
        value = value?.members?.first { JSONPointer.escaped($0.name) == token }?.value
      }
    }
    guard let value else { return nil }
    let mayHoldState = value.kind.isContainer && !tokens.isEmpty
    let isConfidential = place.split(separator: "/").contains { Self.confidential.contains($0) }
    return mayHoldState || isConfidential ? value.kind.words : value.compactText.brief
  }
}

extension JSONKind {
  fileprivate var words: String {
    switch self {
    case .null: "null"
    case .bool: "true or false"
    case .integer, .real: "a number"
    case .string: "a string"
    case .array: "an array"
    case .object: "an object"
    }
  }
}
