// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct ExportCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Export the saved state of an application as a document.",
    usage: "restorationctl export [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl export org.example.Notes > notes.json
        restorationctl export org.example.Notes -o notes.json --reveal
        restorationctl export org.example.Notes --generation 3 | diff notes.json -

      The document is JSON, one object a line; equal saved states give equal
      documents. A file is written completely or not at all, and only its owner can
      read it. Confidential states are left out unless --reveal is given.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Option(
    name: [.customShort("o"), .customLong("output")],
    help: ArgumentHelp("Write to a file; - is standard output.", valueName: "file")
  )
  var file: String?

  @Option(help: ArgumentHelp("Export a generation instead of the head.", valueName: "number"))
  var generation: Int64?

  @Flag(help: "Export confidential states as well.")
  var reveal = false

  func validate() throws {
    if let generation, generation < 1 { throw ValidationError("generations are numbered from 1") }
  }

  func run() async throws {
    try await withBroker { broker in
      var document = try await ProgressLine.during("exporting") { try await export(broker, $0) }
      // The document's first line says so.
      let isRedacted = document.prefix { $0 != "\n" }.contains("\"redacted\":true")
      if let layout = output.layout { document = layout.lay(out: try JSONLayout.compact.format(document)) + "\n" }
      if let file, file != "-" {
        do throws(OutputFile.Fault) {
          try OutputFile(path: file).write(document)
        } catch {
          throw Failure(ExitStatus.outputFailed, kind: "outputFailed", error.message)
        }
      } else {
        try Output.show(Terminal.isOutput ? document.printableJSON : document)
      }
      if isRedacted { Output.complain("confidential states were left out; --reveal exports them as well") }
    }
  }

  private func export(_ broker: BrokerConnection, _ progress: ArchiveProgress.Handler?) async throws -> String {
    try await GenerationNumber.orNotThere(in: application) {
      try await broker.exportArchive(of: application, generation: generation, reveal: reveal, progress: progress)
    }
  }
}
