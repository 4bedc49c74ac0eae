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

      Clients of broker.sock in that directory may use this application and its
      instances only, and learn nothing about others. Mount the directory, not
      the socket, because the broker may replace the socket.
      """
  )

  @OptionGroup var options: Options

  struct Options: ControlOptions {
    @OptionGroup var shared: SharedOptions

    @Argument(help: "The application, without instance.", completion: .applications)
    var application: String
  }

  func run() async throws {
    try await withBroker { broker in
      let application = try ApplicationName(sending: options.application)
      let socket = try await broker.call(OpenApplicationSocket(application: application))
      try output.print(socket, or: "\(socket.directory)\n")
      // The socket exists, even if this fails.
      if !output.isQuiet { try? await noteNew(options.application, broker) }
    }
  }

  /// A misspelt name gets a socket as well.
  private func noteNew(_ name: String, _ broker: BrokerConnection) async throws {
    let known = try await broker.call(ListApplications()).applications.map(\.application.base)
    if !known.contains(name) { Suggestion.noteNew(name, known: known) }
  }
}
