// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationArchive
internal import RestorationWire

/// Limits on new sessions. Limits on connections cover most sessions, but not detached and lost ones.
///
/// The last tenth of an application's sessions is reserved for processes without one.
struct SessionQuota {
  let applications: [ApplicationID: Application]

  init(_ applications: [ApplicationID: Application]) { self.applications = applications }

  /// - Parameter process: if it is `nil`, its sessions count for the application only.
  func requireRoom(for process: ClientProcess?, in application: Application) throws(ErrorObject) {
    let limits = application.turn.limits
    var own = 0
    if let process {
      own = application.sessions.count(of: process)
      let elsewhere = applications.values.reduce(0) { $0 + ($1 === application ? 0 : $1.sessions.count(of: process)) }
      try Self.require("sessionsPerProcessMax", limits.sessionsPerProcessMax, own + elsewhere + 1)
    }
    let max = limits.sessionsPerApplicationMax
    try Self.require("sessionsPerApplicationMax", own > 0 ? max - max / 10 : max, application.sessions.count + 1)
  }

  /// Texts stay in memory while their application has a session. So those of all applications of one process together
  /// get as much room as one application.
  func requireTextRoom(for process: ClientProcess?, in application: Application) throws(ErrorObject) {
    // Many applications may have this little each.
    guard application.budget.texts > 1 << 20, let process else { return }
    let own = applications.values.filter { $0 === application || $0.sessions.count(of: process) > 0 }
    let (texts, max) = (own.reduce(0) { $0 + $1.budget.texts }, application.turn.limits.archiveBytesMax)
    guard own.count > 1 else { return }
    let hint = "The texts of all applications in which a process has sessions count together; end one of its sessions."
    try Self.require("archiveBytesMax", max, texts, hint: hint)
  }

  private static let hint =
    "Go on in a session by its token, or say goodbye; a script that only encodes or reads needs none."

  private static func require(_ limit: String, _ max: Int, _ value: Int, hint: String = hint) throws(ErrorObject) {
    guard value > max else { return }
    throw .restoration(
      .limitExceeded,
      "\(limit) is \(max), this is \(value)",
      hint: hint,
      details: ["limit": .string(limit), "max": .integer(Int64(max)), "value": .integer(Int64(value))]
    )
  }
}
