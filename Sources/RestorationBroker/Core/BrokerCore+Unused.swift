// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Which applications leave memory, though nobody has asked for it. None does that has a session, or in which something
/// is under way. The archive has all of it; its next call opens it again.
extension BrokerCore {
  /// An unreadable archive is tried again once all clients that were told so have left. A blank one is removed when
  /// all that have named it have.
  mutating func closeIfUseless(_ application: Application) {
    guard application.sessions.isEmpty, applications[application.id] != nil else { return }
    var isNamed: Bool { clients.values.contains { $0.applications.contains(application.id) } }
    if case .unreadable = application.phase {
      if !isAwaited(application.id) { close(application) }
    } else if application.isBlank, application.isIdle, !isAwaited(application.id), !isNamed {
      close(application)
    } else if UnusedApplications.leaves(application, self) {
      context.emit(.setTimer(.unused(application.id), milliseconds: UnusedApplications.milliseconds))
    }
  }

  mutating func unusedTimerFired(_ id: ApplicationID) {
    guard let application = applications[id], UnusedApplications.leaves(application, self) else { return }
    let rest = application.sessions.lastUsed + UnusedApplications.milliseconds - context.now.monotonic
    guard rest <= 0, application.isIdle, !isAwaited(id) else {
      return context.emit(.setTimer(.unused(id), milliseconds: max(rest, 1_000)))
    }
    close(application)
  }
}

/// Applications without sessions, in which nothing is under way, from the least recently used on.
struct UnusedApplications {
  /// Larger ones, and as many as are too many, leave so long after their last call.
  static let milliseconds: Int64 = 5_000
  /// What is smaller stays, so that it need not be opened again, unless there are too many.
  private static let lightBytes = 4 << 20
  /// All of them together; beyond that some leave at once.
  private static let bytesMax = 32 << 20

  private let all: [Application]
  /// By how many a further application would exceed what may be open.
  private let excess: Int

  init(in core: BrokerCore) {
    let awaited = Set(core.clients.values.compactMap(\.waitsFor))
    all = core.applications.values.filter { $0.sessions.isEmpty && $0.isIdle && !awaited.contains($0.id) }
      .sorted { ($0.sessions.lastUsed, $0.id) < ($1.sessions.lastUsed, $1.id) }
    excess = core.applications.count + 1 - core.context.limits.openArchivesMax
  }

  /// Whether it leaves some time after its last call: it has no session, and is large or one of too many.
  static func leaves(_ application: Application, _ core: BrokerCore) -> Bool {
    guard application.sessions.isEmpty else { return false }
    return core.applications.count > core.context.limits.openArchivesMax || bytes(of: application) > lightBytes
  }

  /// Those that leave before a further application comes: the excess, and as many as take too much memory. A blank one
  /// is removed although a client that has named it may still be there. All others stay; the store closes the files of
  /// those that it has not used for longest.
  var surplus: [Application] {
    var bytes = all.reduce(0) { $0 + Self.bytes(of: $1) }
    return all.enumerated().prefix { index, application in
      defer { bytes -= Self.bytes(of: application) }
      return index < excess || bytes > Self.bytesMax
    }.map(\.element)
  }

  /// About the memory of its objects and of what is recorded of their states.
  private static func bytes(of application: Application) -> Int {
    application.budget.texts + application.origins.usedBytes + 1_024 * application.tree.count
  }
}
