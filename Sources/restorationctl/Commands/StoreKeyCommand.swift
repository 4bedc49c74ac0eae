// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationWire

#if Fleet
internal import RestorationReplica
#endif

struct StoreKeyCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "key",
    abstract: "Manage the keys that seal the fleet's store.",
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

/// The only command without a broker: a broker needs the key to start.
struct StoreKeyNewCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "new",
    abstract: "Make a new sealing key.",
    usage: "restorationctl store key new [<option> ...] [--keys <directory>]",
    discussion: """
      Examples:
        restorationctl store key new
        restorationctl store key new && restorationctl store migrate --all

      The directory is made if it does not exist. Former keys stay, so that older
      data can be read. Copy the directory to your other hosts first: they cannot
      read sealed data without its key. The JSON is {"key":...,"directory":...}.
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
    #if Fleet
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
    guard Terminal.hasReader else { return }
    let place = directory.printable
    Output.complain("the key is in \(place): copy that directory to your other hosts, then restart the broker")
    #else
    let hint = "Use a restorationctl that was built with it."
    throw Failure(ExitStatus.refused, kind: "noKey", "built without the package trait Fleet", hint: hint)
    #endif
  }

  #if Fleet
  private static func defaultDirectory() throws -> String {
    guard let directory = KeyDirectory.usual(Terminal.variable), directory.hasPrefix("/") else {
      let hint = "Name the directory with --keys."
      throw Failure(ExitStatus.usage, kind: "usage", "neither XDG_CONFIG_HOME nor HOME is set", hint: hint)
    }
    return directory
  }
  #endif
}
