// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct BackupCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy an application's archive.",
    usage: "restorationctl backup [<option> ...] (<application> [<file>] | --all)",
    discussion: """
      Examples:
        restorationctl backup org.example.Notes
        restorationctl backup org.example.Notes notes.sqlite
        restorationctl backup --all

      Without a file, the command renews the backup that the broker uses if the
      archive is damaged; with --all, those of all applications. The file must not
      exist yet. It appears only when it is complete, and only its owner can read
      it.
      """
  )

  @OptionGroup var options: SomeApplicationsOptions

  @Argument(help: "The file to copy to.", completion: .file())
  var file: String?

  func run() async throws {
    let path = try file.map { file in
      do throws(OutputFile.Fault) {
        return try OutputFile.absolute(file)
      } catch {
        throw ValidationError(error.message)
      }
    }
    try await withBroker { broker in
      guard let application = options.application else { return try await backUpAll(broker) }
      let copy = try await ProgressLine.during("copying") { progress in
        try await broker.call(BackupArchive(to: path), of: application, progress: progress)
      }
      try output.confirm(copy, or: Self.sentence(application, copy))
    }
  }

  private func backUpAll(_ broker: BrokerConnection) async throws {
    let outcomes = try await broker.forAll(output) { application in
      try await broker.call(BackupArchive(), of: application)
    } report: { application, copy in
      try output.confirm(copy, or: Self.sentence(application, copy))
    }
    if outcomes.contains(where: { $0.failure != nil }) { throw ExitStatus.refused }
  }

  private static func sentence(_ application: String, _ copy: ArchiveBackup) -> String {
    let place = copy.to ?? "its backup copy"
    return "\(application) copied to \(place), \(Quantity.bytes(copy.bytes))."
  }
}
