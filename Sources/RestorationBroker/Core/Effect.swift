// SPDX-License-Identifier: Apache-2.0

package import JSONRPC
package import RestorationArchive
package import RestorationWire

/// Number of an application, unique while the broker runs.
package typealias ApplicationID = Int

/// Who gets an answer; `call` is `nil` for a notification, which gets none.
package struct Caller: Hashable, Sendable {
  package let client: ClientID
  package let call: Conversation.Call?

  package init(client: ClientID, call: Conversation.Call?) { (self.client, self.call) = (client, call) }

  /// The broker itself.
  static let nobody = Caller(client: 0, call: nil)
}

package enum Answer: Sendable {
  case result(any JSONWritable & Sendable)
  case error(ErrorObject)
}

/// The result of an event: the changes of one transaction, then the effects, in this order.
package struct Outcome: Sendable {
  package fileprivate(set) var changes: [(application: ApplicationID, change: ArchiveChange)] = []
  package fileprivate(set) var effects: [Effect] = []

  package init() {}

  package var isEmpty: Bool { changes.isEmpty && effects.isEmpty }

  package mutating func removeAll() {
    changes.removeAll(keepingCapacity: true)
    effects.removeAll(keepingCapacity: true)
  }

  /// The changes will not be stored: effects that promise their durability become refusals or are dropped.
  mutating func lose(for error: ErrorObject) {
    changes = []
    effects = effects.compactMap { effect in
      switch effect {
      case .respondAfter(_, _, let caller, _), .readState(_, _, let caller):
        return .respond(caller, .error(error))
      case .read(_, let request, _):
        return request.caller.call == nil ? nil : .respond(request.caller, .error(error))
      case .notify: return nil
      case .announce(let id, let announcement): return announcement.lost.map { .announce(id, $0) }
      case .respond, .report, .endReport, .open, .takeOver, .goOn, .hurry, .giveUp, .close, .list, .openSocket,
        .reportStatistics, .reportMetrics, .call, .endCall, .tell, .tellLoss, .hold, .release, .confine, .clientChanged,
        .endSubscription, .park, .unpark, .replica,
        .watch, .watchProcess, .probe, .unwatch, .setTimer, .cancelTimer, .checkUnit, .startUnit, .backUp, .setWaiting,
        .expect, .awaitRoom, .disconnect, .log:
        return effect
      }
    }
  }

  mutating func append(_ later: Outcome) {
    if isEmpty { return self = later }
    changes += later.changes
    effects += later.effects
  }
}

/// An action for the service, besides writing.
package enum Effect: Sendable {
  case respond(Caller, Answer)
  /// Respond once this change of the application is durable, or with an error if it fails (R15).
  case respondAfter(ApplicationID, SequenceNumber, Caller, Answer)
  /// Answer a decode with this row once it is durable. The answer comes from `decoded` or `readingFinished`.
  case readState(ApplicationID, StateRequest.Row, Caller)
  /// Read states once the changes up to `after` are durable, and pass them to `readingFinished`.
  case read(ApplicationID, StateRequest, after: SequenceNumber)
  /// Run a report once the changes up to `after` are durable, answer its caller, and call `reportEnded`.
  case report(any Report, ReportID, LongCall, after: SequenceNumber)
  /// The report's caller was answered: it ends with the piece that is under way.
  case endReport(ReportID)
  /// Open the archive, and call `opened`.
  case open(ApplicationID, ApplicationName, for: ArchivePurpose)
  /// Take the archive from the host that has it when it is opened (R36).
  case takeOver(ApplicationName)
  /// Call `goOn` in another turn of the loop.
  case goOn(ApplicationID)
  /// Retry at once, without the pause after a failed transaction: a client waits for the outcome.
  case hurry(ApplicationID)
  /// No client waits for the opening of the archive any longer: it may fail.
  case giveUp(ApplicationID)
  /// Close the archive, then remove its files if requested.
  case close(ApplicationID, ArchiveRemoval?)
  /// List all archives, and pass the list to `listingFinished`.
  case list(ListingPurpose)
  /// Open the application's socket, at most `socketsMax` in total; reply with its path.
  case openSocket(application: String, socketsMax: Int, Caller)
  case replica(ReplicaRequest, Caller)
  /// Answer `statistics`: counters and gauges of core and service together.
  case reportStatistics(Caller)
  /// Answer a request for the metrics, with these applications.
  case reportMetrics(Caller, MetricsPage, [ApplicationOverview])
  /// Call the client, and pass the outcome to `callEnded`.
  case call(ApplicationID, CallNumber, ClientID, method: String, parameters: JSONText)
  case endCall(ClientID, CallNumber, of: ApplicationID)
  /// If the client is still connected, notify it once everything that this event wrote is durable.
  case notify(ApplicationID, Recipient, method: String, parameters: JSONText)
  /// If the client is still connected, notify it at once: it is not about a change.
  case tell(ClientID, method: String, parameters: JSONText)
  /// Tell a subscriber that it has missed an unknown number of events.
  case tellLoss(Subscriber)
  /// A message of the client begins to wait in the core, or no longer waits. Both come equally often.
  case hold(ClientID)
  case release(ClientID)
  /// Confine the client to one application: it learns nothing about others.
  case confine(ClientID, to: String)
  case clientChanged(ClientID)
  /// Tell subscribers of an event when its condition is met.
  case announce(ApplicationID, Announcement)
  /// Report a subscription's losses at once, because it has ended.
  case endSubscription(Subscriber)
  /// The call may wait long, so it does not count as in flight until `unpark`.
  case park(Caller)
  case unpark(Caller)
  case watch(ClientID, ApplicationID, SessionID)
  /// The same for a process of a former broker's client.
  case watchProcess(ClientProcess, ApplicationID, SessionID)
  /// Check whether the processes of these sessions have ended, and call `probed`.
  case probe(ApplicationID, [SessionID], ProbedCall)
  case unwatch(ApplicationID, SessionID)
  /// Call `timerFired` after this many milliseconds. It replaces a timer of the same name.
  case setTimer(TimerName, milliseconds: Int64)
  case cancelTimer(TimerName)
  /// Read the files of a session's unit, and pass them to `unitChecked`.
  case checkUnit(ApplicationID, SessionID, unit: UnitName)
  /// Start a unit for the application if its file permits that, else call `unitFailed` (R22).
  case startUnit(ApplicationID, unit: UnitName)
  /// Make a copy of the archive as the last good one (R32); it also replaces one in an earlier format if
  /// `replacingFormer`.
  case backUp(ApplicationID, replacingFormer: Bool)
  /// Pause reading from the client while too many of its messages wait, or resume it.
  case setWaiting(ClientID, Bool)
  /// Count this many bytes as the caller's from now on: about the length of its answer.
  case expect(Int, Caller)
  /// Call `goOn` once there is room for the message's answer. The client's later messages wait.
  case awaitRoom(Caller)
  /// End the connection after its output.
  case disconnect(ClientID)
  case log(LogLevel, String, of: ApplicationName?, Incident? = nil)
}

