// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser

/// The control tool: asks a running broker and shows its answers.
@main
struct Control: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restorationctl",
    abstract: "Look at and steer the broker that keeps the state of applications.",
    discussion: """
      Examples:
        restorationctl status
        restorationctl list
        restorationctl --socket /tmp/r/broker.sock call limits
        restorationctl call describeApplication '{"application":"org.example.Notes"}'

      The socket is --socket, else $RESTORATIOND_SOCKET, else
      $XDG_RUNTIME_DIR/restorationd/broker.sock.

      Data goes to standard output, messages to standard error. Exit status:
         0  done
         1  the broker answered with an error
         3  no broker is running
        64  the command line is wrong
        69  a broker is there and the connection to it failed
      """,
    version: "0.1.0",
    subcommands: [
      StatusCommand.self, ListCommand.self, VerifyCommand.self, BackupCommand.self, ExportCommand.self,
      ImportCommand.self, CallCommand.self,
    ]
  )

  @OptionGroup var connection: ConnectionOptions
}
