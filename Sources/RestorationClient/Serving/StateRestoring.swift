// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// An object that encodes and decodes its state, like `UIStateRestoring` in UIKit.
///
/// ```swift
/// @MainActor final class Editor: StateRestoring {
///   var cursor = 0
///   func encodeRestorableState() -> ObjectState { ["cursor": .int(cursor)] }
///   func decodeRestorableState(_ saved: ObjectState) { cursor = saved.state["cursor"]?.int ?? 0 }
/// }
/// let object = try await session.register(ObjectRegistration("Editor"), restoring: editor)
/// ```
///
/// The session does not keep it alive: a released object counts as closed. It is unregistered in the next round, or
/// after the session has lived on for two seconds. The calls of one session come in the broker's order, one after the
/// other, on the object's actor, and after `register` has returned. The object may call the session from inside.
public protocol StateRestoring: AnyObject, Sendable {
  /// Returns the state of the object to save. A thrown error keeps the state saved before (R12).
  func encodeRestorableState() async throws -> ObjectState

  /// Restores the saved state. Referenced objects exist, but may not have their own state yet (R14).
  func decodeRestorableState(_ saved: ObjectState) async

  /// All objects of the application have their states (R21). Called once for each restored object.
  func applicationFinishedRestoringState() async
}

extension StateRestoring {
  public func applicationFinishedRestoringState() async {}
}

public struct ObjectState: Hashable, Sendable {
  /// The object's keys and values.
  public var state: RestorableState
  /// Selected and topmost rows of a view (R28).
  public var elements: [RestorableElement]
  /// Who wrote it and when (R10); `nil` for a state that is not saved yet.
  public let origin: ReservedKeys?

  public init(_ state: RestorableState, elements: [RestorableElement] = []) {
    self.init(state, elements: elements, origin: nil)
  }

  /// The state of a `Codable` value, as `RestorableState(encoding:)` makes it.
  public init(encoding value: some Encodable, elements: [RestorableElement] = []) throws {
    self.init(try RestorableState(encoding: value), elements: elements)
  }

  /// The encoded value. Throws a `DecodingError` if the state does not fit the type.
  public func decode<Value: Decodable>(_ type: Value.Type) throws -> Value { try state.decode(type) }

  init(_ state: RestorableState, elements: [RestorableElement], origin: ReservedKeys?) {
    (self.state, self.elements, self.origin) = (state, elements, origin)
  }

  /// `nil` if there is no state.
  init?(_ decoded: DecodedState) {
    guard let state = decoded.state else { return nil }
    self.init(state, elements: decoded.elements, origin: decoded.origin)
  }
}

extension ObjectState: ExpressibleByDictionaryLiteral {
  /// A state with these values: `["cursor": 17]`.
  public init(dictionaryLiteral elements: (String, RestorableValue)...) {
    self.init(RestorableState(Dictionary(elements) { _, last in last }))
  }
}

/// Associates a view's rows with elements of the model, like `UIDataSourceModelAssociation` in UIKit (R28): selected
/// and topmost rows are found again after the data has changed. The view may belong to another process. The session
/// does not keep the data source alive, and may ask for several elements at the same time.
public protocol ModelAssociating: AnyObject, Sendable {
  /// The element shown at the place; `nil` drops it.
  func modelIdentifierForElement(
    at indexPath: [Int],
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> String?

  /// The present place of the element; `nil` if it is gone.
  func indexPathForElement(
    withModelIdentifier identifier: String,
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> [Int]?
}
