// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import RestorationArchive
internal import RestorationWire

/// Units that start the application's processes (R22).
extension Application {
  // MARK: Knowing

  /// Checks whether the session's unit may be started; a unit that it has named takes precedence over the `seen` one.
  func noteUnit(of session: Session, seen: String?) {
    session.unitName = session.facts.storyboard ?? seen
    guard !session.facts.isDetached, session.facts.process != nil,
      let unit = session.unitName.flatMap({ UnitName($0) })
    else { return }
    turn.ask(.checkUnit(id, session.id, unit: unit))
  }

  /// - Parameter files: texts of the unit's file and drop-ins; `nil` if there is none, or it is unknown.
  func unitChecked(_ unit: UnitName, of session: Session, _ files: [String]?) {
    let isPermitted = files.map { UnitFile.permits($0, of: unit, for: name.description) } ?? false
    if !isPermitted, files != nil, session.facts.storyboard == unit.description {
      turn.ask(.log(.info, "\(unit) is not started: \(Application.remedy(unit, for: name))", of: name))
    }
    let known = isPermitted ? unit.description : nil
    if session.facts.unit != known {
      session.facts.unit = known
      write(.session(session.record))
    }
    guard isPermitted, !session.isDiscarded else { return }
    var units = runs.units.filter { $0.name != unit.description }
    let isDelegate = sessions.values.contains { $0.facts.isDelegate && $0.facts.unit == known }
    let run = runs.number
    units.append(RunFacts.Unit().with { ($0.name, $0.isDelegate, $0.run) = (unit.description, isDelegate, run) })
    // The delegate's unit is first, and is forgotten last.
    units = units.filter(\.isDelegate) + units.filter { !$0.isDelegate }.suffix(RunFacts.unitsMax)
    guard units != runs.units else { return }
    runs.units = Array(units.prefix(RunFacts.unitsMax))
    writeRun()
  }

  static func remedy(_ unit: UnitName, for name: ApplicationName) -> String {
    "its file lacks Application=\(name) in a section [X-Restoration]"
  }

  /// Forgets the unit of a process that was closed, unless another process of it lives.
  func forgetUnit(of session: Session, _ ending: SessionEnding) {
    guard ending == .closed || ending == .userQuit, let unit = session.facts.unit,
      !sessions.values.contains(where: { $0.facts.unit == unit && !$0.isDiscarded })
    else { return }
    runs.units.removeAll { $0.name == unit }
  }

  // MARK: Starting

  /// Units of this run and the last one without a present session.
  private var missingUnits: [RunFacts.Unit] {
    let present = Set(sessions.values.filter { !$0.isDiscarded && !$0.hasExited }.compactMap(\.unitName))
    return runs.units.filter { !present.contains($0.name) }
  }

  package var isDelegateMissing: Bool { missingUnits.contains(where: \.isDelegate) && liveDelegate == nil }

  func startDelegate() {
    for unit in missingUnits where unit.isDelegate { restoring.start(UnitName(unit.name), in: &turn) }
    if !restoring.isStarting { drive(.delegateNotStarted(at: turn.now.monotonic)) }
  }

  func startMissingUnits() { for unit in missingUnits { restoring.start(UnitName(unit.name), in: &turn) } }

  func startUnit(of node: NodeID) {
    let unit = restoring.units[node]
    restoring.start(unit, in: &turn)
    if let unit { tree.node(node)?.note(.unitStarted(unit: unit.description)) }
    if let unit, restoring.failedUnits[unit.description] != nil { drive(.unitFailed([node])) }
  }

  /// A unit did not start. Its objects are still awaited if another process may bring them (R22).
  func unitFailed(_ unit: String, _ message: String) {
    turn.ask(.log(.warning, "unit \(unit) was not started: \(message)", of: name, .unitNotStarted))
    guard restoring.startedUnits.contains(unit) else { return }
    let nodes = restoring.unitFailed(unit, message)
    for node in nodes { tree.node(node)?.note(.unitFailed(unit: unit, message: message)) }
    drive(.unitFailed(nodes))
    if !restoring.isStarting { drive(.delegateNotStarted(at: turn.now.monotonic)) }
  }

  // MARK: Ends

