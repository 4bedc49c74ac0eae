// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct BackupCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Copy an application's archive.",
    usage: "restorationctl backup [<option> ...] <application> [<file>]",
    discussion: """
      Examples:
        restorationctl backup org.example.Notes
        restorationctl backup org.example.Notes notes.sqlite

      Without a file, the command renews the backup that the broker uses if the
      archive is damaged. The file must not exist yet. It appears only when it is
      complete, and only its owner can read it.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Argument(help: "The file to copy to.")
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
      let copy = try await ProgressLine.during("copying") { progress in
        try await broker.backUpArchive(of: application, to: path, progress: progress)
      }
      let place = copy.to ?? "its backup copy"
      try output.print(copy, or: "\(application) copied to \(place.printable), \(Quantity.bytes(copy.bytes)).\n")
    }
  }
}
