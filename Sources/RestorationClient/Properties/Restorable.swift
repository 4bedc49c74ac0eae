// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A property that is restored: a part of its object's state, under its key.
///
/// ```swift
/// @MainActor final class Editor {
///   @Restorable("cursor") var cursor = 0
///   @Restorable("title") var title: String?
/// }
/// let editor = Editor()
/// try await session.register("Editor", binding: editor)   // cursor and title are as they were
/// editor.cursor += 1                                      // saved within 100 ms
/// ```
///
/// `register(_:below:binding:)` restores the properties of an object, and binds them. Until then a property has its
/// initial value. Afterwards each write marks the object. The writes of one turn of the object's actor are pushed as
/// one state, within 100 ms, and before the session saves, says goodbye or is released.
///
/// Beside `@Observable`, write `@ObservationIgnored @Restorable("cursor") var cursor = 0`.
@propertyWrapper
public struct Restorable<Value: Codable & Sendable>: Sendable {
  let box: RestorableBox<Value>

  /// - Parameters:
  ///   - wrappedValue: the value if none is saved.
  ///   - key: its name in the state; unique in the object.
  public init(wrappedValue: Value, _ key: String) { box = RestorableBox(key, wrappedValue) }

  /// Any thread may read and write it, as far as the property's object permits it.
  public var wrappedValue: Value {
    get { box.value }
    nonmutating set { box.write(newValue) }
  }
}

extension Restorable where Value: ExpressibleByNilLiteral {
  /// A property that is nil if there is no saved value.
  public init(_ key: String) { self.init(wrappedValue: nil, key) }
}

protocol RestorableWrapper {
  var property: any RestorableProperty { get }
}

extension Restorable: RestorableWrapper {
  var property: any RestorableProperty { box }
}

protocol RestorableProperty: AnyObject, Sendable {
  var key: String { get }

  /// Whether the program has written it since it was made or restored.
  var isWritten: Bool { get }

  func encoded() throws -> StateNode

  /// Takes the saved value, or throws; earlier writes no longer count.
  func restore(from saved: StateDecoder) throws

  /// Marks `properties` at each write from now on.
  func bind(to properties: RestorableProperties)
}

final class RestorableBox<Value: Codable & Sendable>: RestorableProperty {
  private struct Content {
    var value: Value
    var isWritten = false
    weak var properties: RestorableProperties?
  }

  let key: String
  private let content: Mutex<Content>

  init(_ key: String, _ value: Value) {
    self.key = key
    content = Mutex(Content(value: value))
  }

  var value: Value { content.withLock { $0.value } }
  var isWritten: Bool { content.withLock { $0.isWritten } }

  func write(_ value: Value) {
    content.withLock { content in
      (content.value, content.isWritten) = (value, true)
      return content.properties
    }?.mark()
  }

  func encoded() throws -> StateNode { try StateNode.encoding(value, at: [StateKey(stringValue: key)]) }

  func restore(from saved: StateDecoder) throws {
    content.withLock { $0.isWritten = false }
    let value = try saved.read(Value.self)
    content.withLock { $0.value = value }
  }

  func bind(to properties: RestorableProperties) { content.withLock { $0.properties = properties } }
}
