// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

/// Which broker to speak to. May stand before or after the command.
struct ConnectionOptions: ParsableArguments {
  @Option(help: ArgumentHelp("The broker's Unix socket.", valueName: "path"))
  var socket: String?

  /// Connects, lets `body` ask, and turns what it throws into a message and an exit status.
  func run(_ body: (BrokerConnection) async throws -> Void) async throws {
    do {
      let broker = try await BrokerConnection.connect(to: socket)
      try await body(broker)
      await broker.close()
    } catch let error as RestorationError {
      Output.complain(error.message)
      if let hint = error.hint { Output.write("  \(hint)\n", to: .messages) }
      throw ExitStatus.refused
    } catch let error as BrokerConnectionError {
      Output.complain(error.message)
      throw ExitCode(error)
    }
  }
}

/// How the tool ends, by the rules of LSB and sysexits.
enum ExitStatus {
  /// The broker answered with an error.
  static let refused = ExitCode(1)
  /// No broker is running.
  static let notRunning = ExitCode(3)
  /// The command line is wrong.
  static let usage = ExitCode(64)
  /// A broker is there and cannot be spoken with.
  static let unavailable = ExitCode(69)
  /// The output could not be written.
  static let outputFailed = ExitCode(74)
}

extension ExitCode {
  fileprivate init(_ error: BrokerConnectionError) {
    self =
      if error.isNotRunning {
        ExitStatus.notRunning
      } else if error.code == .noSocketPath {
        ExitStatus.usage
      } else {
        ExitStatus.unavailable
      }
  }
}
