// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationWire

/// Objects whose state is their `@Restorable` properties. Pushes become calls one after the other, so that an older
/// state never follows a newer one. Writes during an unanswered push wait for its answer, unless they are flushed.
extension SessionDriver {
  /// Writes within this time are one push; the rest of 100 ms is for the push itself.
  private static let gatherMilliseconds: Int64 = 50

  final class BoundObject {
    let object: RestorableObject
    let properties: RestorableProperties
    /// The last push, until it is a call in its order.
    var submission: Task<Void, Never>?
    /// The last call, until it is answered.
    var answer: Task<Void, Never>?
    /// Calls without an answer.
    var unanswered = 0
    /// Whether a push follows the answer.
    var isDue = false
    var timer: Scheduled<Void>?
    /// Delays the repetition of a refused push.
    var delay = ReconnectDelay()
    /// Why the last push failed, until one is stored.
    var failure: String?

    init(_ object: RestorableObject, _ properties: RestorableProperties) {
      (self.object, self.properties) = (object, properties)
    }
  }

  /// Restores the properties of an object, and pushes them from now on.
  func bind(_ properties: RestorableProperties, of object: RestorableObject, restoring saved: DecodedState) async {
    guard owns(object) else { return }
    unbind(object.id)
    bound[object.id] = BoundObject(object, properties)
    for failure in await properties.bind(to: object, of: self, restoring: saved) {
      events.notify(.propertiesFailed(object, because: failure))
    }
  }

  func unbind(_ id: ObjectPlan.ObjectID) { bound.removeValue(forKey: id)?.timer?.cancel() }

  nonisolated func pushSoon(_ id: ObjectPlan.ObjectID) {
    enter { driver in
      if let bound = driver.bound[id] { driver.push(bound, in: Self.gatherMilliseconds) }
    }
  }

  private func push(_ bound: BoundObject, in milliseconds: Int64) {
    let id = bound.object.id
    bound.timer?.cancel()
    bound.timer = eventLoop.scheduleTask(in: .milliseconds(milliseconds)) {
      self.assumeIsolated { driver in
        if let bound = driver.bound[id] { driver.pushDue(bound) }
      }
    }
  }

  private func pushDue(_ bound: BoundObject) {
    if bound.unanswered > 0 { bound.isDue = true } else { submit(bound) }
  }

  /// Makes a call of the present writes; the task ends when the call has its place in the order.
  @discardableResult
  private func submit(_ bound: BoundObject) -> Task<Void, Never> {
    let former = bound.submission
    let task = Task {
      await former?.value
      await submitNow(bound)
    }
    bound.submission = task
    return task
  }

  private func submitNow(_ bound: BoundObject) async {
    guard bound.properties.isMarked else { return }
    do {
      guard let state = try await bound.properties.take() else { return }
      bound.unanswered += 1
      // It becomes a call before it suspends.
      bound.answer = Task.immediate { await push(state, of: bound) }
    } catch {
      bound.properties.putBack(isAwaited: false)
      report("\(error)", of: bound)
    }
  }

  private func push(_ state: RestorableState, of bound: BoundObject) async {
    do {
      _ = try await perform(.encoding(state, as: bound.object.reference)).answer.get()
      (bound.delay, bound.failure) = (ReconnectDelay(), nil)
    } catch let error as RestorationSessionError
      where ![.outcomeUnknown, .timedOut, .limitExceeded].contains(error.code)
    {
      // The session or the object is gone.
    } catch {
      bound.properties.putBack(isAwaited: true)
      report("\(error)", of: bound)
      let wait = max(Self.gatherMilliseconds, bound.delay.next(hasWork: false))
      // Another object may be bound there by now.
      if self.bound[bound.object.id] === bound { push(bound, in: wait) }
    }
    bound.unanswered -= 1
    guard bound.isDue, bound.unanswered == 0 else { return }
    bound.isDue = false
    submit(bound)
  }

  private func report(_ failure: String, of bound: BoundObject) {
    guard failure != bound.failure else { return }
    bound.failure = failure
    events.notify(.propertiesFailed(bound.object, because: failure))
  }

  /// Turns the writes of one object, or all, into calls before all later calls. Does not wait for the answers.
  func flush(_ object: RestorableObject? = nil) async {
    let ids = object.map { [$0.id] } ?? bound.keys.sorted()
    for submission in ids.compactMap({ bound[$0] }).map({ submit($0) }) { await submission.value }
  }
}
