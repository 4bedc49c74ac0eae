// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// A property that comes back: part of its object's state, under a key of its own.
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
/// `register(_:below:binding:)` restores and binds the properties of an object: before it a property has its initial
/// value, after it what was saved. From then on each write marks the object. What was written in one turn of the
/// object's actor is pushed together, as one state, at most 100 ms later, and at once before the session saves, says
/// goodbye or is released.
///
/// Beside `@Observable`, write `@ObservationIgnored @Restorable("cursor") var cursor = 0`.
@propertyWrapper
public struct Restorable<Value: Codable & Sendable>: Sendable {
  let box: RestorableBox<Value>

  /// - Parameters:
  ///   - wrappedValue: the value if there is no saved one.
  ///   - key: its name in the state; each property of an object has another one.
  public init(wrappedValue: Value, _ key: String) { box = RestorableBox(key, wrappedValue) }

  /// The present value. May be read and written on any thread, as far as the property's object permits it.
  public var wrappedValue: Value {
    get { box.value }
    nonmutating set { box.write(newValue) }
  }
}

extension Restorable where Value: ExpressibleByNilLiteral {
  /// A property that is nil if there is no saved value.
  public init(_ key: String) { self.init(wrappedValue: nil, key) }
}

/// A `Restorable` of any type.
protocol RestorableWrapper {
  var property: any RestorableProperty { get }
}

extension Restorable: RestorableWrapper {
  var property: any RestorableProperty { box }
}

/// The value of a property, wherever the property itself is.
protocol RestorableProperty: AnyObject, Sendable {
  var key: String { get }

  /// Whether the program has written it since it was made or restored.
  var isWritten: Bool { get }

  func encoded() throws -> StateNode

  /// Takes the saved value, or throws; what was written before no longer counts.
  func restore(from saved: StateDecoder) throws

  /// From now on `properties` are marked by a write.
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
