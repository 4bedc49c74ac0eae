// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationWire

/// Which applications leave memory, though nobody has asked for it. None does that has a session, or in which something
/// is under way. The archive has all of it; its next call opens it again.
extension BrokerCore {
  /// What is smaller stays, so that it need not be opened again, until there are too many.
  private static let lightBytes = 4 << 20
  /// Larger ones leave so long after their last call.
  private static let unusedMilliseconds: Int64 = 5_000
  /// All applications without sessions together; beyond that those leave at once that were used least recently.
  private static let unusedBytesMax = 32 << 20

  /// An unreadable archive is tried again once all clients that were told so have left. A blank one is removed when
  /// all that have named it have.
  mutating func closeIfUseless(_ application: Application) {
    guard application.sessions.isEmpty, applications[application.id] != nil else { return }
    let id = application.id
    if case .unreadable = application.phase {
      if !clients.values.contains(where: { $0.waitsFor == id }) { close(application) }
    } else if application.isBlank, application.isIdle,
      !clients.values.contains(where: { $0.waitsFor == id || $0.applications.contains(id) })
    {
      close(application)
    } else if application.weight > Self.lightBytes {
      context.emit(.setTimer(.unused(id), milliseconds: Self.unusedMilliseconds))
    }
  }

  /// A large application had no session some time ago.
  mutating func unusedTimerFired(_ id: ApplicationID) {
    guard let application = applications[id], application.sessions.isEmpty else { return }
    let rest = application.sessions.lastUsed + Self.unusedMilliseconds - context.now.monotonic
    guard rest <= 0, application.isIdle, !clients.values.contains(where: { $0.waitsFor == id }) else {
      return context.emit(.setTimer(.unused(id), milliseconds: max(rest, 1_000)))
    }
    close(application)
  }

  /// Before a further application: closes the least recently used ones without sessions, as far as there are more than
  /// archives may be open, or they take too much memory. All others stay; the store closes the files of those that it
  /// has not used for longest.
  mutating func makeRoom() {
    let awaited = Set(clients.values.compactMap(\.waitsFor))
    let useless = applications.values.filter { $0.sessions.isEmpty && $0.isIdle && !awaited.contains($0.id) }
    var excess = applications.count + 1 - context.limits.openArchivesMax
    var bytes = useless.reduce(0) { $0 + $1.weight } - Self.unusedBytesMax
    guard excess > 0 || bytes > 0 else { return }
    for application in useless.sorted(by: { ($0.sessions.lastUsed, $0.id) < ($1.sessions.lastUsed, $1.id) }) {
      guard excess > 0 || bytes > 0 else { return }
      (excess, bytes) = (excess - 1, bytes - application.weight)
      close(application)
    }
  }
}

extension Application {
  /// About the memory of its objects and of what is recorded of their states.
  var weight: Int { budget.texts + origins.usedBytes + 1_024 * tree.count }
}
