// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct ImportCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "import",
    abstract: "Replace the saved state of an application by a document.",
    usage: "restorationctl import [<option> ...] <application> [<file>]",
    discussion: """
      Examples:
        restorationctl import org.example.Notes notes.json
        restorationctl import org.example.Notes - < notes.json
        restorationctl import org.example.Notes notes.json --dry-run
        restorationctl import org.example.Notes notes.json --force

      The document is imported completely or, if it is invalid, not at all. The
      application must not be running. Existing state is replaced only with
      --force, and stays as its newest generation.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @OptionGroup var trial: DryRunOptions

  @Argument(help: "The document (default: -, which reads standard input).", completion: .file())
  var file: String?

  @Flag(help: "Replace existing state; accept an incomplete document.")
  var force = false

  func run() async throws {
    let document = try read()
    try await withBroker { broker in
      let replaced = trial.isDry ? try await replacedStates(broker) : 0
      do {
        let imported = try await ProgressLine.during(trial.isDry ? "checking" : "importing") { progress in
          try await broker.importArchive(
            document,
            into: application,
            force: force,
            dryRun: trial.isDry,
            progress: progress
          )
        }
        guard trial.isDry else { return try output.confirm(imported, or: Self.sentence(of: imported, application)) }
        try confirm(imported, replacing: replaced)
      } catch let error as RestorationError {
        throw Failure(error, hint: Self.hint(for: error))
      }
    }
  }

  private func replacedStates(_ broker: BrokerConnection) async throws -> Int {
    do {
      return try await broker.describeApplication(application).objects.count(where: \.hasState)
    } catch let error as RestorationError where error.code == .unknownApplication {
      return 0
    }
  }

  /// Says what would be done.
  private func confirm(_ imported: ImportedArchive, replacing replaced: Int) throws {
    let printed = PrintedObject { writer in
      writer.member("objects", imported.objects)
      writer.member("states", imported.states)
      writer.member("replaced", replaced)
      writer.member("dryRun", true)
    }
    let (objects, states) = (Quantity.count(imported.objects, "object"), Quantity.count(imported.states, "state"))
    let text = "Would give \(application) \(objects), \(states).\(Quantity.remark(replaced, "state", "replaced"))"
    try output.confirm(printed, or: text)
  }

  /// The next step, if the tool names it differently than the protocol; otherwise `nil`.
  private static func hint(for error: RestorationError) -> String? {
    let isForeign = ["/document", "/document/format", "/part/format"].contains(error.pointer)
    return switch error.code {
    case .parseError,
      .invalidParams where isForeign:
      "Give a document that restorationctl export has written."
    case .needsForce:
      """
      Use --force: saved state stays as the newest generation, and missing states are not imported. To import \
      confidential ones, export them with --reveal.
      """
    default: nil
    }
  }

  static func sentence(of imported: ImportedArchive, _ application: String) -> String {
    let former = imported.generation.map { "; the former state is generation \($0)" } ?? ""
    let objects = Quantity.count(imported.objects, "object")
    let states = Quantity.count(imported.states, "state")
    return "\(application) now has \(objects), \(states), \(Quantity.bytes(imported.bytes))\(former)."
  }

  private func read() throws -> String {
    guard let file, file != "-" else { return try Output.readInput() }
    do throws(OutputFile.Fault) {
      return try OutputFile.read(file)
    } catch {
      let hint = "Name a file that restorationctl export has written, or - for standard input."
      throw Failure(ExitStatus.usage, kind: "usage", error.message, hint: hint)
    }
  }
}