package enum Recipient: Hashable, Sendable {
  case client(ClientID)
  /// It fetches notifications by `nextRequest`; pass this one to `notified`.
  case poller(SessionID)
}

package enum LogLevel: Sendable {
  case info, warning, error
}

/// How to remove an archive's files, and who gets the answer.
package struct ArchiveRemoval: Sendable {
  var caller = Caller.nobody
  /// Also removes files that were set aside because of damage (R32).
  var withDamaged = false
}

/// Names a timer of the core; each case says what is to be done when it fires.
package enum TimerName: Hashable, Sendable {
  /// End a session if its process has ended (R30).
  case lost(ApplicationID, SessionID)
  /// Expire an idle detached session.
  case detached(ApplicationID, SessionID)
  /// Close the earliest decode windows (R31).
  case windows(ApplicationID)
  /// Confirm provisional states of claims that are old enough (R19).
  case early(ApplicationID)
  /// End the trial of suspects (R31).
  case trial(ApplicationID)
  /// End a registration's wait for its parent, or look again (R3).
  case parent(ApplicationID, Int)
  /// Drop idle exports.
  case exports(ApplicationID)
  /// End the restoration at its deadline, or look again (R21).
  case restoration(ApplicationID)
  /// Continue without the data source's answer (R28).
  case elements(ApplicationID, Int)
  /// Make the daily copy of a changed archive (R32).
  case backup(ApplicationID)
  /// Close an application without sessions that is large or surplus.
  case unused(ApplicationID)
  /// Drop an idle import, or do its next piece.
  case upload(ClientID)
  /// Continue the save round without the sessions that have not answered, or end it (R12).
  case round(ApplicationID)
  /// Begin an automatic round if it is due (R18).
  case changes(ApplicationID)
  /// Pull invalidated objects (R18).
  case invalidated(ApplicationID)
  /// End pulls without an answer.
  case pulls(ApplicationID)
  /// Answer a `nextRequest` that has waited long enough.
  case poll(ApplicationID, SessionID)
  /// Release the archive for another host, saved or not (R36).
  case leave(ApplicationID)
}