  /// Notes with its objects how a session ended without a goodbye (R30).
  func noteEnd(of session: Session, _ ending: SessionEnding) {
    guard ending.isWithoutGoodbye(session) else { return }
    let outcome = Application.outcome(of: session, ending)
    for node in session.objects.values {
      node.note(SavingStep.ownerEnded(session.owner, ending.wire, outcome))
      // If the object was taking in its state, this is also how its restoration ended.
      guard trials.isOpen(node.id, for: session.id) || deliveries.isDelivering(node.id, to: session.id) else {
        continue
      }
      node.note(RestoringStep.ownerEnded(session.owner, ending.wire, outcome))
    }
  }

  static func outcome(of session: Session, _ ending: SessionEnding) -> ProcessOutcome {
    let unit = session.exit?.unit ?? session.facts.unit
    guard ending.isWithoutGoodbye(session) else { return ProcessOutcome(unit: unit) }
    guard let exit = session.exit else { return ProcessOutcome(.unknown, unit: unit) }
    switch exit.ending {
    case .exited(let code): return ProcessOutcome(.exited, code: Int64(code), unit: unit)
    case .signalled(let signal):
      return ProcessOutcome(.signalled, signal: ProcessOutcome.nameOfSignal(signal), unit: unit)
    case .outOfMemory: return ProcessOutcome(.outOfMemory, unit: unit)
    case .stopped: return ProcessOutcome(.stopped, unit: unit)
    case .unknown: return ProcessOutcome(.unknown, unit: unit)
    }
  }
}

extension ProcessOutcome {
  fileprivate static func nameOfSignal(_ number: Int32) -> String {
    let names = [
      "HUP", "INT", "QUIT", "ILL", "TRAP", "ABRT", "BUS", "FPE", "KILL", "USR1", "SEGV", "USR2", "PIPE", "ALRM",
      "TERM", "STKFLT", "CHLD", "CONT", "STOP", "TSTP", "TTIN", "TTOU", "URG", "XCPU", "XFSZ", "VTALRM", "PROF",
      "WINCH", "IO", "PWR", "SYS",
    ]
    if number >= 1, number <= names.count { return "SIG\(names[Int(number) - 1])" }
    return number >= 34 && number <= 64 ? "SIGRTMIN+\(number - 34)" : "signal \(number)"
  }
}

extension SessionEnding {
  fileprivate func isWithoutGoodbye(_ session: Session) -> Bool {
    switch self {
    case .crashed, .stopped: true
    case .logout: session.exit?.isLogout == true
    case .closed, .userQuit, .restart, .expired: false
    }
  }
}

extension BrokerCore {
  /// The files of a session's unit were read; `nil` if there is no such unit.
  package mutating func unitChecked(
    _ id: ApplicationID,
    _ session: SessionID,
    _ unit: UnitName,
    _ files: [String]?,
    at now: Moment
  ) {
    context.now = now
    guard let application = applications[id]?.settled, let session = application.sessions[session],
      session.unitName == unit.description
    else { return }
    application.unitChecked(unit, of: session, files)
  }

  package mutating func unitFailed(_ id: ApplicationID, _ unit: UnitName, _ message: String, at now: Moment) {
    context.now = now
    applications[id]?.settled.unitFailed(unit.description, message)
  }

  /// Why a unit with these files may not be started for the application; `nil` if it may.
  package func refusal(to start: UnitName, for id: ApplicationID, _ files: [String]?) -> String? {
    guard let application = applications[id] else { return "the application is closed" }
    guard let files else { return "unknown unit; install its file, then: systemctl --user daemon-reload" }
    guard UnitFile.permits(files, of: start, for: application.name.description) else {
      return Application.remedy(start, for: application.name)
    }
    return nil
  }

  /// The broker ends because the user logged out, so processes that end from now on have not crashed (R30).
  package mutating func sessionOfUserEnds(at now: Moment) {
    context.now = now
    for application in applications.values.sorted(by: { $0.id < $1.id }).map(\.settled) {
      guard case .open = application.phase, application.sessions.values.contains(where: { !$0.facts.isDetached }) else {
        continue
      }
      application.runs.logOut()
      application.writeRun()
    }
  }
}
