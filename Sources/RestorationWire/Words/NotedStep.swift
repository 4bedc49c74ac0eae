// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// A step and its last time.
public struct NotedStep<Step: Hashable & Sendable>: Hashable, Sendable {
  public package(set) var step: Step
  /// `nil` if an older broker does not report it.
  public package(set) var at: Timestamp?
  /// Number of repetitions in a row.
  public package(set) var times: Int64 = 1

  package init(_ step: Step, at time: Timestamp? = nil, times: Int64 = 1) {
    (self.step, at, self.times) = (step, time, times)
  }
}

extension NotedStep: WireValue, JSONWritable where Step: TaggedWireValue {
  package static var expected: String { Step.expected }
  package static var plural: String { Step.plural }

  package static var schema: Schema {
    var (members, none) = (MemberDescriber(), (at: Timestamp?.none, times: Int64(1)))
    try? walk(&members, &none.at, &none.times)
    return Step.schema(with: members.members)
  }

  private static func walk(
    _ members: inout some MemberWalk,
    _ at: inout Timestamp?,
    _ times: inout Int64
  ) throws(Misfit) {
    try members.optional("at", &at, "When; the last time, if it was noted several times in a row.")
    try members.member("times", &times, default: 1, "How often in a row, if more than once.")
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    self.init(try Step(wire: slice))
    var members = MemberReader(.named(slice))
    try Self.walk(&members, &at, &times)
  }

  package mutating func conceal(within bounds: Bounds) { step.conceal(within: bounds) }

  package func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      step.writeMembers(to: &writer)
      var (at, times) = (at, times)
      MemberWriter.write(to: &writer) { (members) throws(Misfit) in try Self.walk(&members, &at, &times) }
    }
  }
}
