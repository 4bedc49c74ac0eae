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
      guard !trial.isDry else { return try await preview(document, broker) }
      do {
        let imported = try await ProgressLine.during("importing") { progress in
          try await broker.importArchive(document, into: application, force: force, progress: progress)
        }
        try output.confirm(imported, or: sentence(of: imported))
      } catch let error as RestorationError {
        throw Failure(error, hint: Self.hint(for: error))
      }
    }
  }

  /// What would be replaced by what. Whether the states are within the broker's limits, only the broker can say.
  private func preview(_ document: String, _ broker: BrokerConnection) async throws {
    let objects = try Self.objects(of: document)
    let states = objects.count { $0.state != nil }
    let former: ApplicationDescription?
    do {
      former = try await broker.describeApplication(application)
    } catch let error as RestorationError where error.code == .unknownApplication {
      former = nil
    }
    let replaced = former?.objects.count(where: \.hasState) ?? 0
    let printed = PrintedObject { writer in
      writer.member("objects", objects.count)
      writer.member("states", states)
      writer.member("replaced", replaced)
      writer.member("dryRun", true)
    }
    let parts = [
      "Would give \(application) \(Quantity.count(objects.count, "object")), \(Quantity.count(states, "state")).",
      Quantity.remark(replaced, "state", force ? "replaced" : "replaced, which takes --force"),
      Quantity.remark(former?.sessions.count ?? 0, "session", "live, and has to end first"),
    ]
    try output.confirm(printed, or: parts.joined())
  }

  private static func objects(of document: String) throws -> [DocumentObject] {
    let hint = "Give a document that restorationctl export has written."
    let slice = try JSONSlice.read(document, subject: "the document", hint: hint)
    do throws(Misfit) {
      var objects: [DocumentObject] = []
      _ = try ArchiveDocument(wire: slice)
      for object in slice["objects"]?.elements ?? [] { objects.append(try DocumentObject(wire: object)) }
      return objects
    } catch {
      let fault = error.invalidParameter(at: "/\(error.place)")
      throw Failure(ExitStatus.refused, kind: ErrorCode.invalidParams.kind, fault.message, hint: hint)
    }
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

  private func sentence(of imported: ImportedArchive) -> String {
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
