// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

/// `restorationctl export`
struct ExportCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "export",
    abstract: "Write what an application has saved as a document.",
    discussion: """
      Examples:
        restorationctl export org.example.Notes > notes.json
        restorationctl export org.example.Notes -o notes.json --reveal
        restorationctl export org.example.Notes --generation 3 | diff notes.json -

      The document is JSON, one object a line, and the same for what has been saved
      alike. A file is written whole or not at all, and only its owner can read it.
      Confidential states are left out unless --reveal is said.
      """
  )

  @OptionGroup var connection: ConnectionOptions
  @OptionGroup var layout: OutputOptions

  @Argument(help: "The application, with its instance if it has one.")
  var application: String

  @Option(name: .shortAndLong, help: ArgumentHelp("Write to a file instead of standard output.", valueName: "file"))
  var output: String?

  @Option(help: ArgumentHelp("Export a generation instead of the head.", valueName: "number"))
  var generation: Int64?

  @Flag(help: "Export confidential states as well.")
  var reveal = false

  func run() async throws {
    try await connection.run { broker in
      var document = try await ProgressLine.during("exporting") { progress in
        try await broker.exportArchive(of: application, generation: generation, reveal: reveal, progress: progress)
      }
      // The broker says so in the first line.
      let isRedacted = document.prefix { $0 != "\n" }.contains("\"redacted\":true")
      if let layout = layout.layout { document = try layout.format(document) + "\n" }
      if let output {
        do throws(OutputFile.Failure) {
          try OutputFile(path: output).write(document)
        } catch {
          Output.complain(error.message)
          throw ExitStatus.outputFailed
        }
      } else {
        try Output.print(document)
      }
      if isRedacted { Output.complain("confidential states were left out; --reveal exports them as well") }
    }
  }
}
