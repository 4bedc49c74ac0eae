// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What bash offers of what the broker knows.
@Suite struct CompletionTests {
  private static let script = Result {
    try ChildProcess.run([Products.control, "--generate-completion-script", "bash"]).output
  }

  /// The second that a person waits is too short for a busy machine.
  private static let patience: [String: String?] = ["RESTORATIONCTL_COMPLETION_TIMEOUT": "20"]

  /// What bash offers in place of the last of these words.
  private static func offered(
    _ words: [String],
    _ socket: String,
    _ environment: [String: String?] = [:]
  ) throws -> [String] {
    let line = #"""
      eval "$(cat)"
      COMP_WORDS=("$0" "$@") COMP_CWORD=$# COMP_LINE="$0 $*"
      COMP_POINT=${#COMP_LINE}
      _restorationctl_joined "$0" "${@: -1}" "${COMP_WORDS[COMP_CWORD - 1]}"
      printf '%s\n' "${COMPREPLY[@]}"
      """#
    let result = try ChildProcess.run(
      ["bash", "-c", line, Products.control] + words,
      input: Self.script.get(),
      environment: ["RESTORATIOND_SOCKET": socket, "LC_ALL": "C.UTF-8"].merging(patience) { $1 }
        .merging(environment) { $1 }
    )
    #expect(result.end == .exit(0))
    #expect(result.errors.isEmpty, "\(result.errors)")
    return result.output.split(separator: "\n").map(String.init)
  }

  @Test(.broker) func bashOffersWhatTheBrokerKnows() throws {
    let client = try broker.session("org.example.Notes", process: "main")
    for path in [["Main"], ["Main", "Editor"], ["Main", "Editor", "Tab#2"], ["Side"], ["Überschrift"]] {
      let state: JSONValue = [:]
      try client.call("encodeRestorableState", ["object": .array(path.map { .string($0) }), "state": state])
    }
    try client.call("saveApplicationState")
    try broker.connect().encode("A", state: [:], of: "org.example.Other")
    let rows: [([String], [String])] = [
      (["tree", ""], ["org.example.Notes", "org.example.Other"]),
      (["tree", "org.example.N"], ["org.example.Notes"]),
      (["--json", "short", "show", "org.example.Notes", ""], ["Main", "Main/Editor", "Side", "Überschrift"]),
      (["show", "org.example.Notes", "Main/E"], ["Main/Editor", "Main/Editor/Tab#2"]),
      (["explain", "--full", "org.example.Notes", "S"], ["Side"]),
      (["diff", "org.example.Notes", ""], ["1"]),
      (["show", "org.example.Notes", "Main", "--generation", ""], ["1"]),
      (["call", "listG"], ["listGenerations"]),
      (["methods", "rpc."], ["rpc.discover"]),
      (["show", "org.example.Nobody", ""], []),
    ]
    for (words, expected) in rows {
      let offered = try Self.offered(words, broker.socket).filter { !$0.hasPrefix("-") }
      #expect(offered == expected, "\(words)")
    }
    // The socket that is named counts.
    let named = try Self.offered(["--socket", broker.socket, "tree", "org.example.N"], "/nowhere")
    #expect(named == ["org.example.Notes"])
  }

  /// It splits words at some letters, and replaces only what is behind the last of them.
  @Test(.broker) func anInteractiveBashCompletesWordsThatItSplits() throws {
    let client = try broker.connect()
    try client.encode("Main", state: [:], of: "org.example.Notes@two")
    let script = broker.directory.file("completions")
    try Files.write(Array(Self.script.get().utf8), to: script)
    let terminal = try PseudoTerminal(columns: 1_000)
    let shell = try ChildProcess(
      ["bash", "--norc", "--noprofile", "-i"],
      environment: ControlTool.environment(["PS1": "ready> ", "HISTFILE": nil, "INPUTRC": "/dev/null"])
        .merging(Self.patience) { $1 },
      output: .terminal(terminal)
    )
    _ = try terminal.shown(until: "ready> ")
    try terminal.type(". \(script)\n")
    _ = try terminal.shown(until: "ready> ")
    let rows = [
      ("tree org", ".example.Notes@two "), ("tree org.example.Notes@t", "wo "), ("tree org.example.Notes@", "two "),
      ("show org.example.Notes@two M", "ain "), ("--socket=\(broker.socket) show org.example.Notes@two M", "ain "),
      ("--socket=\(broker.socket) tree org.example.Notes@t", "wo "),
    ]
    for (typed, added) in rows {
      try terminal.type("\(Products.control) \(typed)\t")
      _ = try terminal.shown(until: "\(typed)\(added)")
      // Deletes the line.
      try terminal.type("\u{15}\n")
      _ = try terminal.shown(until: "ready> ")
    }
    try terminal.type("exit\n")
    #expect(try shell.waitForEnd() == .exit(0))
  }

  /// Bash expands the words that it is offered.
  @Test(.broker) func aNameThatAShellWouldRunIsNotOffered() throws {
    let proof = broker.directory.file("proof")
    let client = try broker.connect()
    for name in ["$(touch $PROOF)", "`touch $PROOF`", "a b", "$HOME", "'", "-x", "\u{202e}x", "{a,b}", "Good"] {
      try client.encode(name, state: [:], of: "a")
    }
    let offered = try Self.offered(["show", "a", ""], broker.socket, ["PROOF": proof])
    #expect(offered.filter { !$0.hasPrefix("-") } == ["Good"])
    #expect(Files.mode(proof) == 0)
  }

  @Test(.scratch, arguments: [["tree", "x"], ["show", "a", "x"], ["diff", "a", "x"], ["call", "x"]])
  func withoutABrokerNothingIsOfferedAndNothingSaid(_ words: [String]) throws {
    #expect(try Self.offered(words, directory.file("b.sock")) == [])
  }
}
