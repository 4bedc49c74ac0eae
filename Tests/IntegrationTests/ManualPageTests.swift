// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// The manual pages in `systemd/man` and the programs' own help say the same.
@Suite struct ManualPageTests {
  /// A command's options and arguments, written as the page writes them.
  private struct Command: Equatable {
    let name: String
    var options: Set<String> = []
    var arguments: [String] = []

    init(_ name: String) { self.name = name }

    init(_ value: JSONValue, _ name: String) {
      self.name = name
      for argument in value["arguments"]?.array ?? [] where argument["shouldDisplay"] != false {
        let value = argument["valueName"]?.string ?? ""
        if argument["kind"] == "positional" {
          let name = "Ar \(value)" + (argument["isRepeating"] == true ? " ..." : "")
          arguments.append(argument["isOptional"] == true ? "Oo \(name) Oc" : name)
        } else {
          let names = (argument["names"]?.array ?? []).map { name in
            "Fl " + (name["kind"] == "short" ? "" : "-") + (name["name"]?.string ?? "")
          }
          options.insert(names.joined(separator: " , ") + (argument["kind"] == "option" ? " Ar \(value)" : ""))
        }
      }
    }

    /// The command or, if it only groups others, its subcommands.
    static func all(_ value: JSONValue, below parent: String) -> [Command] {
      let name = parent + (value["commandName"]?.string ?? "")
      guard let subcommands = value["subcommands"]?.array, !subcommands.isEmpty else { return [Command(value, name)] }
      return subcommands.flatMap { all($0, below: "\(name) ") }
    }
  }

  private static func tool() throws -> JSONValue {
    let dump = try ChildProcess.run([Products.control, "--experimental-dump-help"]).output
    return try JSONCodec.parse(Array(dump.utf8))["command"] ?? .null
  }

  private static func lines(of page: String) throws -> [String] {
    try Files.text("\(Products.repository)/systemd/man/\(page)").split(separator: "\n").map(String.init)
  }

  /// The page's commands; the first has no name and is the program itself.
  private static func commands(on page: String) throws -> [Command] {
    var commands = [Command("")]
    for line in try lines(of: page) where line.hasPrefix(".It ") {
      let item = line.dropFirst(4)
      if item.hasPrefix("Fl ") {
        commands[commands.count - 1].options.insert(String(item))
      } else if item.hasPrefix("Cm "), page.hasPrefix("restorationctl") {
        let words = item.dropFirst(3).split(separator: " ")
        let name = words.prefix { $0 != "Ar" && $0 != "Oo" }
        commands.append(Command(name.joined(separator: " ")))
        let rest = words.dropFirst(name.count).joined(separator: " ")
        commands[commands.count - 1].arguments = rest.isEmpty ? [] : [rest]
      }
    }
    return commands
  }

  /// The broker's options, as its page writes them.
  private static func brokersOptions() throws -> Set<String> {
    let help = try ChildProcess.run([Products.broker, "--help"]).output.split(separator: "\n")
    let lines = help.drop { $0 != "OPTIONS:" }.dropFirst().filter { $0.hasPrefix("  -") }
    let options = lines.map { line in
      let words = line.split(separator: " ", maxSplits: 2)
      let isShort = words[0].hasSuffix(",")
      let names = words[0].hasPrefix("--") ? ["Fl \(words[0].dropFirst())"] : ["Fl h", "Fl -help"]
      let value = !isShort && words[1].hasPrefix("<") ? " Ar \(words[1].dropFirst().dropLast())" : ""
      return names.joined(separator: " , ") + value
    }
    return Set(options)
  }

  @Test(.passesTurnstile) func theBrokersPageHasAllItsOptions() throws {
    let options = try Self.brokersOptions()
    #expect(options.count >= 9)
    #expect(try Self.commands(on: "restorationd.1").map(\.options) == [options])
    let synopsis = try Self.lines(of: "restorationd.1").filter { $0.hasPrefix(".Op Fl ") }.map { $0.dropFirst(4) }
    #expect(Set(synopsis.map(String.init)) == options.subtracting(["Fl -version", "Fl h , Fl -help"]))
  }

