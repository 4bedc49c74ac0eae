// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive

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
    /// This host waits for the archive: save it, end its sessions, close it, then call `closed`.
    case leave(host: String)
    /// Ship the rest, then call `flushed`.
    case flush
    /// Release this lease, then call `released` or `releaseRefused`.
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
    case flushing, releasing
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

  /// Returns whether to request the lease, and then to call `granted` or `refused`. Otherwise this host has it.
  package mutating func opened(at now: Int64) -> Bool {
    switch phase {
    case .free, .lost:
      phase = .asking(since: now)
      return true
    // The archive was just closed and the lease is still ours.
    case .flushing: phase = .held
    case .claiming(let since, _): phase = .claiming(since: since, isClosed: false)
    case .asking, .catchingUp, .held, .leaving, .releasing: break
    }
    return false
  }

  /// Returns whether the lease is still requested: then bring the copy to the replica's contents, and call `caughtUp`,
  /// `failed` or `diverged`.
  package mutating func granted(_ lease: ReplicaLease) -> Bool {
    switch phase {
    case .asking(let since):
      phase = .catchingUp
      until = since + term.reliable
    // Writes continue during the comparison; `diverged` ends them.
    case .claiming(let since, _): until = max(until, since + term.reliable)
    case .free, .catchingUp, .held, .leaving, .flushing, .releasing, .lost: return false
    }
    self.lease = lease
    return true
  }

  package mutating func refused(_ kind: ReplicaError.Kind, at now: Int64) -> [Action] {
    switch phase {
    case .asking:
      phase = .free
      return []
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
      return release()
    case .claiming: return refused(kind, at: now)
    case .free, .asking, .held, .leaving, .flushing, .releasing, .lost: return []
    }
  }

  /// The replica's contents do not begin with what the open archive's users have seen.
  package mutating func diverged() -> [Action] { release() + lose(to: nil) }

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
    // The answer to the release is still to come.
    case .free, .asking, .catchingUp, .claiming, .releasing, .lost: return []
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
    // The archive is not in use; its opening, or the next one, notices.
    case .free, .asking, .catchingUp, .claiming, .flushing, .releasing, .lost: return []
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
      phase = .releasing
      return release()
    case .claiming(_, isClosed: true): (phase, lease) = (.free, nil)
    case .free, .asking, .catchingUp, .held, .claiming, .leaving, .releasing, .lost: break
    }
    return []
  }

  /// The lease was released, or could not be and will expire.
  package mutating func released() { if phase == .releasing { (phase, lease) = (.free, nil) } }

  /// The replica was put back and lacks what it had: that is sent again before the lease is released.
  package mutating func releaseRefused() -> [Action] {
    guard phase == .releasing else { return [] }
    phase = .flushing
    return [.flush]
  }
}
