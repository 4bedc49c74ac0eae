// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What shells offer of what the broker knows.
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
    try broker.connect().encode("A", state: ["tabs": [["file": "a"], [:]], "title": "x y"], of: "org.example.Other")
    let rows: [([String], [String])] = [
      (["tree", ""], ["org.example.Notes", "org.example.Other"]),
      (["tree", "org.example.N"], ["org.example.Notes"]),
      (["--json", "short", "show", "org.example.Notes", ""], ["Main/", "Side", "Überschrift"]),
      (["show", "org.example.Notes", "Main"], ["Main/"]),
      (["show", "org.example.Notes", "Main/"], ["Main/Editor/"]),
      (["show", "org.example.Notes", "Main/Editor/T"], ["Main/Editor/Tab#2"]),
      (["show", "org.example.Notes", "Main/Editor/X"], []),
      (["show", "org.example.Notes", "Other/"], []),
      (["explain", "--full", "org.example.Notes", "S"], ["Side"]),
      (["diff", "org.example.Notes", ""], ["1"]),
      (["show", "org.example.Notes", "Main", "--generation", ""], ["1"]),
      (["call", "listG"], ["listGenerations"]),
      // What only the broker calls.
      (["call", "encodeRestorableStateW"], []),
      (["methods", "encodeRestorableStateW"], ["encodeRestorableStateWithCoder"]),
      (["get", "org.example.Other", "A", ""], ["/tabs/", "/title"]),
      (["put", "org.example.Other", "A", "/ta"], ["/tabs/"]),
      (["rm", "org.example.Other", "A", "/tabs/"], ["/tabs/0/", "/tabs/1"]),
      (["get", "--reveal", "org.example.Other", "A", "/tabs/0/"], ["/tabs/0/file"]),
      (["get", "org.example.Other", "B", "/"], []),
      (["methods", "rpc."], ["rpc.discover"]),
      (["store", ""], ["status", "flush", "migrate", "conflicts", "key"]),
      (["store", "status", "org.example.N"], ["org.example.Notes"]),
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
    try client.call("encodeRestorableState", ["application": "tree", "object": ["Main", "Editor#2"], "state": [:]])
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
      ("--socket=\(broker.socket) tree org.example.Notes@t", "wo "), ("show tree M", "ain/"),
      // Behind a slash another Tab goes on.
      ("show tree M\t", "ain/Editor#2 "),
    ]
    for (typed, added) in rows {
      try terminal.type("\(Products.control) \(typed)\t")
      _ = try terminal.shown(until: "\(typed.filter { $0 != "\t" })\(added)")
      // Deletes the line.
      try terminal.type("\u{15}\n")
      _ = try terminal.shown(until: "ready> ")
    }
    try terminal.type("exit\n")
    #expect(try shell.waitForEnd() == .exit(0))
  }

  private static let hasShells: Bool = {
    guard !Environment.isCI else { return true }
    return ["zsh", "fish"].allSatisfy { (try? ChildProcess.run([$0, "--version"]))?.end == .exit(0) }
  }()

  /// How each begins, and what makes it complete, and write down what it would run.
  private static let shells: KeyValuePairs = [
    ["zsh", "-f", "-i"]: #"""
    fpath=(${0:h} $fpath)
    autoload -Uz compinit && compinit -u -D
    restorationctl() {
      [[ $1 = ---completion ]] && command restorationctl "$@" || print -r -- "$@" >>$WRITTEN
    }
    echo ready >$WRITTEN
    """#,
    ["fish", "--no-config"]: #"""
    source (dirname (status filename))/_restorationctl
    set fish_autosuggestion_enabled 0
    function restorationctl
      if test "$argv[1]" = ---completion
        command restorationctl $argv
      else
        echo $argv >>$WRITTEN
      end
    end
    echo ready >$WRITTEN
    """#,
  ]

  /// On a terminal, as a person types.
  @Test(.broker, .enabled(if: hasShells, "needs zsh and fish; Tests/run.sh installs them"), arguments: shells)
  func zshAndFishCompleteWhatTheBrokerKnows(_ command: [String], _ settings: String) throws {
    let client = try broker.connect()
    let editor: JSONValue = ["Main", "Editor"]
    try client.call(
      "encodeRestorableState",
      ["application": "org.example.Notes@two", "object": editor, "state": [:]]
    )
    let script = try ChildProcess.run([Products.control, "--generate-completion-script", command[0]]).output
    try broker.directory.write(script, to: "_restorationctl")
    let file = try broker.directory.write(settings, to: "settings")
    let written = broker.directory.file("written")
    let tools = Products.control.split(separator: "/", omittingEmptySubsequences: false).dropLast()
    let terminal = try PseudoTerminal(columns: 1_000)
    let shell = try ChildProcess(
      command,
      environment: ControlTool.environment([
        "WRITTEN": written, "HOME": broker.directory.path, "PATH": "\(tools.joined(separator: "/")):/usr/bin:/bin",
      ]).merging(Self.patience) { $1 },
      output: .terminal(terminal)
    )
    /// The shell may lose keys that are typed while it reads the line before.
    func type(_ line: String, until expected: String) throws {
      try Wait.until("the shell takes keys") {
        try terminal.drain()
        return terminal.takesKeys
      }
      try terminal.type("\(line)\r")
      var ran = ""
      do {
        try Wait.until("\(command[0]) has run \(expected)") {
          try terminal.drain()
          ran = (try? Files.text(written)) ?? ""
          return ran == expected
        }
      } catch { throw TestFailure("\(error), and not \(ran)\n\(try terminal.shown())") }
    }
    var ran = "ready\n"
    try type(". \(file)", until: ran)
    let lines =
      [
        "show org\tM\tE\t": "show org.example.Notes@two Main/Editor",
        "store mig\torg\t": "store migrate org.example.Notes@two",
      ] as KeyValuePairs
    for (typed, line) in lines {
      ran += "--socket \(broker.socket) \(line) --full\n"
      try type("restorationctl --socket \(broker.socket) \(typed)--full", until: ran)
    }
    try type("exit", until: ran)
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
