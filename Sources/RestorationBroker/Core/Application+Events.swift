// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The events of an application. Each is announced by the code that decides it.
extension Application {
  /// Notifies subscribers. `event` is called only if there are any.
  func announce<Event: RestorationEvent>(_ condition: Announcement.Condition = .stored, _ event: () -> Event) {
    turn.announce(condition, event)
  }

  static func identity(of session: Session?) -> SessionIdentity {
    SessionIdentity(process: session?.facts.role, pid: session?.facts.process?.pid)
  }

  func announceBeginning(of session: Session) {
    announce {
      let situation = session.facts.isDetached ? nil : situation(for: session)
      return SessionBegan().with { message in
        message.session = Application.identity(of: session)
        message.delegate = session.facts.isDelegate
        message.detached = session.facts.isDetached
        message.restoration = situation.map { SessionBegan.Restoration(state: $0.state, reason: $0.reason) }
      }
    }
  }

  func announceEnd(of session: Session, _ ending: SessionEnding) {
    announce {
      SessionEnded().with {
        $0.session = Application.identity(of: session)
        $0.ending = ending.wire
        $0.objects = session.isDiscarded ? 0 : session.objects.count
        $0.outcome = Application.outcome(of: session, ending)
      }
    }
  }

  func announceRegistration(of node: Node, _ claim: Node.Claim, by session: Session) {
    announce {
      ObjectRegistered().with {
        $0.object = claim.handle
        $0.path = tree.path(of: node)
        $0.kind = node.record.kind.wire
        $0.session = Application.identity(of: session)
      }
    }
  }

  /// The node must still be claimed, unless it was vacant. `caller` removes a vacant one.
  func announceUnregistration(
    of node: Node,
    _ cause: ObjectUnregistered.Cause,
    stateKept: Bool,
    by caller: Session? = nil
  ) {
    announce {
      ObjectUnregistered().with {
        $0.object = node.claim?.handle
        // A move may have put another node in its place.
        $0.path = tree.path(of: tree.node(node.id) ?? node)
        $0.session = Application.identity(of: node.claim.flatMap { sessions[$0.session] } ?? caller)
        $0.cause = cause
        $0.stateKept = stateKept
      }
    }
  }

  /// Announces a stored state; `caller` is `nil` if the broker asked for it. If no caller waits for an answer,
  /// subscribers also learn of a failed store (R15).
  func announceEncoding(at node: Node, bytes: Int, by session: Session?, for caller: Caller?) {
    announce {
      StateEncoded().with {
        $0.object = node.claim?.handle
        $0.path = node === tree.applicationNode ? IdentifierPath([]) : tree.path(of: node)
        $0.bytes = bytes
        $0.sequence = node.state?.sequence ?? sequence
        $0.session = Application.identity(of: session)
      }
    }
    guard caller?.call == nil else { return }
    announce(.notStored) {
      EncodeFailed().with {
        $0.object = node.claim?.handle
        $0.path = tree.path(of: node)
        $0.session = Application.identity(of: session)
        $0.error = EncodeFailed.Failure(.storeFailed("", indeterminate: false))
      }
    }
  }

  func announceOpening(damage: String?) {
    if let damage { announce(.settled) { ArchiveDamaged().with { $0.message = damage } } }
    announce(.settled) {
      ArchiveOpened().with {
        $0.archive = turn.archive
        $0.generation = generations.newest?.generation
        $0.objects = tree.count
        $0.bytes = budget.states
      }
    }
  }

  func announceDiscard(_ cause: ApplicationDiscarded.Cause, reason: String? = nil, generations: Bool = false) {
    // The reason is for people, so its beginning is enough.
    let reason = reason.map { String($0.unicodeScalars.prefix(200)) }
    announce {
      ApplicationDiscarded().with {
        $0.cause = cause
        $0.reason = reason
        $0.generations = generations
      }
    }
  }
}

extension SessionEnding {
  var wire: SessionEnded.Ending {
    switch self {
    case .closed: .closed
    case .userQuit: .userQuit
    case .restart: .restart
    case .logout: .logout
    case .stopped: .stopped
    case .crashed: .crashed
    case .expired: .expired
    }
  }
}
