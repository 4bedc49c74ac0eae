// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationReplica
internal import RestorationWire

struct StoreKeyCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "Make keys with which the fleet's store is sealed.",
    usage: "restorationctl store key [<option> ...] <command>",
    discussion: """
      Example:
        restorationctl store key new
      """,
    subcommands: [StoreKeyNewCommand.self]
  )

  // All options may stand before or after the command.
  @OptionGroup var options: CommonOptions
}

/// The only command that asks no broker: without a key none starts.
struct StoreKeyNewCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Make a key, with which is sealed from now on.",
    usage: "restorationctl store key new [<option> ...] [--keys <directory>]",
    discussion: """
      Examples:
        restorationctl store key new
        restorationctl store key new && restorationctl store migrate --all

      The directory is made if it does not exist. Former keys stay: what they have
      sealed can be read. Copy the directory to your other hosts first: what is
      sealed cannot be read without its key. In JSON it is {"key":...,"directory":...}.
      """
  )

  @OptionGroup var options: CommonOptions

  @Option(
    help: ArgumentHelp(
      "The directory of the keys (default: $XDG_CONFIG_HOME/restorationd/keys).",
      valueName: "directory"
    ),
    completion: .directory
  )
  var keys: String?

  func run() async throws {
    let directory = try keys ?? Self.defaultDirectory()
    let key: ReplicaKeyID
    do throws(ReplicaKeyError) {
      key = try KeyDirectory(directory).makeKey()
    } catch {
      throw Failure(ExitStatus.refused, kind: "noKey", error.description)
    }
    let document = PrintedObject { writer in
      writer.member("key", key.description)
      writer.member("directory", directory)
    }
    try output.print(document, or: "\(key)\n")
  }

  private static func defaultDirectory() throws -> String {
    guard let directory = KeyDirectory.usual(Terminal.variable), directory.hasPrefix("/") else {
      let hint = "Name the directory with --keys."
      throw Failure(ExitStatus.usage, kind: "usage", "neither XDG_CONFIG_HOME nor HOME is set", hint: hint)
    }
    return directory
  }
}
