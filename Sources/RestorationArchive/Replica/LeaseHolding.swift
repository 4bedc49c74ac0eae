// SPDX-License-Identifier: Apache-2.0

/// Decides whether a broker may write an archive that follows its user, and which step comes next. Events in, actions
/// out.
///
/// All times are milliseconds of a clock that counts sleep. They decide when to ask and when to stop; whether a write
/// counts is the replica's decision. This host stops a margin before another may take the lease, counted from before
/// the request. `permission` reads the clock itself, so that a process that was frozen cannot write before it notices.
package struct LeaseHolding: Hashable, Sendable {
  package enum Action: Hashable, Sendable {
    /// Request the lease, then call `granted` or `refused`.
    case acquire
    /// Bring the copy to the replica's contents, then call `caughtUp` or `diverged`.
    case catchUp
    /// Fail the opening of the archive with this error.
    case refuse(ReplicaError.Kind)
    /// This host waits for the archive: save it, end its sessions, close it, then call `closed`.
    case leave(host: String)
    /// Ship the rest, then call `flushed`.
    case flush
    /// Release this lease, then call `released`.
    case release(ReplicaLease)
    /// The lease is lost: end the sessions and close the archive; its file stays. `host` has it now, if known.
    case lose(host: String?)
    /// Call `timePassed` at this time.
    case wait(until: Int64)
  }

  package enum Permission: Hashable, Sendable {
    case granted
    case closed
    /// The replica has been silent for so long that another host may have the archive.
    case lapsed
    case lost(host: String?)
  }

  private enum Phase: Hashable {
    case free
    case asking(since: Int64)
    case catchingUp
    case held
    /// The replica does not know the lease, which is requested again. Writes continue, unless the archive is closed
    /// already.
    case claiming(since: Int64, isClosed: Bool)
    /// The broker is leaving the archive; it may still write its last save.
    case leaving
    case flushing
    /// `isAwaited`: another opening has begun meanwhile.
    case releasing(isAwaited: Bool)
    case lost(host: String?)
  }

  private var phase = Phase.free
  private let term: LeaseTerm
  /// The newest lease granted; `nil` while none is held.
  package private(set) var lease: ReplicaLease?
  /// The lease is reliable until this time.
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

  /// The lease is void and a new grant is pending.
  package var isClaiming: Bool { if case .claiming = phase { true } else { false } }

  // MARK: Taking it

  package mutating func opened(at now: Int64) -> [Action] {
    switch phase {
    case .free, .lost:
      phase = .asking(since: now)
      return [.acquire]
    // The archive was just closed and the lease is still ours.
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
    // Writes continue during the comparison; `diverged` ends them.
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

  /// Call when the time of `wait` has come.
  package mutating func timePassed(at now: Int64) -> [Action] {
    guard case .claiming(_, let isClosed) = phase else { return [] }
    phase = .claiming(since: now, isClosed: isClosed)
    return [.acquire]
  }

  /// The copy equals or continues the replica, and the note is durable.
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

  /// The copy could not be brought to the replica's contents.
  package mutating func failed(_ kind: ReplicaError.Kind, at now: Int64) -> [Action] {
    switch phase {
    case .catchingUp:
      defer { (phase, lease) = (.free, nil) }
      return release() + [.refuse(kind)]
    case .claiming: return refused(kind, at: now)
    case .free, .asking, .held, .leaving, .flushing, .releasing, .lost: return []
    }
  }

  /// The replica's contents do not begin with what the open archive's users have seen.
  package mutating func diverged(from host: String?) -> [Action] { release() + lose(to: host) }

  /// Otherwise other hosts would wait for an unused lease.
  private func release() -> [Action] { lease.map { [.release($0)] } ?? [] }

  // MARK: Keeping it

  /// The lease is still the newest.
  ///
  /// - Parameter asked: when the question was sent.
  package mutating func renewed(_ lease: ReplicaLease, asked: Int64) {
    guard lease == self.lease else { return }
    until = max(until, asked + term.reliable)
  }

  package mutating func fenced(_ lease: ReplicaLease, by host: String?) -> [Action] {
    guard lease == self.lease else { return [] }
    // The replica may not know a void lease; the pending claim decides.
    if case .claiming = phase { return [] }
    return lose(to: host)
  }

  /// The replica does not know the lease.
  package mutating func voided(_ lease: ReplicaLease, at now: Int64) -> [Action] {
    guard lease == self.lease else { return [] }
    switch phase {
    case .held, .leaving, .flushing:
      phase = .claiming(since: now, isClosed: phase == .flushing)
      return [.acquire]
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
    // The archive is no longer in use; the next opening notices.
    case .free, .asking, .claiming, .flushing, .releasing, .lost: return []
    }
  }

  // MARK: Giving it back

  package mutating func wanted(_ lease: ReplicaLease, by host: String) -> [Action] {
    guard lease == self.lease, phase == .held else { return [] }
    phase = .leaving
    return [.leave(host: host)]
  }

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

  /// The replica has everything, or the time for the rest is over.
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

  /// The lease was released, or could not be and will expire.
  package mutating func released(at now: Int64) -> [Action] {
    guard case .releasing(let isAwaited) = phase else { return [] }
    (phase, lease) = (.free, nil)
    return isAwaited ? opened(at: now) : []
  }
}
