// SPDX-License-Identifier: Apache-2.0

/// How a process ended that did not say goodbye, as events and explanations tell it.
public struct ProcessOutcome: WireObject, Hashable {
  /// How it ended.
  public enum How: String, OpenWireWord {
    case exited, signalled, outOfMemory
    /// By the service manager.
    case stopped
    case unknown
  }

  public package(set) var how: How?
  public package(set) var code: Int64?
  public package(set) var signal: String?
  public package(set) var unit: String?

  package init() {}

  package init(_ how: How? = nil, code: Int64? = nil, signal: String? = nil, unit: String? = nil) {
    self.how = how
    self.code = code
    self.signal = signal
    self.unit = unit
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("how", &how, "How the process ended; null where it has not, or said goodbye.")
    try members.nullable("code", &code, "Its exit code; null where it did not exit by itself.")
    try members.nullable("signal", &signal, "Name of the signal that ended it; null where none did.")
    try members.nullable("unit", &unit, "The unit it belonged to; null where that is not known.")
  }
}
