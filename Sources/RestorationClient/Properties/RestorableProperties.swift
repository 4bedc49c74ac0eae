// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The `@Restorable` properties of one object, which are its state.
///
/// It does not keep the object alive. The values stay after the object, until the session has no use for them.
final class RestorableProperties: Sendable {
  private struct Content {
    /// Whether something was written that no state holds yet.
    var isMarked = false
    /// Whether a push is going to come.
    var isAwaited = false
    /// The actor that the object belongs to, between whose turns the properties go together.
    weak var home: (any Actor)?
    weak var session: SessionDriver?
    var object: ObjectPlan.ObjectID = 0
  }

  private let properties: [any RestorableProperty]
  private let content: Mutex<Content>

  private init(_ properties: [any RestorableProperty], of actor: (any Actor)?) {
    self.properties = properties
    content = Mutex(Content(home: actor))
  }

  private var home: (any Actor)? { content.withLock { $0.home } }

  /// Finds the properties of an object, on the actor that it belongs to: nothing changes it meanwhile.
  ///
  /// Throws a `RestorationError` if two of them have one key.
  static func found(in object: AnyObject, on isolation: isolated (any Actor)?) async throws -> RestorableProperties {
    let (found, actor): ([any RestorableProperty], (any Actor)?) =
      if let actor = object as? any Actor {
        (await Self.inside(of: actor), actor)
      } else {
        (Self.properties(of: Mirror(reflecting: object)), isolation)
      }
    let byKey = Dictionary(grouping: found, by: \.key)
    if let key = byKey.keys.sorted().first(where: { byKey[$0]?.count != 1 }) {
      throw RestorationError(.duplicateKey(key), message: "two properties of the object have the key \"\(key)\"")
    }
    return RestorableProperties(found, of: actor)
  }

  private static func inside(of actor: isolated any Actor) -> [any RestorableProperty] {
    properties(of: Mirror(reflecting: actor))
  }

  /// With those of its superclasses.
  private static func properties(of mirror: Mirror) -> [any RestorableProperty] {
    (mirror.superclassMirror.map { properties(of: $0) } ?? [])
      + mirror.children.compactMap { ($0.value as? any RestorableWrapper)?.property }
  }

  // MARK: Restoring

  /// Takes the saved values over, those that there are, and follows all writes from then on. Returns what could not be
  /// restored, for people: then the property keeps its value.
  func bind(
    to object: RestorableObject,
    of session: SessionDriver,
    restoring saved: RestorableState?
  ) async -> [String] {
    content.withLock { ($0.session, $0.object) = (session, object.id) }
    return await restore(saved, on: home)
  }

  private func restore(_ saved: RestorableState?, on actor: isolated (any Actor)?) -> [String] {
    let members = saved?.members ?? [:]
    var failures: [String] = []
    var isWritten = false
    for property in properties {
      do {
        if let saved = members[property.key] { try property.restore(from: saved) }
      } catch {
        failures.append("\(property.key): \(error)")
      }
      if property.bind(to: self) { isWritten = true }
    }
    if isWritten { mark() }
    return failures
  }

  // MARK: Saving

  /// One of the properties was written.
  func mark() {
    let (session, object) = content.withLock { content -> (SessionDriver?, ObjectPlan.ObjectID) in
      content.isMarked = true
      guard !content.isAwaited else { return (nil, content.object) }
      content.isAwaited = true
      return (content.session, content.object)
    }
    session?.pushSoon(object)
  }

  /// The state to push, as it is between two turns of the object's actor; `nil` if there is nothing new.
  func take() async throws -> RestorableState? { try await take(on: home) }

  private func take(on actor: isolated (any Actor)?) throws -> RestorableState? {
    let isMarked = content.withLock { content in
      defer { (content.isMarked, content.isAwaited) = (false, false) }
      return content.isMarked
    }
    guard isMarked else { return nil }
    let node = StateNode()
    node.becomeObject()
    for property in properties { node.add(try property.encoded(), as: property.key) }
    return RestorableState(node.state)
  }

  /// The state that was taken is not saved: it goes with the next one.
  func putBack() { content.withLock { $0.isMarked = true } }
}
