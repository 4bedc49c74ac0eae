// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Visits the members of a message in the order of its page. The same walk reads, writes and describes them.
///
/// Members are named by static strings, which need no escaping.
package protocol MemberWalk {
  mutating func required<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is always written. Older brokers leave it out; the value then stays unchanged.
  mutating func added<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is written as null for `nil`, and may be absent when read.
  mutating func nullable<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is not written for `nil`, and may be null when read.
  mutating func optional<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is not written if it has its default value.
  ///
  /// - Parameter schema: `nil` for the type's schema.
  mutating func member<Value: WireValue & Equatable>(
    _ name: StaticString,
    _ value: inout Value,
    default other: @autoclosure () -> Value,
    _ about: StaticString,
    as schema: @autoclosure () -> Schema?
  ) throws(Misfit)
}

extension MemberWalk {
  package mutating func added<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit) {
    try required(name, &value, bounds, about)
  }

  package mutating func required<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ about: StaticString
  ) throws(Misfit) {
    try required(name, &value, .none, about)
  }

  package mutating func added<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ about: StaticString
  ) throws(Misfit) {
    try added(name, &value, .none, about)
  }

  package mutating func nullable<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ about: StaticString
  ) throws(Misfit) {
    try nullable(name, &value, .none, about)
  }

  package mutating func optional<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ about: StaticString
  ) throws(Misfit) {
    try optional(name, &value, .none, about)
  }

  package mutating func member<Value: WireValue & Equatable>(
    _ name: StaticString,
    _ value: inout Value,
    default other: @autoclosure () -> Value,
    _ about: StaticString
  ) throws(Misfit) {
    try member(name, &value, default: other(), about, as: nil)
  }

  /// A member that is false if absent.
  package mutating func flag(_ name: StaticString, _ value: inout Bool, _ about: StaticString) throws(Misfit) {
    try member(name, &value, default: false, about, as: nil)
  }

  /// A member that is either true or absent.
  package mutating func mark(_ name: StaticString, _ value: inout Bool, _ about: StaticString) throws(Misfit) {
    try member(name, &value, default: false, about, as: .true)
  }
}

/// A value with members: parameters, a result, an event, or a part of one.
package protocol WireObject: WireValue {
  /// Members get placeholder values that are never sent.
  init()

  /// The name in `rpc.discover`, if several descriptions share the shape.
  static var sharedName: String? { get }

  /// Whether clients send it: its optional members may then be null and are described so.
  static var isGiven: Bool { get }

  mutating func walk(_ members: inout some MemberWalk) throws(Misfit)
}

extension WireObject {
  package static var sharedName: String? { nil }
  package static var isGiven: Bool { false }
  package static var expected: String { "an object" }
  package static var plural: String { "objects" }

  package static var schema: Schema {
    let shape = Schema.object(members)
    return sharedName.map { .shared($0, shape) } ?? shape
  }

  package static var members: [Schema.Member] {
    var describer = MemberDescriber()
    var blank = Self()
    try? blank.walk(&describer)
    guard isGiven else { return describer.members }
    return describer.members.map { $0.isRequired ? $0 : .optional($0.name, .nullable($0.schema), $0.summary) }
  }

  package init(wire slice: JSONSlice) throws(Misfit) {
    guard slice.kind == .object else { throw Misfit(Self.expected) }
    self.init()
    var reader = MemberReader(.named(slice))
    try walk(&reader)
  }

  package func writeJSON(to writer: inout JSONWriter) { writer.object { writeMembers(to: &$0) } }

  /// Writes the members of an object that the caller has begun.
  package func writeMembers(to writer: inout JSONWriter) {
    var value = self
    MemberWriter.write(to: &writer) { (members) throws(Misfit) in try value.walk(&members) }
  }

  package func with(_ change: (inout Self) -> Void) -> Self {
    var value = self
    change(&value)
    return value
  }
}
