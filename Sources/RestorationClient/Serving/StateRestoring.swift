// SPDX-License-Identifier: Apache-2.0

public import RestorationWire

/// An object that writes its state down and takes it back: what `UIStateRestoring` is in UIKit.
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
/// The session does not keep it alive: what the program releases counts as closed, and is unregistered in the next
/// round or after two seconds in which the session lives on. All calls of one session come one after the other, in the
/// order in which the broker makes them, each on the actor that the object belongs to; the session's own calls may be
/// made from inside.
public protocol StateRestoring: AnyObject, Sendable {
  /// Returns the state of the object to save. A thrown error keeps the state saved before (R12).
  func encodeRestorableState() async throws -> ObjectState

  /// Restores the saved state. Objects that it refers to exist, but may not have their own state yet (R14).
  func decodeRestorableState(_ saved: ObjectState) async

  /// All objects of the application have their states (R21). Once for each object that was restored.
  func applicationFinishedRestoringState() async
}

extension StateRestoring {
  public func applicationFinishedRestoringState() async {}
}

/// State and elements of one object.
public struct ObjectState: Hashable, Sendable {
  /// The object's keys and values.
  public var state: RestorableState
  /// Selected and topmost rows of a view (R28).
  public var elements: [RestorableElement]
  /// Who wrote it and when (R10); `nil` for a state that is not saved yet.
  public let origin: ReservedKeys?

  /// The state of an object to save.
  public init(_ state: RestorableState, elements: [RestorableElement] = []) {
    self.init(state, elements: elements, origin: nil)
  }

  /// The state that a value of any `Codable` type makes, as `RestorableState(encoding:)`.
  public init(encoding value: some Encodable, elements: [RestorableElement] = []) throws {
    self.init(try RestorableState(encoding: value), elements: elements)
  }

  /// The value that the state was made of. Throws a `DecodingError` if the state does not fit the type.
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

/// Knows which element of the model a view shows where, like `UIDataSourceModelAssociation` in UIKit (R28).
///
/// The view may belong to another process. With a data source, selected and topmost rows are found again when the data
/// has changed. The session does not keep the data source alive; it may ask for several elements at the same time.
public protocol ModelAssociating: AnyObject, Sendable {
  /// The element shown there now; `nil` to drop it.
  func modelIdentifierForElement(
    at indexPath: [Int],
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> String?

  /// Where that element is shown now; `nil` if it is gone.
  func indexPathForElement(
    withModelIdentifier identifier: String,
    role: RestorableElement.Role,
    in view: IdentifierPath
  ) async -> [Int]?
}
