// SPDX-License-Identifier: Apache-2.0

/// Whether a broker may write an archive that follows its user, and what is next on the way there and back: events in,
/// actions out.
///
/// All times are in milliseconds of a clock that counts sleep as well. They decide only when to ask and when to stop:
/// whether a write counts says the replica. What a lease allows ends a margin before anybody else may take it, counted
/// from before it was asked for; `permission` looks at the clock itself, so that a process that was frozen does not
/// write first and then hear of it.
package struct LeaseHolding: Hashable, Sendable {
  package enum Action: Hashable, Sendable {
    /// Ask for the lease, and tell `granted` or `refused`.
    case acquire
    /// Make the copy what the replica has, and tell `caughtUp` or `diverged`.
    case catchUp
    /// Tell whoever opens the archive that it cannot be opened.
    case refuse(ReplicaError.Kind)
    /// This host waits for the archive: save it, end its sessions, close it, and tell `closed`.
    case leave(host: String)
    /// Ship what is left, and tell `flushed`.
    case flush
    /// Give this lease back, and tell `released`.
    case release(ReplicaLease)
    /// It is over: end the sessions and close the archive, whose file stays. The host that has it, if that is known.
    case lose(host: String?)
    /// Tell `timePassed` at this time.
    case wait(until: Int64)
  }

  package enum Permission: Hashable, Sendable {
    case granted
    /// The archive is not open.
    case closed
    /// The replica has not been heard of for so long that another host may have the archive.
    case lapsed
    case lost(host: String?)
  }

  private enum Phase: Hashable {
    case free
    /// The question was put at `since`.
    case asking(since: Int64)
    case catchingUp
    case held
    /// The lease is void, because another server has taken over: asked again, or about to be. Writes go on meanwhile,
    /// unless the archive is closed already.
    case claiming(since: Int64, isClosed: Bool)
    /// The broker is on its way out; it still writes what it saves last.
    case leaving
    case flushing
    /// Somebody may have come meanwhile who wants to open it.
    case releasing(isAwaited: Bool)
    case lost(host: String?)
  }

  private var phase = Phase.free
  private let term: LeaseTerm
  /// The newest one that was granted; `nil` while none is held.
  package private(set) var lease: ReplicaLease?
  /// Until when the lease can be relied upon.
  private var until: Int64 = 0

  package init(_ term: LeaseTerm) { self.term = term }
}

extension LeaseHolding {
  package func permission(at now: Int64) -> Permission {
    switch phase {
    case .held, .claiming(_, isClosed: false), .leaving: now < until ? .granted : .lapsed
    case .free, .asking, .catchingUp, .claiming, .flushing, .releasing: .closed
    case .lost(let host): .lost(host: host)
    }
  }

  /// The lease is void, and it is not known yet whether it is granted anew.
  package var isClaiming: Bool { if case .claiming = phase { true } else { false } }

  // MARK: Taking it

  /// Somebody opens the archive.
  package mutating func opened(at now: Int64) -> [Action] {
    switch phase {
    case .free, .lost:
      phase = .asking(since: now)
      return [.acquire]
    // It was closed a moment ago, and is still ours.
    case .flushing: phase = .held
    case .claiming(let since, _): phase = .claiming(since: since, isClosed: false)
    case .releasing: phase = .releasing(isAwaited: true)
    case .asking, .catchingUp, .held, .leaving: break
    }
    return []
  }

  package mutating func granted(_ lease: ReplicaLease) -> [Action] {
    switch phase {
    case .asking(let since):
      phase = .catchingUp
      until = since + term.reliable
    // Writes go on while it is compared; `diverged` ends them.
    case .claiming(let since, _): until = max(until, since + term.reliable)
    case .free, .catchingUp, .held, .leaving, .flushing, .releasing, .lost: return []
    }
    self.lease = lease
    return [.catchUp]
  }

  package mutating func refused(_ kind: ReplicaError.Kind, at now: Int64) -> [Action] {
    switch phase {
    case .asking:
      phase = .free
      return [.refuse(kind)]
    case .claiming:
      switch kind {
      case .elsewhere(let holder): return lose(to: holder.host)
      case .fenced(let host): return lose(to: host)
      case .voided, .away, .unknown, .uncovered, .quota: return [.wait(until: now + LeaseTerm.retry)]
      case .gap, .tooNew, .key, .refused: return lose(to: nil)
      }
    case .free, .catchingUp, .held, .leaving, .flushing, .releasing, .lost: return []
    }
  }

