// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationWire

/// The objects whose state is their `@Restorable` properties. Each is pushed by one task after the other, so that an
/// older state never follows a newer one.
extension SessionDriver {
  /// What was written within this time is one push; some is left for the push itself.
  private static let gatherMilliseconds: Int64 = 50
  /// How long a session that the program has released waits for its last states to be stored.
  private static let releaseSeconds: Int64 = 5

  struct BoundObject {
    let object: RestorableObject
    let properties: RestorableProperties
    /// The push under way, or the last one.
    var push: Task<Void, Never>?
  }

  /// Restores the properties of an object, and pushes them from now on.
  func bind(_ properties: RestorableProperties, of object: RestorableObject, restoring saved: RestorableState?) async {
    guard owns(object) else { return }
    bound[object.id] = BoundObject(object: object, properties: properties)
    for failure in await properties.bind(to: object, of: self, restoring: saved) {
      events.notify(.propertiesFailed(object, because: failure))
    }
  }

  /// Something was written.
  nonisolated func pushSoon(_ id: ObjectPlan.ObjectID) {
    eventLoop.scheduleTask(in: .milliseconds(Self.gatherMilliseconds)) {
      self.assumeIsolated { _ = $0.push(id) }
    }
  }

  private func push(_ id: ObjectPlan.ObjectID) -> Task<Void, Never>? {
    guard let bound = bound[id] else { return nil }
    let task = Task {
      await bound.push?.value
      await pushNow(bound)
    }
    self.bound[id]?.push = task
    return task
  }

  private func pushNow(_ bound: BoundObject) async {
    do {
      guard let state = try await bound.properties.take() else { return }
      _ = try await perform(.encoding(state, as: bound.object.reference)).answer.get()
    } catch let error as RestorationSessionError where error.code != .outcomeUnknown && error.code != .timedOut {
      // The session or the object is gone, and with it the properties' state.
    } catch {
      bound.properties.putBack()
      events.notify(.propertiesFailed(bound.object, because: "\(error)"))
    }
  }

  /// Ends the session when what was written is stored, or after the time of a goodbye.
  nonisolated func release() { enter { $0.leave() } }

  private func leave() {
    guard !bound.isEmpty, !machine.isEnding else { return act(machine.giveUp()) }
    let limit = eventLoop.scheduleTask(in: .seconds(Self.releaseSeconds)) { self.abandon() }
    Task {
      await flush()
      limit.cancel()
      act(machine.giveUp())
    }
  }

  /// Pushes what was written until now; returns when it is stored.
  func flush() async {
    for task in bound.keys.sorted().compactMap({ push($0) }) { await task.value }
  }
}
