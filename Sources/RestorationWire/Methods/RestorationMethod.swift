// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One method of the protocol: its name, its parameters as a value, and its result.
///
/// Both directions are here, so that broker and client read and write by the same words. The members are walked in the
/// order of `Protocol/methods`, for calls by position.
package protocol RestorationMethod: WireObject {
  associatedtype Reply: WireValue = EmptyResult

  static var method: String { get }

  /// One sentence: what it does.
  static var summary: String { get }

  /// Besides those of every call, in the order of the method's page.
  static var errors: [ErrorCode] { get }

  /// Whether it is about an application, so that `application` and `session` may be said with it.
  static var isScoped: Bool { get }

  /// Whether it is answered `{"discarded": true}` after the user quit the application (R30).
  static var mayBeDiscarded: Bool { get }

  /// Throws if the parameters, each of which is right, do not go together.
  mutating func check() throws(Misfit)
}

extension RestorationMethod {
  package static var errors: [ErrorCode] { [] }
  package static var isScoped: Bool { true }
  package static var mayBeDiscarded: Bool { false }

  package mutating func walk(_: inout some MemberWalk) throws(Misfit) {}

  package func check() {}

  package init(_ parameters: Parameters) throws(ErrorObject) { try self.init(walking: parameters) }

  /// The calls that come most have an initializer of their own: only in this module the walk is specialized for a type.
  init(walking parameters: Parameters) throws(ErrorObject) {
    self.init()
    do throws(Misfit) {
      var members = MemberReader(parameters)
      try walk(&members)
      try check()
    } catch {
      throw error.invalidParameter(at: Self.pointer(to: error.place, in: parameters))
    }
  }

  /// JSON pointer into the parameters as sent: by position, the first token is an index.
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

package struct EmptyResult: WireObject, Hashable {
  package init() {}

  package mutating func walk(_: inout some MemberWalk) {}
}

/// Members that any call may carry besides its own parameters, by name only.
package struct CallScope: Sendable, Hashable {
  package static let members: [Schema.Member] = [
    .optional("application", .applicationName, "The application that the call is about."),
    .optional("session", .string, "Token of a detached session."),
  ]

  /// The application the call is about, for clients that did not initialize.
  package var application: String?
  /// Token of a detached session.
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

  /// - Parameter expected: spares making a new string.
  private static func text(
    _ slice: JSONSlice?,
    _ name: String,
    expecting expected: String = ""
  ) throws(ErrorObject) -> String? {
    guard let slice, !slice.isNull else { return nil }
    guard let text = slice.string(expecting: expected) else {
      throw .invalidParameter("/\(name)", "\(name) is not a string", hint: "Give a string as \(name).")
    }
    return text
  }
}
