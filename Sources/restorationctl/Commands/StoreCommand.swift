// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct StoreCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "store",
    abstract: "Manage archives that are shared between a user's hosts.",
    usage: "restorationctl store [<option> ...] <command>",
    discussion: """
      Examples:
        restorationctl store status
        restorationctl store flush --timeout 10
        restorationctl store key new
        restorationctl store migrate --all
        restorationctl store conflicts

      The fleet's store is the database in the broker's setting replica.
      """,
    subcommands: [
      StoreStatusCommand.self, StoreFlushCommand.self, StoreMigrateCommand.self, StoreConflictsCommand.self,
      StoreKeyCommand.self,
    ]
  )

  // All options may stand before or after the command.
  @OptionGroup var options: CommonOptions
}

struct StoreStatusCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "status",
    abstract: "Show the archives in the fleet's store, and what it lacks.",
    usage: "restorationctl store status [<option> ...] [<application>]",
    discussion: """
      Examples:
        restorationctl store status
        restorationctl store status org.example.Notes -j | jq '.applications[0].changes'

      UNSENT counts changes of this host that the store lacks, "?" if a former
      broker may have left some. FOR is how long it has lacked them. The JSON is
      the result of the method reportReplica.
      """
  )

  @OptionGroup var options: AnyApplicationOptions

  func run() async throws {
    try await withBroker { broker in
      let application = try options.application.map { try ApplicationName(sending: $0) }
      let status = try await broker.call(ReportReplica(application: application))
      try output.show(status, or: status.text(hidesLegend: legend.hidesLegend))
    }
  }
}

struct StoreFlushCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "flush",
    abstract: "Wait until the fleet's store has everything.",
    usage: "restorationctl store flush [<option> ...] [<application>]",
    discussion: """
      Examples:
        restorationctl store flush
        restorationctl store flush org.example.Notes --timeout 10

      It waits for 5 seconds, or for --timeout. Exit status 75 means that not
      everything was sent. The rest is listed and sent later. The JSON is the
      result of the method flushReplica.
      """
  )

  @OptionGroup var options: AnyApplicationOptions

  /// The broker should answer before the tool's own time limit.
  private static let marginMilliseconds: Int64 = 500

  func run() async throws {
    try await withBroker { broker in
      let limit = connection.timeout.map { max($0.milliseconds / 2, $0.milliseconds - Self.marginMilliseconds) }
      let application = try options.application.map { try ApplicationName(sending: $0) }
      let call = FlushReplica(application: application, milliseconds: limit.map { min($0, 600_000) })
      let unsent = try await broker.call(call).unsent
      let document = PrintedObject { $0.member("unsent", unsent) }
      guard !unsent.isEmpty else { return try output.confirm(document, or: "Nothing is left to be sent.") }
      try output.show(document, or: unsent.text)
      throw ExitStatus.tryAgain
    }
  }
}

struct StoreMigrateCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Send an archive to the fleet's store again, with the present key.",
    usage: "restorationctl store migrate [<option> ...] (<application> | --all)",
    discussion: """
      Examples:
        restorationctl store migrate org.example.Notes
        restorationctl store migrate --all

      Replaces data that was sealed with a former key. Applications in use are
      refused. With --all the JSON is {"applications":[{"application":...,
      "result":{}}]}, or "error" instead of the result; exit status 1 means that
      at least one was refused.
      """
  )

  @OptionGroup var options: SomeApplicationsOptions

  func run() async throws {
    try await withBroker { broker in
      guard let application = options.application else { return try await migrateAll(broker) }
      try await broker.call(MigrateReplica(application: ApplicationName(sending: application)))
      try output.confirm(Done(), or: Self.sentence(application))
    }
  }

  private func migrateAll(_ broker: BrokerConnection) async throws {
    let outcomes = try await broker.forAll(output) { application in
      try await broker.call(MigrateReplica(application: ApplicationName(sending: application)))
      return Done()
    } report: { application, done in
      try output.confirm(done, or: Self.sentence(application))
    }
    if outcomes.contains(where: { $0.failure != nil }) { throw ExitStatus.refused }
  }

  private static func sentence(_ application: String) -> String { "\(application) was sent again." }
}

private struct Done: JSONWritable {
  func writeJSON(to writer: inout JSONWriter) { writer.object { _ in } }
}

extension [UnsentChanges] {
  fileprivate var text: String {
    map { unsent in
      let changes = unsent.changes.map { Quantity.count(Int(clamping: $0), "change") } ?? "changes of a former broker"
      return "\(unsent.application): \(changes) not sent.".printable + "\n"
    }.joined()
  }
}

extension ReplicaStatus {
  /// What to say if the store is not reachable.
  var silence: String { "fleet's store does not answer\(failure.map { ": \($0.message)" } ?? "")" }

  fileprivate func text(hidesLegend: Bool) -> String {
    var table = TextTable([
      TextTable.Column("APPLICATION", minimum: 16),
      TextTable.Column("LEASE", yields: 4),
      TextTable.Column("HOST", yields: 3),
      TextTable.Column("UNSENT", .right),
      TextTable.Column("FOR", .right, yields: 2),
      TextTable.Column("WAITING", .right, yields: 1),
      TextTable.Column("TROUBLE"),
    ])
    for application in applications {
      let failure = application.failure.map { "\($0.cause): \($0.message)" }
      let copies = application.conflicts.map(\.application.description).joined(separator: " ")
      table.add([
        application.application.description,
        application.lease.rawValue,
        application.host ?? "-",
        application.changes.map { String($0) } ?? "?",
        application.milliseconds == 0 ? "-" : Quantity.age(application.milliseconds),
        Quantity.bytes(Int(clamping: application.bytes)),
        failure ?? (copies.isEmpty ? "-" : copies),
      ])
    }
    guard !hidesLegend else { return table.text(header: false) }
    let sealing = key.map { "sealed with the key \($0)" } ?? "not sealed"
    let place = "Host \(host), acknowledged by \(acknowledge.rawValue), \(sealing)."
    let silence = reachable ? "" : "The \(self.silence).".printable + "\n"
    return table.text(header: true) + "\n" + place.printable + "\n" + silence
  }
}
