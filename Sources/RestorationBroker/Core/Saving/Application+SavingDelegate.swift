// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// The delegate's part in a save round: whether there is one, and the application's own state (R11).
extension Application {
  private var delegate: Session? { sessions.values.first { $0.facts.isDelegate && !$0.isDiscarded && $0.isReachable } }

  /// Shows the delegate the application's own state as it was saved last.
  func askDelegateWhetherToSave() {
    guard let round = saving.round?.number else { return }
    guard delegate?.serves(.shouldSaveApplicationState) == true, let row = ownState(forDelegate: false) else {
      return askWhetherToSave(nil, round: round)
    }
    read([row], for: .decision(round: round), after: row.sequence)
  }

  /// The application's own state has come, if there is one.
  func askWhetherToSave(_ reading: StateReading?, round number: Int64) {
    guard let round = saving.round, round.number == number else { return }
    var application = ApplicationState(state: nil, coder: nil)
    if case .state(let record, _) = reading {
      let decoded = decoded(record)
      application = ApplicationState(state: decoded.state, coder: decoded.coderText)
    }
    guard round.machine.isDeciding, let delegate,
      call(delegate, ShouldSaveApplicationState.self, with: application, for: .save(.decide)) != nil
    else { return advanceRound { $0.machine.decided(true) } }
  }

  /// Shows the delegate the application's own state; it fetches one that is too large for an unasked message.
  func call<Call: ApplicationStateCall>(
    _ delegate: Session,
    _: Call.Type,
    with application: ApplicationState,
    for purpose: CallPurpose
  ) -> CallNumber? {
    var brief = ApplicationState(state: nil, coder: application.coder, isDeferred: application.state != nil)
    for version in [application, brief] {
      if let number = call(delegate, Call(application: version), for: purpose) { return number }
    }
    brief.coder = nil
    return call(delegate, Call(application: brief), for: purpose)
  }

  func prepare() {
    guard let delegate, let round = saving.round?.number,
      call(delegate, WillEncodeRestorableState().with { $0.round = round }, for: .save(.prepare)) != nil
    else { return advanceRound { $0.machine.prepared() } }
  }

  func giveUpDelegate() {
    endRoundCalls()
    guard let delegate, delegate.serves(.willEncodeRestorableState) else { return }
    saving.advance { $0.applicationStale = (delegate.id, delegate.owner, EncodeRefusal(.late)) }
  }

  /// Only an explicit no declines: a delegate that fails does not keep the others from being saved.
  func decided(_ answer: CallAnswer) {
    let decision: Bool? = if case .result(let slice) = answer { Bool(slice) } else { nil }
    advanceRound { $0.machine.decided(decision ?? true) }
  }

  /// The delegate has answered with the application's own state, or without it.
  func prepared(_ answer: CallAnswer, by session: SessionID) {
    let owner = sessions[session]?.owner ?? endedOwner(session)
    var refusal: EncodeRefusal?
    var state: CheckedState?
    do throws(ErrorObject) {
      switch answer {
      case .result(let slice):
        if let answer = WillEncodeRestorableState.Answer(slice) {
          let delegate = sessions[session]
          state = try answer.state.map { state throws(ErrorObject) in try applicationState(state, by: delegate) }
        } else {
          refusal = EncodeRefusal(.malformed)
        }
      case .error: refusal = EncodeRefusal(.failed, message: answer.message, fault: answer.fault)
      case .lost: break
      }
    } catch {
      refusal = EncodeRefusal(error)
    }
    let isStale = if case .lost = answer { true } else { refusal != nil }
    advanceRound { round in
      round.application = state.map { ($0, session) }
      if isStale, let owner { round.applicationStale = (session, owner, refusal) }
      return round.machine.prepared()
    }
  }

  private func applicationState(_ encoded: EncodedState, by session: Session?) throws(ErrorObject) -> CheckedState {
    _ = try check(encoded, [], path: nil)
    let state = try checked(encoded.detached(), elements: nil, revision: nil, path: nil)
    try requireRoom(for: state.bytes - (tree.applicationNode?.state?.bytes ?? 0))
    return state
  }
}
