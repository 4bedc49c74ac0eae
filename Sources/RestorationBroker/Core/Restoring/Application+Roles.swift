// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Roles that one session has at a time (R9).
extension Application {
  func registerRestorationClass(
    _ request: RegisterRestorationClass,
    by session: Session,
    for caller: Caller
  ) throws(ErrorObject) {
    try turn.requireWritable()
    guard session.serves(.objectWithRestorationIdentifierPath) else {
      throw .notServing(ServedMethod.objectWithRestorationIdentifierPath.rawValue)
    }
    let name = request.restorationClass
    let others = providers.makers(of: name).compactMap { sessions[$0] }.filter { $0 !== session }
    if !request.isShared || !providers.isShared(name),
      let other = others.first(where: { !hasGivenUp($0, for: session) })
    {
      throw .alreadyServed(
        "makes the objects of this restoration class",
        other,
        hint: "Only one session at a time may, unless all of them register the class with shared.",
        path: nil
      )
    }
    try providers.requireRoom(for: name, in: turn)
    try take(in: session) {
      $0.restorationClasses.insert(name)
      if request.isShared { $0.sharedClasses.insert(name) } else { $0.sharedClasses.remove(name) }
    }
    for other in others where hasGivenUp(other, for: session) {
      change(other) {
        $0.restorationClasses.remove(name)
        $0.sharedClasses.remove(name)
      }
      providers.removeMaker(other.id, of: name)
    }
    providers.addMaker(session.id, of: name, isShared: request.isShared)
    turn.answer(caller, EmptyResult())
    note(.classesRegistered)
    locate { $0.record.restorationClass == name }
  }

  /// Gives a session a role durably: the session still has it after the broker's death.
  func take(in session: Session, _ role: (inout SessionFacts) -> Void) throws(ErrorObject) {
    var facts = session.facts
    role(&facts)
    guard facts != session.facts else { return }
    let record = SessionRecord(session: session.id, token: session.token, facts: facts.stored)
    guard record.facts.utf8.count <= SessionFacts.bytesMax else {
      throw .restoration(
        .limitExceeded,
        "the session's stored description takes more than \(SessionFacts.bytesMax) bytes with it",
        hint: "It is kept as long as the session lives; use one class for all objects of a kind."
      )
    }
    session.facts = facts
    write(.session(record))
  }

  private func change(_ session: Session, _ roles: (inout SessionFacts) -> Void) {
    let before = session.facts
    roles(&session.facts)
    if session.facts != before { write(.session(session.record)) }
  }

  func setDataSource(of view: NodeID, to session: SessionID?) {
    let before = providers.dataSource(of: view)
    guard before != session else { return }
    providers.setDataSource(of: view, to: session)
    if let before = before.flatMap({ sessions[$0] }) { change(before) { $0.dataSources.remove(view) } }
    if let session = session.flatMap({ sessions[$0] }) { change(session) { $0.dataSources.insert(view) } }
  }

  func loadRoles() {
    providers = Providers()
    for session in sessions.inOrder {
      for name in session.facts.restorationClasses {
        providers.addMaker(session.id, of: name, isShared: session.facts.sharedClasses.contains(name))
      }
      for view in session.facts.dataSources where tree.nodes[view] != nil {
        providers.setDataSource(of: view, to: session.id)
      }
    }
  }

  /// Whether the claimant takes over the role: the session is over, or was lost by the claimant's process.
  func hasGivenUp(_ session: Session, for claimant: Session) -> Bool {
    session.hasExited || session.isDiscarded
      || !session.isReachable && session.facts.process != nil && session.facts.process == claimant.facts.process
  }
}
