// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A session has registered an object for the first time (R1).
public struct ObjectRegistered: RestorationEvent {
  package static let name = EventName.objectRegistered
  package static let summary = "A session registered an object that it had not registered before."

  public package(set) var object: ObjectHandle = 0
  public package(set) var path: IdentifierPath?
  public package(set) var kind = ObjectKind.object
  public package(set) var session = SessionIdentity()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("object", &object, .handle, "Handle.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
    try members.required("kind", &kind, "In `objectRegistered`: `object`, `viewController` or `view`.")
    try session.walk(&members)
  }
}

/// An object's registration ended while its session continues, or a vacant object was forgotten (R13).
public struct ObjectUnregistered: RestorationEvent {
  package static let name = EventName.objectUnregistered
  package static let summary =
    "A registration ended while its session continues, or a vacant object was forgotten (R13)."

  public enum Cause: String, OpenWireWord {
    /// By `unregisterObject`, or by the factory of a vacant object.
    case unregistered
    /// Another session has claimed the path (R1, R8).
    case replaced
  }

  /// `nil` if the object was vacant.
  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var cause = Cause.unregistered
  public package(set) var stateKept = false
  public package(set) var session = SessionIdentity()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "The handle, which is no longer valid; null if it was vacant.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
    try members.required("cause", &cause, "Why.")
    try members.required("stateKept", &stateKept, "Whether the object's state stays in the archive.")
    try session.walk(&members)
  }
}

/// An object was moved with everything below it (R6). Named `pathChanged` on the wire.
public struct ObjectMoved: RestorationEvent {
  package static let name = EventName.pathChanged
  package static let summary =
    "An object was moved or renamed, together with everything below it (R6)."

  public package(set) var object: ObjectHandle?
  public package(set) var from: IdentifierPath?
  public package(set) var path: IdentifierPath?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle.")
    try members.nullable("from", &from, "The path before the call; null if its own identifier was null.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
  }
}

public struct StateEncoded: RestorationEvent {
  package static let name = EventName.stateEncoded
  package static let summary = "A state was stored."

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var bytes = 0
  public package(set) var sequence: Int64 = 0
  public package(set) var session = SessionIdentity()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
    try members.required("bytes", &bytes, "Of this state, as `describeApplication` counts it.")
    try members.required("sequence", &sequence, .from(1), "Number of the write.")
    try session.walk(&members)
  }
}

/// A state was not stored, and no answer could say so: the broker asked for it, or its encode was a notification. The
/// session that was asked is notified as well.
public struct EncodeFailed: RestorationNotification, RestorationEvent {
  package static let method = ServedMethod.encodeFailed
  package static let name = EventName.encodeFailed
  package static let summary = "A state that the broker asked for, or that was sent as a notification, was not stored."

  /// The error's code (`Protocol/errors.md`), without the message, which may repeat keys of the state.
  public struct Failure: WireObject, Hashable {
    public package(set) var code: Int64 = 0
    public package(set) var kind = ""
    public package(set) var limit: String?
    public package(set) var max: Int64?
    public package(set) var value: Int64?
    package init() {}

    package init(code: Int, kind: String) {
      self.code = Int64(code)
      self.kind = kind
    }

    package init(_ error: ErrorObject) {
      code = Int64(error.code)
      kind = error.kind
      limit = error.data?["limit"]?.string
      max = error.data?["max"]?.integer
      value = error.data?["value"]?.integer
    }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("code", &code, "As in an answer.")
      try members.required("kind", &kind, "The word for it.")
      try members.optional("limit", &limit, "Of `limitExceeded`: the limit.")
      try members.optional("max", &max, "The limit's value.")
      try members.optional("value", &value, "What was sent.")
    }
  }

  public package(set) var object: ObjectHandle?
  public package(set) var path: IdentifierPath?
  public package(set) var error = Failure()
  public package(set) var session = SessionIdentity()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("object", &object, .handle, "Handle.")
    try members.nullable("path", &path, "The object's path; null if its own identifier is null (R4).")
    try members.required("error", &error, "The error, without a message.")
    try session.walk(&members)
  }
}

extension EncodeFailed.Failure: CustomStringConvertible {
  /// For people.
  public var description: String {
    guard let limit, let max, let value else { return kind }
    return "\(limit) is \(max), this was \(value)"
  }
}
