// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Who owns a registered object, as errors and notifications name it (R1, R8).
package struct ObjectOwner: WireObject, Hashable {
  package static let sharedName: String? = "Owner"

  package var process: String?
  package var pid: Int64 = 0

  package init() {}

  package init(process: String?, pid: Int64) {
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
