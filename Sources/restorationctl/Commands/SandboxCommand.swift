// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct SandboxCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "sandbox",
    abstract: "Make a socket for one application, and print its directory.",
    usage: "restorationctl sandbox [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl sandbox org.example.Notes
        bwrap --ro-bind / / --ro-bind "$(restorationctl sandbox org.example.Notes)" \\
          "$XDG_RUNTIME_DIR/restorationd" /usr/bin/notes

      Whoever comes through broker.sock in that directory may use this
      application and its instances only, and is not told about others. Mount
      the directory, not the socket: the broker may make the socket anew.
      """
  )

  @OptionGroup var options: Options

  struct Options: ControlOptions {
    @OptionGroup var connection: ConnectionOptions
    @OptionGroup var output: OutputOptions
    @OptionGroup var legend: LegendOptions

    @Argument(help: "The application, without instance.", completion: .applications)
    var application: String
  }

  func run() async throws {
    try await withBroker { broker in
      let socket = try await broker.openSocket(of: options.application)
      try output.print(socket, or: "\(socket.directory)\n")
      // It is there, whatever becomes of this.
      if !output.isQuiet { try? await noteNew(options.application, broker) }
    }
  }

  /// A name with a slip of the pen has a socket as well.
  private func noteNew(_ name: String, _ broker: BrokerConnection) async throws {
    let known = try await broker.listApplications().map(\.application.base)
    if !known.contains(name) { Suggestion.noteNew(name, known: known) }
  }
}
