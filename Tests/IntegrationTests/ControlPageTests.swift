// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// `Protocol/restorationctl.md` and the tool's own help say the same.
@Suite struct ControlPageTests {
  /// A command as the tool describes it.
  private struct Command {
    /// With the name of the command that it is below of, such as `quarantine list`.
    let name: String
    /// Options as people type them, with the name of their value; the same for positional arguments.
    let options: [String]
    let arguments: [String]

    /// A command or, if it only groups others, its subcommands.
    static func commands(_ value: JSONValue, below parent: String = "") -> [Command] {
      let name = parent + (value["commandName"]?.string ?? "")
      guard let subcommands = value["subcommands"]?.array, !subcommands.isEmpty else { return [Command(value, name)] }
      return subcommands.flatMap { commands($0, below: "\(name) ") }
    }

    init(_ value: JSONValue, _ name: String) {
      self.name = name
      let all = (value["arguments"]?.array ?? []).filter { $0["shouldDisplay"] != false }
      arguments = all.filter { $0["kind"] == "positional" }.map { "<\($0["valueName"]?.string ?? "")>" }
      options = all.filter { $0["kind"] != "positional" }.map { argument in
        let names = (argument["names"]?.array ?? []).map { name in
          (name["kind"] == "short" ? "-" : "--") + (name["name"]?.string ?? "")
        }
        let value = argument["kind"] == "option" ? " <\(argument["valueName"]?.string ?? "")>" : ""
        return names.joined(separator: ", ") + value
      }
    }
  }

  private static func help(_ arguments: [String]) throws -> String {
    let result = try ChildProcess.run([Products.control] + arguments + ["--help"], environment: ["COLUMNS": nil])
    #expect(result.end == .exit(0))
    #expect(result.errors.isEmpty)
    return result.output
  }

  private static func commands() throws -> (tool: Command, commands: [Command]) {
    let dump = try ChildProcess.run([Products.control, "--experimental-dump-help"]).output
    let tool = try JSONCodec.parse(Array(dump.utf8))["command"] ?? .null
    let commands = (tool["subcommands"]?.array ?? []).flatMap { Command.commands($0) }.filter { $0.name != "help" }
    return (Command(tool, ""), commands)
  }

  private static func page() throws -> [String] {
    try Files.text("\(Products.repository)/Protocol/restorationctl.md").split(
      separator: "\n",
      omittingEmptySubsequences: false
    ).map(String.init)
  }

  /// The lines below a heading.
  private static func section(_ heading: String) throws -> [String] {
    let lines = try page()
    guard let start = lines.firstIndex(of: heading) else { return [] }
    let level = heading.prefix { $0 == "#" }.count
    return lines[(start + 1)...].prefix { line in
      !line.hasPrefix("#") || line.prefix { $0 == "#" }.count > level
    }
  }

  /// The code in the first column of the first table with this title.
  private static func column(_ lines: [String], _ title: String = "option") -> [String] {
    lines.drop { !$0.hasPrefix("| \(title) |") }.prefix { $0.hasPrefix("|") }.dropFirst(2).map { line in
      line.split(separator: "|")[0].filter { $0 != "`" }.split(separator: " ").joined(separator: " ")
    }
  }

  @Test(.passesTurnstile) func thePageHasAllOptionsOfAllCommands() throws {
    let (tool, commands) = try Self.commands()
    #expect(Set(Self.column(try Self.section("## Options"))) == Set(tool.options))
    #expect(commands.count >= 7)
    for command in commands {
      let section = try Self.section("### `\(command.name)`")
      #expect(!section.isEmpty, "\(command.name) is not on the page")
      #expect(Set(tool.options).isSubset(of: command.options), "\(command.name) has not all options")
      #expect(Set(Self.column(section)) == Set(command.options).subtracting(tool.options), "\(command.name)")
      let usage = section.first { $0.hasPrefix("restorationctl \(command.name)") } ?? ""
      for argument in command.arguments { #expect(usage.contains(argument), "\(command.name): \(usage)") }
      let help = try Self.help(command.name.split(separator: " ").map(String.init))
      #expect(help.contains("USAGE: \(usage)\n"), "\(command.name)")
    }
    let headings = try Self.page().filter { $0.hasPrefix("### `") }
    #expect(headings.count == commands.count)
  }

  @Test(.passesTurnstile) func theHelpOfTheToolIsOneScreenWithAllCommandsInTheOrderOfThePage() throws {
    let help = try Self.help([])
    #expect(try ChildProcess.run([Products.control], environment: ["COLUMNS": nil]).output == help)
    #expect(try ChildProcess.run([Products.control, "help"], environment: ["COLUMNS": nil]).output == help)
    let lines = help.split(separator: "\n", omittingEmptySubsequences: false).dropLast()
    #expect((24...40).contains(lines.count) && lines.allSatisfy { $0.count <= 80 }, "\(help)")
    func isTitle(_ line: Substring) -> Bool { line.wholeMatch(of: /[A-Z][a-z ]*:/) != nil }
    let rows = lines.drop { !isTitle($0) }.prefix { !$0.hasPrefix("Options") }.filter { !$0.isEmpty }
    let names = rows.flatMap { row -> [Substring] in
      isTitle(row) ? [row.dropLast()] : row.dropFirst(2).prefix(23).split { $0 == "," || $0 == " " }
    }
    let headings = try Self.page().drop { $0 != "## Commands" }.dropFirst().filter {
      $0.hasPrefix("## ") || $0.hasPrefix("### `")
    }
    var expected: [Substring] = []
    for heading in headings {
      let isGroup = heading.hasPrefix("## ")
      let name = isGroup ? heading.dropFirst(3) : heading.dropFirst(5).prefix { $0 != "`" && $0 != " " }
      if expected.last != name { expected.append(name) }
    }
    #expect(names == expected)
  }

  @Test(.passesTurnstile) func helpBeginsWithExamplesFits80ColumnsAndNumbersNoRules() throws {
    for arguments in try Self.commands().commands.map({ $0.name.split(separator: " ").map(String.init) }) {
      let help = try Self.help(arguments)
      #expect(help.firstMatch(of: /\bR[0-9]/) == nil, "\(arguments)")
      for line in help.split(separator: "\n") where line.count > 80 { Issue.record("\(arguments): \(line)") }
      let lines = help.split(separator: "\n")
      #expect(lines.count > 3 && lines[1] == "Examples:" && lines[2].hasPrefix("  restorationctl "), "\(arguments)")
    }
  }

  @Test(.passesTurnstile) func theHelpAndThePageListTheSameStatuses() throws {
    let page = Self.column(try Self.section("## Exit status"), "status")
    let help = try Self.help([])
    let end = try #require(help.firstRange(of: "Exit status:")).upperBound
    #expect(help[end...].matches(of: /\b([0-9]+) [a-z]/).map { String($0.1) } == page)
    #expect(page == ["0", "1", "3", "4", "64", "69", "74", "75"])
  }
}
