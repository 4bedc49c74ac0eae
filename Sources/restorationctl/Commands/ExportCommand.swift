// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct ExportCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Export the saved state of an application as a document.",
    usage: "restorationctl export [<option> ...] (<application> | --all)",
    discussion: """
      Examples:
        restorationctl export org.example.Notes > notes.json
        restorationctl export org.example.Notes -o notes.json --reveal
        restorationctl export org.example.Notes --generation 3 | diff notes.json -
        restorationctl export --all -o saved/

      The document is JSON, one object a line; equal saved states give equal
      documents. A file is written completely or not at all, and only its owner can
      read it. Confidential states are left out unless --reveal is given. With
      --all, each application has a file in the directory, which is made if it does
      not exist: org.example.Notes.json.
      """
  )

  @OptionGroup var options: SomeApplicationsOptions

  @OptionGroup var destination: DestinationOptions

  @Option(
    help: ArgumentHelp("Export a generation instead of the head.", valueName: "number"),
    completion: .generations,
    transform: GenerationNumber.read
  )
  var generation: Int64?

  @Flag(help: "Export confidential states as well.")
  var reveal = false

  func validate() throws {
    guard options.all else { return }
    if generation != nil {
      throw ValidationError("generations of applications have nothing in common: leave out --all")
    }
    if destination.file == nil { throw ValidationError("Give a directory for the documents: --all -o DIRECTORY") }
  }

  func run() async throws {
    try await withBroker { broker in
      guard let application = options.application else { return try await exportAll(broker) }
      let exported = try await ProgressLine.during("exporting") { try await export(application, broker, $0) }
      var document = exported.text
      if let layout = output.layout { document = layout.lay(out: try JSONLayout.compact.format(document)) + "\n" }
      try destination.write(document, printed: Terminal.isOutput ? document.printableJSON : nil)
      if exported.isRedacted { Self.noteRedaction() }
    }
  }

  private func exportAll(_ broker: BrokerConnection) async throws {
    let directory = destination.file ?? "."
    try OutputFile.reporting { () throws(OutputFile.Fault) in try OutputFile.makeDirectory(directory) }
    var isRedacted = false
    let outcomes = try await broker.forAll(output) { application in
      let exported = try await export(application, broker, nil)
      let path = "\(directory)/\(application).json"
      try OutputFile.reporting { () throws(OutputFile.Fault) in try OutputFile(path: path).write(exported.text) }
      isRedacted = isRedacted || exported.isRedacted
      return ExportedFile(path: path, bytes: exported.text.utf8.count)
    } report: { application, written in
      let size = Quantity.bytes(written.bytes)
      try output.confirm(written, or: "\(application) exported to \(written.path), \(size).")
    }
    if isRedacted { Self.noteRedaction() }
    if outcomes.contains(where: { $0.failure != nil }) { throw ExitStatus.refused }
  }

  private func export(
    _ application: String,
    _ broker: BrokerConnection,
    _ progress: ArchiveProgress.Handler?
  ) async throws -> (text: String, isRedacted: Bool) {
    let text = try await GenerationNumber.orNotThere(in: application) {
      try await broker.exportArchive(of: application, generation: generation, reveal: reveal, progress: progress)
    }
    // The document's first line tells whether states were left out.
    return (text, text.prefix { $0 != "\n" }.contains("\"redacted\":true"))
  }

  private static func noteRedaction() {
    Output.complain("confidential states were left out; --reveal exports them as well")
  }
}

private struct ExportedFile: JSONWritable, Sendable {
  let path: String
  let bytes: Int

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("file", path)
      writer.member("bytes", bytes)
    }
  }
}
