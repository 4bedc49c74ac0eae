// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The state of an object was stored.
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
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
    try members.required("bytes", &bytes, "Of this state, as `describeApplication` counts it.")
    try members.required("sequence", &sequence, .from(1), "Number of the write.")
    try session.walk(&members)
  }
}

/// An encode that was sent as a notification stored nothing; there was no answer that could have said so.
public struct EncodeFailed: RestorationEvent {
  package static let name = EventName.encodeFailed
  package static let summary =
    "An encode that was sent as a notification stored nothing, so that no answer could say so."

  /// Why, in the terms of `Protocol/errors.md`. The message is left out: it may repeat keys of the state.
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
      kind = error.data?["kind"]?.string ?? ""
      limit = error.data?["limit"]?.string
      max = error.data?["max"]?.integer
      value = error.data?["value"]?.integer
    }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("code", &code, "As in an answer.")
      try members.required("kind", &kind, "The word for it.")
      try members.optional("limit", &limit, "Of `limitExceeded`: the limit.")
      try members.optional("max", &max, "What passes.")
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
    try members.nullable("path", &path, "The object's path; null where its own identifier is null (R4).")
    try members.required("error", &error, "As in the answer that there was not, without a message.")
    try session.walk(&members)
  }
}
