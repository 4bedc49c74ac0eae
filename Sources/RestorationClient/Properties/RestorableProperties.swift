// SPDX-License-Identifier: Apache-2.0

internal import Synchronization

/// The `@Restorable` properties of one object. They do not keep it alive. The values outlive the object, until the
/// session has no use for them.
final class RestorableProperties: Sendable {
  private struct Content {
    /// Whether a write is in no state yet.
    var isMarked = false
    /// Whether a push follows.
    var isAwaited = false
    /// The actor of the object; writes of one turn are pushed together.
    weak var home: (any Actor)?
    weak var session: SessionDriver?
    var object: ObjectPlan.ObjectID = 0
    /// Saved values of unknown keys or other types. They stay in the state.
    var unread: [String: SavedValue] = [:]
  }

  private let properties: [any RestorableProperty]
  private let content: Mutex<Content>

  private init(_ properties: [any RestorableProperty], of actor: (any Actor)?) {
    self.properties = properties
    content = Mutex(Content(home: actor))
  }

  private var home: (any Actor)? { content.withLock { $0.home } }

  /// Finds the properties of an object, on its actor: nothing changes it meanwhile. Throws a `RestorationError` if two
  /// properties have one key.
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

  /// Restores the properties and follows all writes from then on. Returns the failures, for people: those properties
  /// keep their values.
  func bind(
    to object: RestorableObject,
    of session: SessionDriver,
    restoring saved: DecodedState
  ) async -> [String] {
    content.withLock { ($0.session, $0.object) = (session, object.id) }
    return await restore(saved, on: home)
  }

  private func restore(_ saved: DecodedState, on actor: isolated (any Actor)?) -> [String] {
    var members: [String: StateDecoder] = [:]
    var failures: [String] = []
    do {
      if let state = saved.state {
        members = try state.members
      } else if saved.status != .none {
        failures.append("the saved state is withheld (\(saved.status.rawValue)); the next write replaces it")
      }
    } catch {
      failures.append("\(error)")
    }
    for property in properties {
      do {
        if let saved = members[property.key] { try property.restore(from: saved) }
        members[property.key] = nil
      } catch {
        failures.append("\(property.key): \(error)")
      }
    }
    let unread = members.mapValues(\.asSaved)
    content.withLock { $0.unread = unread }
    for property in properties { property.bind(to: self) }
    // An earlier write is not saved yet, and no further write may come.
    if properties.contains(where: \.isWritten) { mark() }
    return failures
  }

  // MARK: Saving

  func mark() {
    let (session, object) = content.withLock { content -> (SessionDriver?, ObjectPlan.ObjectID) in
      content.isMarked = true
      guard !content.isAwaited else { return (nil, content.object) }
      content.isAwaited = true
      return (content.session, content.object)
    }
    session?.pushSoon(object)
  }

  var isMarked: Bool { content.withLock { $0.isMarked } }

  /// The state to push, as between two turns of the object's actor; `nil` if nothing is new.
  func take() async throws -> RestorableState? { try await take(on: home) }

  private func take(on actor: isolated (any Actor)?) throws -> RestorableState? {
    let (isMarked, unread) = content.withLock { content in
      defer { (content.isMarked, content.isAwaited) = (false, false) }
      return (content.isMarked, content.unread)
    }
    guard isMarked else { return nil }
    let node = StateNode()
    node.becomeObject()
    for (key, value) in unread { node.add(StateNode(value), as: key) }
    for property in properties where property.isWritten || unread[property.key] == nil {
      node.add(try property.encoded(), as: property.key)
    }
    return RestorableState(node.state)
  }

  /// Returns a state that was not saved; the next push includes it.
  func putBack(isAwaited: Bool) { content.withLock { ($0.isMarked, $0.isAwaited) = (true, $0.isAwaited || isAwaited) } }
}
