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
    try requireWritable()
    guard session.serves(.objectWithRestorationIdentifierPath) else {
      throw Application.notServing(ServedMethod.objectWithRestorationIdentifierPath.rawValue)
    }
    let name = request.restorationClass
    if let other = restorationClasses[name].flatMap({ sessions[$0] }), other !== session,
      !hasGivenUp(other, for: session)
    {
      throw Application.alreadyServed("makes the objects of this restoration class", other, path: nil)
    }
    // Objects have at most one class each, so that more classes than objects can only be a mistake.
    let max = context.limits.objectsPerApplicationMax
    guard restorationClasses[name] != nil || restorationClasses.count < max else {
      throw .limitExceeded("objectsPerApplicationMax", max: max, value: restorationClasses.count + 1)
    }
    restorationClasses[name] = session.id
    respond(caller, EmptyResult())
    drive(.classesChanged)
  }

  /// Whether a session has lost its role to one that asks for it: its process is gone, or is the very same.
  func hasGivenUp(_ session: Session, for claimant: Session) -> Bool {
    session.hasExited || session.isDiscarded
      || !session.isReachable && session.facts.process != nil && session.facts.process == claimant.facts.process
  }

  static func alreadyServed(_ what: String, _ other: Session, path: IdentifierPath?) -> ErrorObject {
    .restoration(
      .alreadyServed,
      "\(describe(other)) \(what)",
      hint: "One session at a time can; end the other one first.",
      path: path,
      details: ["owners": [ownerJSON(other)]]
    )
  }

  static func notServing(_ methods: String) -> ErrorObject {
    .invalidRequest(hint: "List \(methods) in serves at initialize: the broker will call it.")
  }

  /// A session ends: others may have its roles, and a restoration does not wait for it (R9, R21).
  func leaveRoles(of session: Session) {
    restorationClasses = restorationClasses.filter { $0.value != session.id }
    dataSources = dataSources.filter { $0.value != session.id }
    drive(.ended(session.id))
  }

  /// A session that was lost has a connection again.
  func returned(_ session: Session) {
    drive(.returned(session.id))
  }
}
