// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

/// `restorationctl import`
struct ImportCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Put a document in the place of what an application has saved.",
    usage: "restorationctl import [<option> ...] <application> [<file>]",
    discussion: """
      Examples:
        restorationctl import org.example.Notes notes.json
        restorationctl import org.example.Notes - < notes.json
        restorationctl import org.example.Notes notes.json --force

      All of it is imported, or nothing where anything is wrong with it. The
      application must not be running. State that it has is only replaced with
      --force, and stays as its newest generation.
      """
  )

  @OptionGroup var options: CommonOptions

  @Argument(help: "The application, with its instance where it has one.")
  var application: String

  @Argument(help: "The document; - or nothing reads it from standard input.")
  var file: String?

  @Flag(help: "Replace state that is there; take a document that states miss in.")
  var force = false

  func run() async throws {
    let document = try read()
    try await connection.run { broker in
      let imported = try await ProgressLine.during("importing") { progress in
        try await broker.importArchive(document, into: application, force: force, progress: progress)
      }
      try output.print(imported, or: text(of: imported))
    }
  }

  private func text(of imported: ImportedArchive) -> String {
    let former = imported.generation.map { "; what was there is generation \($0)" } ?? ""
    let objects = Quantity.count(imported.objects, "object")
    let states = Quantity.count(imported.states, "state")
    return "\(application) has now \(objects), \(states), \(Quantity.bytes(imported.bytes))\(former).\n"
  }

  private func read() throws -> String {
    guard let file, file != "-" else { return try Output.readInput() }
    do throws(OutputFile.Fault) {
      return try OutputFile.read(file)
    } catch {
      throw ValidationError(error.message)
    }
  }
}