  @Test(.passesTurnstile) func theGatewaysPageHasAllItsOptions() throws {
    let help = try ChildProcess.run([Products.gateway, "--help"]).output
    let options = Set(help.matches(of: /--[a-z][a-z-]*/).map { String($0.output) })
    #expect(options.count >= 7)
    let page = try Self.lines(of: "restoration-gateway.8").filter { $0.hasPrefix(".It Fl ") }
    #expect(Set(page.flatMap { $0.split(separator: " ").filter { $0.hasPrefix("-") }.map { "-\($0)" } }) == options)
  }

  @Test(.passesTurnstile) func completionsOfTheBrokerHaveAllItsOptions() throws {
    let names = try Self.brokersOptions().map { $0.split(separator: " ") }.map { words in
      words.last { $0.hasPrefix("-") }.map { "-\($0)" } ?? ""
    }
    #expect(names.contains("--socket") && names.contains("--help"))
    for shell in ["bash", "zsh", "fish"] {
      let text = try Files.text("\(Products.repository)/systemd/completions/restorationd.\(shell)")
      let words = Set(text.split { !$0.isLetter && $0 != "-" }.map(String.init))
      for name in names {
        let word = shell == "fish" ? String(name.dropFirst(2)) : name
        #expect(words.contains(word), "\(shell): \(name)")
      }
    }
  }

  @Test(.passesTurnstile) func theToolsPageHasAllCommandsAndTheirOptions() throws {
    let tool = try Self.tool()
    let common = Command(tool, "").options
    let page = try Self.commands(on: "restorationctl.1")
    #expect(page.first?.options == common)
    var expected = (tool["subcommands"]?.array ?? []).flatMap { Command.all($0, below: "") }
    expected.removeAll { $0.name == "help" }
    #expect(expected.count >= 19)
    let described = page.dropFirst().filter { $0.name != "help" }
    #expect(described.map(\.name) == expected.map(\.name))
    for (described, command) in zip(described, expected) {
      #expect(described.options == command.options.subtracting(common), "\(command.name)")
      #expect(described.arguments.joined() == command.arguments.joined(separator: " "), "\(command.name)")
    }
  }

  @Test(.passesTurnstile) func theToolsPageHasItsExitStatuses() throws {
    let help = try ChildProcess.run([Products.control, "--help"]).output
    let end = try #require(help.firstRange(of: "Exit status:")).upperBound
    let numbers = help[end...].matches(of: /\b([0-9]+) [a-z]/).compactMap { Int($0.1) }
    #expect(numbers.count >= 8)
    let lines = try Self.lines(of: "restorationctl.1")
      .drop { $0 != ".Sh EXIT STATUS" }
      .prefix { $0 != ".Sh EXAMPLES" }
    #expect(lines.compactMap { $0.hasPrefix(".It ") ? Int($0.dropFirst(4)) : nil } == numbers)
  }

  /// The broker's error about an unknown setting lists the known ones.
  @Test(.scratch) func theBrokersPageHasAllSettingsOfTheConfigurationFile() throws {
    let file = try directory.write(#"{"unknown": 1}"#, to: "config.json")
    let message = try ChildProcess.run([Products.broker, "--config", file]).errors
    let list = message.split(separator: "\n").first?.split(separator: " are ").last ?? ""
    let settings = list.split(separator: ",").map { $0.filter { $0.isLetter } }
    #expect(settings.contains("limits"), "\(message)")
    let page = try Self.lines(of: "restorationd.1").filter { $0.hasPrefix(".It Cm ") }.map { $0.dropFirst(7) }
    #expect(Set(page.map(String.init)) == Set(settings))
  }
}
