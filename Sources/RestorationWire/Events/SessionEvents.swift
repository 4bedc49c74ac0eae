// SPDX-License-Identifier: Apache-2.0

/// The session's process, as events name it.
public struct SessionIdentity: WireObject, Hashable {
  public package(set) var process: String?
  public package(set) var pid: Int64?
  package init() {}

  package init(process: String?, pid: Int64?) { (self.process, self.pid) = (process, pid) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("process", &process, "Role of the session's process; null if unknown.")
    try members.nullable("pid", &pid, .processID, "Number of the process; null if unknown.")
  }
}

/// A session was opened. Resuming a session is no event.
public struct SessionBegan: RestorationEvent {
  package static let name = EventName.sessionBegan
  package static let summary = "A session was opened."

  /// The saved state as reported to the session (R20).
  public struct Restoration: WireObject, Hashable {
    public package(set) var state = RestorationState.none
    public package(set) var reason = RestorationReason.pristine
    package init() {}

    package init(state: RestorationState, reason: RestorationReason) { (self.state, self.reason) = (state, reason) }

    package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
      try members.required("state", &state, "")
      try members.required("reason", &reason, "")
    }
  }

  public package(set) var session = SessionIdentity()
  public package(set) var delegate = false
  public package(set) var detached = false
  public package(set) var restoration: Restoration?
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try session.walk(&members)
    try members.required("delegate", &delegate, "Whether the session is the application's delegate (R9).")
    try members.required("detached", &detached, "Whether a call opened it instead of `initialize`.")
    try members.nullable("restoration", &restoration, "As the session was told by `initialize` (R20).")
  }
}

/// A session and the registrations of its objects ended (R30).
public struct SessionEnded: RestorationEvent {
  package static let name = EventName.sessionEnded
  package static let summary =
    "A session ended, and with it the registrations of its objects."

  public enum Ending: String, OpenWireWord {
    case closed, userQuit, restart, logout
    /// The service manager stopped its unit.
    case stopped
    /// The process ended without a goodbye.
    case crashed
    /// A detached session was unused for too long, or its process abandoned it.
    case expired
  }

  public package(set) var ending = Ending.closed
  public package(set) var objects = 0
  public package(set) var outcome = ProcessOutcome()
  public package(set) var session = SessionIdentity()
  package init() {}

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.required("ending", &ending, "How it ended.")
    try members.required("objects", &objects, "Objects that it had registered.")
    try outcome.walk(&members)
    try session.walk(&members)
  }
}
