// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// The owner of an object, as errors and notifications name it (R1, R8).
public struct ObjectOwner: WireObject, Hashable {
  package static let sharedName: String? = "Owner"

  public package(set) var process: String?
  public package(set) var pid: Int64 = 0
  package init() {}

  public init(process: String?, pid: Int64) { (self.process, self.pid) = (process, pid) }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("process", &process, "The process role.")
    try members.required("pid", &pid, .processID, "Number of the process.")
  }

  /// For `data.owners` of `duplicatePath`.
  package var json: JSONValue {
    .object(["process": process.map { .string($0) } ?? .null, "pid": .integer(pid)])
  }
}

extension ObjectOwner: CustomStringConvertible {
  /// For people: `editor (4711)`, or `process 4711`.
  public var description: String { process.map { "\($0) (\(pid))" } ?? "process \(pid)" }
}

/// How a process ended that did not say goodbye.
public struct ProcessOutcome: WireObject, Hashable {
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
    (self.how, self.code, self.signal, self.unit) = (how, code, signal, unit)
  }

  package mutating func walk(_ members: inout some MemberWalk) throws(Misfit) {
    try members.nullable("how", &how, "How the process ended; null if it lives or said goodbye.")
    try members.nullable("code", &code, "Its exit code; null if it did not exit.")
    try members.nullable("signal", &signal, "Name of the signal that ended it; null if none.")
    try members.nullable("unit", &unit, .hostText, "The unit it belonged to; null if unknown.")
  }
}