  /// The time has come to claim the lease anew.
  package mutating func timePassed(at now: Int64) -> [Action] {
    guard case .claiming(_, let isClosed) = phase else { return [] }
    phase = .claiming(since: now, isClosed: isClosed)
    return [.acquire]
  }

  /// The copy continues the replica, or is what it has, and that is noted.
  package mutating func caughtUp() -> [Action] {
    switch phase {
    case .catchingUp, .claiming(_, isClosed: false): phase = .held
    case .claiming:
      phase = .flushing
      return [.flush]
    case .free, .asking, .held, .leaving, .flushing, .releasing, .lost: break
    }
    return []
  }

  /// The copy could not be made what the replica has, for this reason.
  package mutating func failed(_ kind: ReplicaError.Kind, at now: Int64) -> [Action] {
    switch phase {
    case .catchingUp:
      defer { (phase, lease) = (.free, nil) }
      return release() + [.refuse(kind)]
    case .claiming: return refused(kind, at: now)
    case .free, .asking, .held, .leaving, .flushing, .releasing, .lost: return []
    }
  }

  /// What is at the replica does not begin with what the users of the open archive have seen.
  package mutating func diverged(from host: String?) -> [Action] { release() + lose(to: host) }

  /// Otherwise others would wait for an unused lease.
  private func release() -> [Action] { lease.map { [.release($0)] } ?? [] }

  // MARK: Keeping it

  /// The lease is still the newest; `asked`: when that was asked.
  package mutating func renewed(_ lease: ReplicaLease, asked: Int64) {
    guard lease == self.lease else { return }
    until = max(until, asked + term.reliable)
  }

  /// The replica says that a later lease has ended this one.
  package mutating func fenced(_ lease: ReplicaLease, by host: String?) -> [Action] {
    guard lease == self.lease else { return [] }
    // The replica may not know a void lease; the claim decides.
    if case .claiming = phase { return [] }
    return lose(to: host)
  }

  /// Another server has taken over, which may not know the lease.
  package mutating func voided(_ lease: ReplicaLease, at now: Int64) -> [Action] {
    guard lease == self.lease else { return [] }
    switch phase {
    case .held, .leaving, .flushing:
      phase = .claiming(since: now, isClosed: phase == .flushing)
      return [.acquire]
    // Nothing is left to ship.
    case .releasing: return released(at: now)
    case .free, .asking, .catchingUp, .claiming, .lost: return []
    }
  }

  private mutating func lose(to host: String?) -> [Action] {
    lease = nil
    let former = phase
    phase = .free
    switch former {
    case .held, .claiming(_, isClosed: false), .leaving:
      phase = .lost(host: host)
      return [.lose(host: host)]
    case .catchingUp, .releasing(isAwaited: true): return [.refuse(.fenced(host: host))]
    // It is no longer in use; the next opening finds out.
    case .free, .asking, .claiming, .flushing, .releasing, .lost: return []
    }
  }

  // MARK: Giving it back

  package mutating func wanted(_ lease: ReplicaLease, by host: String) -> [Action] {
    guard lease == self.lease, phase == .held else { return [] }
    phase = .leaving
    return [.leave(host: host)]
  }

  /// The archive is no longer in use.
  package mutating func closed() -> [Action] {
    switch phase {
    case .held, .leaving:
      phase = .flushing
      return [.flush]
    case .claiming(let since, _): phase = .claiming(since: since, isClosed: true)
    case .lost: phase = .free
    case .free, .asking, .catchingUp, .flushing, .releasing: break
    }
    return []
  }

  /// Everything is at the replica, or there is no time left for the rest.
  package mutating func flushed() -> [Action] {
    switch phase {
    case .flushing:
      phase = .releasing(isAwaited: false)
      return release()
    case .claiming(_, isClosed: true): (phase, lease) = (.free, nil)
    case .free, .asking, .catchingUp, .held, .claiming, .leaving, .releasing, .lost: break
    }
    return []
  }

  /// The lease was given back, or could not be: then it ends by itself.
  package mutating func released(at now: Int64) -> [Action] {
    guard case .releasing(let isAwaited) = phase else { return [] }
    (phase, lease) = (.free, nil)
    return isAwaited ? opened(at: now) : []
  }
}
