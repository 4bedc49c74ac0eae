// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Who owns a registered object, as errors and notifications name it (R1, R8).
public struct ObjectOwner: WireObject, Hashable {
  package static let sharedName: String? = "Owner"

  public package(set) var process: String?
  public package(set) var pid: Int64 = 0

  package init() {}

  /// An owner with this role and number.
  public init(process: String?, pid: Int64) {
    self.process = process
    self.pid = pid
  }

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
  public var description: String {
    process.map { "\($0) (\(pid))" } ?? "process \(pid)"
  }
}
