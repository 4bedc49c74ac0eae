// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Visits the members of a message in the order of its page. The same walk reads, writes and describes them.
///
/// Members are named by static strings, which need no escaping.
package protocol MemberWalk {
  /// A member that is always there.
  mutating func required<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is always written. Older brokers leave it out; when it is read, the value then stays as it is.
  mutating func added<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is null if there is no value; when it is read it may be absent as well.
  mutating func nullable<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is left out if there is no value; when it is read it may be null as well.
  mutating func optional<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) throws(Misfit)

  /// A member that is left out if it has its default value.
  ///
  /// - Parameter schema: `nil` for that of the type.
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

  /// A member that is false if it is left out.
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
  /// Required members hold a value that is never sent.
  init()

  /// Its name in `rpc.discover` if several descriptions share the shape.
  static var sharedName: String? { get }

  /// Whether clients give it: members that may be left out may be null as well, and are described so.
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

  /// The same value with changes, for building messages.
  package func with(_ change: (inout Self) -> Void) -> Self {
    var value = self
    change(&value)
    return value
  }
}
