// SPDX-License-Identifier: Apache-2.0

internal import RestorationArchive
internal import RestorationBroker
internal import RestorationWire
internal import Testing

/// The turn of an open application that has no broker, for tests of its parts.
final class TurnFixture {
  let context: CoreContext
  var turn: Turn
  private var seen = 0
  private var seenChanges = 0

  init(_ limits: Limits = Limits()) throws {
    let settings = CoreSettings(version: "1.0", systemVersion: "Test 1", random: { (1, 2) })
    context = CoreContext(limits: limits, settings: settings)
    turn = Turn(of: 1, named: try #require(ApplicationName("com.example.Parts")), context)
    turn.phase = .open
  }

  /// What has been asked for since the last call, by the names of the effects.
  func asked() -> [String] { news().map { Mirror(reflecting: $0).children.first?.label ?? "\($0)" } }

  /// What has been written since the last call.
  func written() -> [ArchiveChange] {
    defer { seenChanges = context.outcome.changes.count }
    return context.outcome.changes[seenChanges...].map(\.change)
  }

  /// The delay of the timer that was set since the last call.
  func timer() -> Int64? {
    news().compactMap { if case .setTimer(_, let milliseconds) = $0 { milliseconds } else { nil } }.last
  }

  private func news() -> ArraySlice<Effect> {
    defer { seen = context.outcome.effects.count }
    return context.outcome.effects[seen...]
  }
}
