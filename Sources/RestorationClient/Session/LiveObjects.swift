// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire
internal import Synchronization

/// The objects of a session by handle and by path, for any thread.
final class LiveObjects: Sendable {
  private struct Index {
    var byHandle: [Int64: RestorableObject] = [:]
    var byPath: [IdentifierPath: RestorableObject] = [:]

    /// Objects may change their paths one after the other: the path may be another object's by now.
    mutating func removePath(of object: RestorableObject) {
      if let path = object.path, byPath[path] === object { byPath[path] = nil }
    }

    mutating func removeHandle(of object: RestorableObject) {
      if byHandle[object.handle] === object { byHandle[object.handle] = nil }
    }
  }

  private let index = Mutex(Index())

  func object(handle: Int64) -> RestorableObject? { index.withLock { $0.byHandle[handle] } }

  func object(at path: IdentifierPath) -> RestorableObject? { index.withLock { $0.byPath[path] } }

  func registered(_ object: RestorableObject, as registered: RegisteredObject) {
    index.withLock { index in
      index.removePath(of: object)
      index.removeHandle(of: object)
      object.registered(registered)
      index.byHandle[registered.object] = object
      if let path = registered.path { index.byPath[path] = object }
    }
  }

  func moved(_ object: RestorableObject, to path: IdentifierPath?, included: Bool? = nil) {
    index.withLock { index in
      index.removePath(of: object)
      object.moved(to: path, included: included)
      if let path { index.byPath[path] = object }
    }
  }

  func remove(_ object: RestorableObject) {
    index.withLock { index in
      index.removePath(of: object)
      index.removeHandle(of: object)
    }
  }

  /// The broker has lost the session, and may give the handles to other objects.
  func forgetHandles() { index.withLock { $0.byHandle = [:] } }
}
