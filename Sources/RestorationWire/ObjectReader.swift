// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// Reads members one by one: of objects whose members depend on each other, so that no walk describes them.
struct ObjectReader {
  private let object: JSONSlice

  init(_ object: JSONSlice) {
    self.object = object
  }

  /// The member; nil if it is absent or null.
  func present(_ name: StaticString) -> JSONSlice? {
    object[name].flatMap { $0.isNull ? nil : $0 }
  }

  func required<Value: WireValue>(_ name: StaticString, _ bounds: Bounds = .none) throws(ErrorObject) -> Value {
    guard let slice = object[name] else { throw .missing("/\(name)", name.description) }
    return try read(name, slice, bounds)
  }

  /// Nil if the member is absent or null.
  func optional<Value: WireValue>(_ name: StaticString, _ bounds: Bounds = .none) throws(ErrorObject) -> Value? {
    guard let slice = present(name) else { return nil }
    return try read(name, slice, bounds)
  }

  private func read<Value: WireValue>(
    _ name: StaticString,
    _ slice: JSONSlice,
    _ bounds: Bounds
  ) throws(ErrorObject) -> Value {
    do throws(Misfit) {
      return try Value(wire: slice, within: bounds)
    } catch {
      let misfit = error.inside(name.description)
      throw misfit.invalidParameter(at: "/\(misfit.place)")
    }
  }
}
