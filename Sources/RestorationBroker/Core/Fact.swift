// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// What has come true in an application, for whoever has to act on it. It names nobody: who hears of it, and in which
/// order, stands in `handOn`.
enum Fact {
  /// A path leads somewhere that led nowhere before.
  case appeared
  case claimed(NodeID)
  /// The owner has let go of the object, which is gone for good or may be claimed again.
  case released(NodeID, isGone: Bool)
  /// What the head holds is about to be replaced, or is not to be restored.
  case headGivenUp
  /// The archive was opened, and sessions of before are there, or a session began.
  case sessionsChanged
  /// The session serves other methods.
  case servedChanged(SessionID)
  /// A session that was lost can be called again.
  case sessionReturned(SessionID)
  case sessionEnded(Session, SessionEnding)
  case clientLeft(ClientID)
  case delegateJoined
  case classesRegistered
  /// An owner has answered for a state, or has stopped holding back the end of the restoration.
  case windowsClosed
  /// A state was proven, or is no longer suspected.
  case trialsEnded
  case restorationEnded
  /// A transaction has failed: the archive is opened anew.
  case archiveReopened
}

extension Application {
  /// Says what has come true. What follows from it is done before this returns, unless it follows from another fact
  /// that is being handed on: then after that.
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
      interruptRound()
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
      saving.ended(session.id)
      trials.sessionEnded(session.id)
      providers.remove(session.id)
      deliveries.forget(session.id)
      drive(.ended(session.id))
      // Before the run ends: one that ends with the last goodbye has still been restored.
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
    case .restorationEnded:
      restorationEnded()
      resumeDelivering()
      restorePostponed()
    case .archiveReopened:
      interruptRound()
      abandonRestoration()
      abandonResolutions()
      deliveries.archiveReopened()
      let error = ErrorObject.storeFailed("the archive was reopened while the call waited", indeterminate: false)
      trials.abandon(for: error, in: &turn) { _ in true }
    }
  }
}
