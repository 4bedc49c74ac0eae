// SPDX-License-Identifier: Apache-2.0

package import JSONRPC

/// Reads members by name, or by position in the order of the walk.
package struct MemberReader: MemberWalk {
  private let parameters: Parameters
  private var position = 0
  /// Number of members not visited yet; at 0 the search ends.
  private var unvisited = Int.max

  package init(_ parameters: Parameters) {
    self.parameters = parameters
    if case .named(let object) = parameters, let count = object.notedMemberCount { unvisited = count }
  }

  /// The member as sent, even if it is null; `nil` if it is absent.
  private mutating func next(_ name: StaticString) -> JSONSlice? {
    switch parameters {
    case .none: return nil
    case .named(let object):
      guard unvisited > 0, let member = object[name] else { return nil }
      unvisited -= 1
      return member
    case .positional(let values):
      defer { position += 1 }
      return position < values.count ? values[position] : nil
    }
  }

  private mutating func present<Value: WireValue>(_ name: StaticString, _: Value.Type) -> JSONSlice? {
    next(name).flatMap { $0.isNull && !Value.takesNull ? nil : $0 }
  }

  private func read<Value: WireValue>(
    _ name: StaticString,
    _ slice: JSONSlice,
    _ bounds: Bounds
  ) throws(Misfit) -> Value {
    do throws(Misfit) {
      return try Value(wire: slice, within: bounds)
    } catch {
      throw error.inside(name.description)
    }
  }

  /// Separate and not generic, because most members are absent.
  @inline(never)
  private func assign<Value: WireValue>(
    _ slice: JSONSlice,
    to value: inout Value?,
    _ name: StaticString,
    _ bounds: Bounds
  ) throws(Misfit) {
    value = try read(name, slice, bounds) as Value
  }

  package mutating func required<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _: StaticString
  ) throws(Misfit) {
    guard let slice = next(name) else { throw Misfit(.missing, at: name.description) }
    value = try read(name, slice, bounds)
  }

  package mutating func added<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value,
    _ bounds: Bounds,
    _: StaticString
  ) throws(Misfit) {
    if let slice = present(name, Value.self) { value = try read(name, slice, bounds) }
  }

  package mutating func nullable<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _: StaticString
  ) throws(Misfit) {
    if let slice = present(name, Value.self) { try assign(slice, to: &value, name, bounds) }
  }

  package mutating func optional<Value: WireValue>(
    _ name: StaticString,
    _ value: inout Value?,
    _ bounds: Bounds,
    _: StaticString
  ) throws(Misfit) {
    if let slice = present(name, Value.self) { try assign(slice, to: &value, name, bounds) }
  }

  package mutating func member<Value: WireValue & Equatable>(
    _ name: StaticString,
    _ value: inout Value,
    default other: @autoclosure () -> Value,
    _: StaticString,
    as _: @autoclosure () -> Schema?
  ) throws(Misfit) {
    if let slice = present(name, Value.self) { value = try read(name, slice, .none) } else { value = other() }
  }
}

extension Parameters {
  /// The parameter with this name, or the first one by position; `nil` if it is absent or null.
  func first(_ name: StaticString) -> JSONSlice? {
    let slice: JSONSlice? =
      switch self {
      case .none: nil
      case .named(let members): members[name]
      case .positional(let values): values.first
      }
    return slice?.isNull == true ? nil : slice
  }
}
