// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Closes applications that nobody uses, to free their memory and, if archives roam, to let other hosts have them. They
/// have no session and nothing under way; their next call opens them again.
extension BrokerCore {
  /// Closes an unreadable archive when no client waits for it, so that the next call tries again, and a blank one when
  /// all clients that named it have left.
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

/// Applications without sessions and without anything under way, least recently used first.
struct UnusedApplications {
  /// An application that is large or surplus, or whose archive roams, leaves this long after its last call.
  static let milliseconds: Int64 = 5_000
  /// Smaller applications stay open unless there are too many.
  private static let lightBytes = 4 << 20
  /// Memory of all unused applications; above it some leave at once.
  private static let bytesMax = 32 << 20

  private let all: [Application]
  /// Number of applications above `openArchivesMax`, with a further one.
  private let excess: Int

  init(in core: BrokerCore) {
    let awaited = Set(core.clients.values.compactMap(\.waitsFor))
    all = core.applications.values.filter { $0.sessions.isEmpty && $0.isIdle && !awaited.contains($0.id) }
      .sorted { ($0.sessions.lastUsed, $0.id) < ($1.sessions.lastUsed, $1.id) }
    excess = core.applications.count + 1 - core.context.limits.openArchivesMax
  }

  /// Whether the application leaves some time after its last call.
  static func leaves(_ application: Application, _ core: BrokerCore) -> Bool {
    guard application.sessions.isEmpty else { return false }
    return core.context.settings.archivesRoam || core.applications.count > core.context.limits.openArchivesMax
      || bytes(of: application) > lightBytes
  }

  /// The applications that leave before a further one opens: the excess, and as many as exceed `bytesMax`. A blank one
  /// is removed even if a client that named it is connected.
  var surplus: [Application] {
    var bytes = all.reduce(0) { $0 + Self.bytes(of: $1) }
    return all.enumerated().prefix { index, application in
      defer { bytes -= Self.bytes(of: application) }
      return index < excess || bytes > Self.bytesMax
    }.map(\.element)
  }

  /// Estimated memory of the objects and of the summaries of their states.
  private static func bytes(of application: Application) -> Int {
    application.budget.texts + application.origins.usedBytes + 1_024 * application.tree.count
  }
}
