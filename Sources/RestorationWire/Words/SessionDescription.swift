// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// One live session in `describeApplication`; its token is not shown.
public struct SessionDescription: WireObject, Hashable {
  package static let sharedName: String? = "SessionDescription"

  public package(set) var process: String?
  public package(set) var pid: Int64 = 0
  public package(set) var delegate = false
  /// Without the names that only a later broker knows.
  public package(set) var serves: [ServedMethod] = []

  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("process", &process, "The process role.")
    try members.required("pid", &pid, .processID, "Number of the process.")
    try members.required("delegate", &delegate, "Whether it is the application's delegate (R9).")
    var known = KnownMethods(methods: serves)
    try members.required("serves", &known, "What it may be called and notified of.")
    serves = known.methods
  }

  private struct KnownMethods: WireValue {
    static let schema = [ServedMethod].schema
    static let expected = [ServedMethod].expected

    var methods: [ServedMethod]

    init(methods: [ServedMethod]) {
      self.methods = methods
    }

    init(wire slice: JSONSlice) throws(Misfit) {
      methods = try [String](wire: slice).compactMap { ServedMethod(rawValue: $0) }
    }

    func writeJSON(to writer: inout JSONWriter) {
      methods.writeJSON(to: &writer)
    }
  }
}

/// What becomes of a session's objects when it ends (R30).
public enum GoodbyeReason: String, WireWord {
  /// The session's objects are over; their state is removed.
  case closed
  /// The user quit the application; its state is discarded.
  case userQuit
  /// The process comes back, e.g. after an update; everything is kept.
  case restart
  /// The user's session ends; everything is kept.
  case logout
}
