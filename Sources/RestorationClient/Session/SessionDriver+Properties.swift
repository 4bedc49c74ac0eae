// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import RestorationWire

/// The objects whose state is their `@Restorable` properties.
///
/// A push becomes a call in its order, and is answered later. One becomes a call after the other, so that an older
/// state never follows a newer one. What is written while a push has no answer waits for it, unless it is flushed.
extension SessionDriver {
  /// What was written within this time is one push; some is left for the push itself.
  private static let gatherMilliseconds: Int64 = 50
  /// How long a session that the program has released waits for its last states to be stored.
  private static let releaseSeconds: Int64 = 5

  final class BoundObject {
    let object: RestorableObject
    let properties: RestorableProperties
    /// The last push, until it is a call in its order.
    var submission: Task<Void, Never>?
    /// The last call, until it is answered.
    var answer: Task<Void, Never>?
    /// Calls without an answer.
    var unanswered = 0
    /// Whether a push is to follow the answer.
    var isDue = false
    /// The next push.
    var timer: Scheduled<Void>?
    /// Before a push that was refused is made again.
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

  /// Nothing more is pushed.
  func unbind(_ id: ObjectPlan.ObjectID) { bound.removeValue(forKey: id)?.timer?.cancel() }

  /// Something was written.
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

  /// Makes a call of what was written until now; the task ends when it has its place among the calls.
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
      // Before it suspends, it is a call.
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
      // The session or the object is gone, and with it the properties' state.
    } catch {
      bound.properties.putBack(isAwaited: true)
      report("\(error)", of: bound)
      let wait = max(Self.gatherMilliseconds, bound.delay.next(hasWork: false))
      // Unless another object is bound there meanwhile.
      if self.bound[bound.object.id] === bound { push(bound, in: wait) }
    }
    bound.unanswered -= 1
    guard bound.isDue, bound.unanswered == 0 else { return }
    bound.isDue = false
    submit(bound)
  }

  /// Tells of a failure, once.
  private func report(_ failure: String, of bound: BoundObject) {
    guard failure != bound.failure else { return }
    bound.failure = failure
    events.notify(.propertiesFailed(bound.object, because: failure))
  }

  /// Ends the session when what was written is stored, or after the time of a goodbye.
  nonisolated func release() { enter { $0.leave() } }

  private func leave() {
    guard !bound.isEmpty || beginning.memory != nil, !machine.isEnding else { return act(machine.giveUp()) }
    func begin() -> Scheduled<Void> { eventLoop.scheduleTask(in: .seconds(Self.releaseSeconds)) { self.abandon() } }
    let begun = beginning.memory == nil ? begin() : nil
    Task {
      // What is only in memory would be lost, and the objects' actors may be busy for longer than that.
      await flush()
      let limit = begun ?? begin()
      await look()
      for bound in Array(bound.values) { await bound.answer?.value }
      await toldAll()
      limit.cancel()
      act(machine.giveUp())
    }
  }

  /// Makes calls of what was written until now, of one object or all; they come before all later calls. That they are
  /// answered is not awaited.
  func flush(_ object: RestorableObject? = nil) async {
    let ids = object.map { [$0.id] } ?? bound.keys.sorted()
    for submission in ids.compactMap({ bound[$0] }).map({ submit($0) }) { await submission.value }
  }
}
