// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Writes members of an object that the caller has begun.
package struct MemberWriter: MemberWalk {
  private var writer = JSONWriter()

  /// `walk` throws only when it reads.
  static func write(to writer: inout JSONWriter, _ walk: (inout MemberWriter) throws(Misfit) -> Void) {
    var members = MemberWriter()
    swap(&members.writer, &writer)
    try? walk(&members)
    swap(&members.writer, &writer)
  }

  package mutating func required(_ name: StaticString, _ value: inout some WireValue, _: Bounds, _: StaticString) {
    writer.member(name, value)
  }

  package mutating func nullable(_ name: StaticString, _ value: inout (some WireValue)?, _: Bounds, _: StaticString) {
    writer.member(name, value)
  }

  package mutating func optional(_ name: StaticString, _ value: inout (some WireValue)?, _: Bounds, _: StaticString) {
    writer.member(name, ifPresent: value)
  }

  package mutating func member<Value: WireValue & Equatable>(
    _ name: StaticString,
    _ value: inout Value,
    default other: @autoclosure () -> Value,
    _: StaticString,
    as _: @autoclosure () -> Schema?
  ) {
    if value != other() { writer.member(name, value) }
  }
}

/// Describes the members as a schema.
package struct MemberDescriber: MemberWalk {
  package private(set) var members: [Schema.Member] = []

  package mutating func required<Value: WireValue>(
    _ name: StaticString,
    _: inout Value,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    members.append(.required(name.description, Value.schema(within: bounds), about.description))
  }

  package mutating func nullable<Value: WireValue>(
    _ name: StaticString,
    _: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    members.append(.required(name.description, .nullable(Value.schema(within: bounds)), about.description))
  }

  package mutating func optional<Value: WireValue>(
    _ name: StaticString,
    _: inout Value?,
    _ bounds: Bounds,
    _ about: StaticString
  ) {
    members.append(.optional(name.description, Value.schema(within: bounds), about.description))
  }

  package mutating func member<Value: WireValue & Equatable>(
    _ name: StaticString,
    _: inout Value,
    default _: @autoclosure () -> Value,
    _ about: StaticString,
    as schema: @autoclosure () -> Schema?
  ) {
    members.append(.optional(name.description, schema() ?? Value.schema, about.description))
  }
}