package struct StateRequest: Sendable {
  package var caller: Caller
  package var purpose: Purpose
  package var rows: [Row]

  package init(caller: Caller, purpose: Purpose, rows: [Row]) {
    (self.caller, self.purpose, self.rows) = (caller, purpose, rows)
  }

  package struct Row: Hashable, Sendable {
    package var node: NodeID
    package var sequence: SequenceNumber
    /// Bytes of the text, if it is for an answer to a client.
    package var bytes: Int

    package init(node: NodeID, sequence: SequenceNumber, bytes: Int = 0) {
      (self.node, self.sequence, self.bytes) = (node, sequence, bytes)
    }
  }

  /// Approximate length of the answer.
  var bytes: Int { rows.reduce(0) { $0 + $1.bytes } }

  package enum Purpose: Sendable {
    /// Answer a decode. If `isResolving`, the elements of an owner's state are resolved to current index paths first
    /// (R28).
    case decode(node: NodeID, isResolving: Bool = false)
    /// Ask the view's data source for identifiers of elements in a pushed state (R28).
    case nameElements(of: NodeID)
    /// For the restoration with this number.
    case restoring(Int, RestoringRead)
    case delivery(SessionID, batch: Int)
    /// Store the older states again that replace provisional ones: their owners have received them (R19).
    case dropProvisional
    case quarantine(QuarantinePage)
    /// Ask the delegate whether to save, in the round with this number.
    case decision(round: Int64)
    /// Restore a retained text as the object's state.
    case reinstating(StateRow)
    case reopening(ClosedShelf.Subtree)
  }
}

/// A call that continues once it is known which of the blocking processes live.
package enum ProbedCall: Sendable {
  case message(IncomingMessage)
  /// A registration whose parent has appeared (R3).
  case registration(Caller, SessionID, RegisterObjectForStateRestoration)
  /// `initialize` with `instance: "auto"`. The processes of the `known` applications were probed.
  case instance(IncomingMessage, known: Set<ApplicationID>)
}

package struct IncomingMessage: Sendable {
  package var caller: Caller
  package var method: String
  package var parameters: Parameters
  /// False if the broker can send only answers to the client.
  package var canBeCalled = true
}

package struct ArchiveListing: Sendable {
  package var summaries: [ArchiveSummary]
  /// The fleet's store did not answer in time, so archives that only other hosts have may be missing.
  package var isIncomplete = false
}

package enum ListingPurpose: Sendable {
  case listApplications(Caller)
  case metrics(Caller, MetricsPage)
  /// `initialize` with `instance: "auto"`, which continues with the chosen instance.
  case chooseInstance(IncomingMessage)
}

/// Limits, clock, numbers and outgoing effects, shared by all parts of the core.
package final class CoreContext {
  package var limits: Limits
  package internal(set) var settings: CoreSettings
  /// The time of the event being handled.
  package var now = Moment()
  @exclusivity(unchecked) package internal(set) var outcome = Outcome()
  var subscriptions = Subscriptions()
  /// Deadline of save rounds while the broker ends, in monotonic milliseconds (R33).
  var roundsEnd: Int64?
  /// The broker is ending, so no call may begin to wait.
  var isEnding = false
  /// False if too much of what the client's process has sent waits already.
  package var mayPark: (ClientID) -> Bool = { _ in true }
  /// An error if the application may not grow by this many bytes beside all others; with `nil`, if it has no archive
  /// and may not get one.
  package var refusal: (ApplicationName, _ growth: Int?) -> ErrorObject? = { _, _ in nil }

  package init(limits: Limits, settings: CoreSettings) { (self.limits, self.settings) = (limits, settings) }

  func emit(_ effect: consuming Effect) { outcome.effects.append(effect) }

  func swapOutcome(with other: inout Outcome) { swap(&outcome, &other) }

  func append(_ later: Outcome) { outcome.append(later) }

  func write(_ change: consuming ArchiveChange, of application: ApplicationID) {
    outcome.changes.append((application, change))
  }
}

/// A point in time by two clocks, in milliseconds.
package struct Moment: Hashable, Sendable {
  /// Monotonic, for deadlines.
  package var monotonic: Int64 = 0
  /// Since 1970, UTC; for information only.
  package var wall: Int64 = 0

  package init(monotonic: Int64 = 0, wall: Int64 = 0) { (self.monotonic, self.wall) = (monotonic, wall) }
}

package struct CoreSettings: Sendable {
  package var version: String
  package var systemVersion: String?
  /// For development: nothing is quarantined, and a quit by the user empties nothing.
  package var isDeveloperMode: Bool
  package var loginPolicies = LoginPolicies()
  /// Whether archives follow their user, so that other hosts wait for an unused one that stays open here.
  package var archivesRoam = false
  /// Number of objects in one piece of a `LongTurn`; each should take about a microsecond.
  package var pieceObjects = 4_096
  /// Returns 128 fresh random bits, for session tokens and the first change id.
  package var random: @Sendable () -> (UInt64, UInt64)

  package init(
    version: String,
    systemVersion: String?,
    isDeveloperMode: Bool = false,
    loginPolicies: LoginPolicies = LoginPolicies(),
    random: @escaping @Sendable () -> (UInt64, UInt64)
  ) {
    (self.version, self.systemVersion) = (version, systemVersion)
    (self.isDeveloperMode, self.loginPolicies, self.random) = (isDeveloperMode, loginPolicies, random)
  }
}
