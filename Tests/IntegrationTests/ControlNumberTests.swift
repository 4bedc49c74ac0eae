// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import Mutation
internal import TestSupport
internal import Testing

/// Every number of the tool's command line, at its borders.
@Suite(.broker) struct ControlNumberTests {
  private struct Option {
    let command: [String]
    let name: String
    /// Operands that the command cannot do without.
    let operands: Int
  }

  /// Options whose value is a number, as the tool describes itself.
  private static func options(of command: JSONValue, _ words: [String] = []) -> [Option] {
    let arguments = command["arguments"]?.array ?? []
    let operands = arguments.count { $0["kind"] == "positional" && $0["isOptional"] != true }
    let own = arguments.filter { ["seconds", "number"].contains($0["valueName"]) }.compactMap { argument in
      argument["names"]?.array?.first?["name"]?.string.map {
        Option(command: words, name: "--\($0)", operands: operands)
      }
    }
    let others = (command["subcommands"]?.array ?? []).filter { $0["commandName"] != "help" }
    return own + others.flatMap { options(of: $0, words + [$0["commandName"]?.string ?? ""]) }
  }

  @Test func aNumberIsTakenOrRefusedAndTheToolEnds() throws {
    let description = try ControlTool.run(["--experimental-dump-help"], status: 0).json
    var options = Self.options(of: description["command"] ?? .null)
    // That of all commands.
    options.removeAll { $0.name == "--timeout" && $0.command != ["status"] }
    #expect(options.count > 6)
    try broker.session("a").encode("A", state: ["n": 1])
    for option in options {
      let operands = Array(repeating: "a", count: option.operands)
      // Without an end it would go on for so long.
      let others = option.command == ["top"] && option.name != "--count" ? ["--count=1"] : []
      for number in borderNumbers where option.name != "--count" || number.hasPrefix("-") || number == "0" {
        let words = option.command + ["\(option.name)=\(number)"] + others + operands
        let result = try ControlTool.run(words, input: "{}")
        guard case .exit(let status) = result.end else {
          Issue.record("\(words) ended with \(result.end)")
          continue
        }
        #expect(status == 0 || !result.errors.isEmpty, "\(words)")
      }
    }
  }
}
