// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// A fact about an application. `handOn` lists who hears of it, in which order.
enum Fact {
  /// A path that led nowhere leads to an object now.
  case appeared
  case claimed(NodeID)
  /// The owner has released the object. It is gone for good or can be claimed again.
  case released(NodeID, isGone: Bool)
  /// The content of the head is about to be replaced, or must not be restored.
  case headGivenUp
  /// A session began, or the archive was opened with its former sessions.
  case sessionsChanged
  case servedChanged(SessionID)
  /// A lost session can be called again.
  case sessionReturned(SessionID)
  case sessionEnded(Session, SessionEnding)
  case clientLeft(ClientID)
  case delegateJoined
  case classesRegistered
  /// An owner has confirmed a state, or no longer holds back the end of the restoration.
  case windowsClosed
  /// A state was proven, or is no longer suspected.
  case trialsEnded
  case restorationEnded
  case deliverable
  /// A transaction failed, so the archive is opened again.
  case archiveReopened
}

extension Application {
  /// Reports a fact. Its consequences are complete when this returns, unless it follows from another fact that is still
  /// being handled; then they come after those of that fact.
  func note(_ fact: Fact) {
    guard turn.note(fact) else { return }
    while let fact = turn.fact {
      handOn(fact)
      turn.endFact()
    }
  }

  private func handOn(_ fact: Fact) {
    switch fact {
    case .appeared: admitWaiting()
    case .claimed(let node): drive(.claimed(node))
    case .released(let node, let isGone): drive(.released(node, isGone: isGone))
    case .headGivenUp:
      endRound(.interrupted)
      trials.empty()
      deliveries.forgetAll()
      restoring.giveHeadUp()
      drive(.discarded)
    case .sessionsChanged:
      updatePulling()
      drive(.rolesChanged)
      deliverNext()
    case .servedChanged(let session):
      sessionResumed(session)
      resumeDelivering(to: session)
      settleRipe()
    case .sessionReturned(let session):
      sessionResumed(session)
      drive(.returned(session))
      if let session = sessions[session] { askForUnstored(session.objects.values) }
      resumeDelivering(to: session)
    case .sessionEnded(let session, let ending):
      parentWaits.abandon(in: &turn) { $0.session == session.id }
      trials.abandon(in: &turn) { $0.session == session.id }
      updatePulling()
      loseCalls(of: session.id)
      saving.pull { $0.ended(session.id) }
      trials.sessionEnded(session.id)
      providers.remove(session.id)
      deliveries.forget(session.id)
      drive(.ended(session.id))
      // Before the run ends: a run that ends with its last goodbye still counts as restored.
      checkCompletion()
      noteOutcome(of: session, ending)
    case .clientLeft(let client):
      saving.forget(client)
      forgetPolls(of: client)
      loseCalls(of: client)
      parentWaits.abandon(in: &turn) { $0.caller.client == client }
      trials.abandon(in: &turn) { $0.caller.client == client }
      jobs.endExports(of: client, in: &turn)
    case .delegateJoined:
      drive(.joined(at: turn.now.monotonic))
      locate { $0.record.kind == .viewController && $0.record.restorationClass == nil }
    case .classesRegistered: drive(.classesChanged)
    case .windowsClosed:
      checkCompletion()
      drive(.rolesChanged)
      goOnHandingOut()
    case .trialsEnded: goOnHandingOut()
    case .deliverable: deliverNext()
    case .restorationEnded:
      restorationEnded()
      resumeDelivering()
      restorePostponed()
    case .archiveReopened:
      endRound(.interrupted)
      abandonRestoration()
      abandonResolutions()
      deliveries.archiveReopened()
      let error = ErrorObject.storeFailed("the archive was reopened while the call waited", indeterminate: false)
      trials.abandon(for: error, in: &turn) { _ in true }
    }
  }
}
