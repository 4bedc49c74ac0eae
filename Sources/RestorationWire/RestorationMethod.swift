// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// One method of the protocol: its name, its parameters as a value, and its result.
///
/// Both directions are here, so that broker and client read and write by the same words.
package protocol RestorationMethod: Sendable {
  associatedtype Reply: RestorationResult

  static var method: String { get }

  /// One sentence: what it does.
  static var summary: String { get }

  /// In the order of `Protocol/methods`, for calls by position.
  static var parameters: [Schema.Member] { get }

  /// Besides those of every call, in the order of the method's page.
  static var errors: [ErrorDescription] { get }

  /// Whether it is about an application, so that `application` and `session` may be said with it.
  static var isScoped: Bool { get }

  /// Whether it is answered `{"discarded": true}` where what it is for has been quit (R30).
  static var mayBeDiscarded: Bool { get }

  /// Reads the parameters.
  init(_ reader: ParameterReader) throws(ErrorObject)

  /// Writes the parameters as members of an object that the caller has begun.
  func writeMembers(to writer: inout JSONWriter)
}

extension RestorationMethod {
  package static var parameters: [Schema.Member] { [] }
  package static var errors: [ErrorDescription] { [] }
  package static var isScoped: Bool { true }
  package static var mayBeDiscarded: Bool { false }

  package init(_ parameters: Parameters) throws(ErrorObject) {
    try self.init(ParameterReader(parameters, of: Self.parameters))
  }
}

/// What a call is answered with.
package protocol WrittenResult: Sendable {
  /// Writes the result as one JSON value.
  func write(to writer: inout JSONWriter)
}

/// The result of a method.
package protocol RestorationResult: WrittenResult {
  /// The form that `Protocol/methods` gives it.
  static var schema: Schema { get }

  /// Reads a result; nil where it has not that form.
  init?(_ slice: JSONSlice)
}

extension WrittenResult where Self: JSONWritable {
  package func write(to writer: inout JSONWriter) {
    writeJSON(to: &writer)
  }
}

extension RestorationResult where Self: WireValue {
  package init?(_ slice: JSONSlice) {
    try? self.init(wire: slice)
  }
}

/// The result `{}`.
package struct EmptyResult: RestorationResult, Hashable {
  package static let schema = Schema.emptyObject

  package init() {}

  package init?(_ slice: JSONSlice) {
    guard slice.kind == .object else { return nil }
  }

  package func write(to writer: inout JSONWriter) {
    writer.beginObject()
    writer.endObject()
  }
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
    self.application = application
    self.session = session
  }

  /// - Parameter application: what the caller's last call named; most name the same one again.
  package init(_ parameters: Parameters, after application: String = "") throws(ErrorObject) {
    guard case .named = parameters else { return }
    let reader = ParameterReader(parameters)
    self.application = try reader.optionalString("application", expecting: application)
    self.session = try reader.optionalString("session")
  }
}
