// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import SeededRandom
internal import TestSupport
internal import Testing

/// Installing the libraries, building programs on them, and running them under checkers.
@Suite(.timeLimit(.minutes(10))) struct ClientLibraryBuildTests {
  @Test("pip installs the sdist of the Python library without a network, and the programs of its page run", .broker)
  func pipInstalls() throws {
    let place = broker.directory.file("venv")
    let environment: [String: String?] = [
      "PYTHONPATH": nil, "PYTHONDONTWRITEBYTECODE": "1", "PIP_CONFIG_FILE": "/dev/null",
    ]
    let patience = Deadline(.seconds(240))
    // A pip of its own would be compiled at every start.
    let made = try ChildProcess.run(
      ["python3", "-m", "venv", "--without-pip", place],
      environment: environment,
      patience
    )
    let pip = ["python3", "-m", "pip", "--python", "\(place)/bin/python"]
    try #require(made.end == .exit(0), "\(made.output)\(made.errors)")
    let build = "import sys, wheel_builder; print(wheel_builder.build_sdist(sys.argv[1]))"
    let sdist = try ChildProcess.run(
      ["\(place)/bin/python", "-c", build, broker.directory.path],
      environment: environment.merging(["PYTHONPATH": LibraryClient.module]) { $1 }
    )
    try #require(sdist.output == "restorationd-0.1.0.tar.gz\n", "\(sdist.errors)")
    let archive = broker.directory.file("restorationd-0.1.0.tar.gz")
    let installed = try ChildProcess.run(
      pip + ["install", "--no-index", "--quiet", archive],
      environment: environment,
      patience
    )
    try #require(installed.end == .exit(0), "\(installed.output)\(installed.errors)")
    let program = """
      import importlib.metadata, importlib.util, pathlib, restorationd, restorationd.loops
      print(restorationd.__version__, pathlib.Path(restorationd.__file__).with_name("py.typed").exists())
      print(restorationd.NoBroker is restorationd.NoBrokerError, importlib.util.find_spec("restoration"))
      print(importlib.metadata.distribution("restorationd").read_text("licenses/LICENSE").split()[0])
      """
    let used = try ChildProcess.run(["\(place)/bin/python", "-c", program], environment: environment, directory: "/")
    #expect(used.output == "0.1.0 True\nTrue None\nApache\n", "\(used.errors)")
    let checked = try ChildProcess.run(pip + ["check"], environment: environment)
    #expect(checked.end == .exit(0), "\(checked.output)")

    // Those with the name of a file are run by `TutorialTests`.
    let programs = try TutorialPage("Protocol/clients/python/README.md").blocks("python").filter {
      $0.contains("import ") && !$0.contains("def test_") && !$0.hasPrefix("# ")
    }
    try #require(programs.count == 6)
    let variables = environment.merging(["RESTORATIOND_SOCKET": broker.socket]) { $1 }
    let lines = programs[0].split(separator: "\n")
    #expect(lines.count <= 4 && lines.allSatisfy { $0.count <= 100 })
    for run in 1...3 {
      let counter = try ChildProcess(
        ["\(place)/bin/python", "-c", programs[0]],
        environment: variables,
        errors: broker.directory.file("counter.log")
      )
      #expect(try counter.output?.next() == "This is run \(run). Kill it, and start it again.")
      try counter.kill()
    }
    for program in programs.dropFirst() {
      for _ in 1...2 {
        let ended = try ChildProcess.run(["\(place)/bin/python", "-c", program], environment: variables)
        #expect(ended.end == .exit(0) && ended.errors.isEmpty, "\(program): \(ended.errors)")
      }
    }
    let editor = try broker.session("org.example.Notes").decode("Editor")["state"]
    #expect(editor?["cursor"] == 2 && editor?["tabs"] == ["notes.txt", "notes.txt"])
  }

  @Test(
    "A type checker knows the type that the Python library decodes",
    .scratch,
    .enabled(if: PythonPackages.areUsable("mypy"), Comment(rawValue: PythonPackages.requirement))
  )
  func typesAreChecked() throws {
    let program = try directory.write(
      """
      from dataclasses import dataclass
      import restorationd

      @dataclass
      class Draft:
          text: str

      async def work(
              one: restorationd.RestorableObject, other: restorationd.AsyncRestorableObject,
              wanted: restorationd.Wanted,
      ) -> None:
          reveal_type(one.decode())
          reveal_type(one.decode(Draft))
          reveal_type(await other.decode(Draft, Draft("")))
          reveal_type({**one.decode()})
          wanted.register(decode=print, kind="view")
          one.encode(Draft("")), one.encode({"text": ""}), one.encode(one.decode()), one.encode([1]), one.encode({1})

      """,
      to: "program.py"
    )
    let checked = try ChildProcess.run(
      [PythonPackages.program("mypy"), "--strict", "--cache-dir=/dev/null", program],
      environment: ["MYPYPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    let lines = checked.output.split(separator: "\n").map { String($0.split(separator: ":", maxSplits: 2).last ?? "") }
    #expect(
      Array(lines.prefix(4)) == [
        " note: Revealed type is \"restorationd.Saved\"", " note: Revealed type is \"program.Draft | None\"",
        " note: Revealed type is \"program.Draft\"", " note: Revealed type is \"dict[str, Any]\"",
      ]
    )
    #expect(lines.count == 6 && lines[4].contains("error: Argument 1 to \"encode\""), "\(checked)")
  }

  @Test(
    "A type checker refuses arguments that the Python library would refuse",
    .scratch,
    .enabled(if: PythonPackages.areUsable("mypy"), Comment(rawValue: PythonPackages.requirement))
  )
  func argumentsAreChecked() throws {
    let wrong = [
      #"session.register("A", kind="window")"#, #"session.register("A", keep="always")"#,
      #"session.register("A", restorationClass="B")"#, #"session.goodbye("quit")"#,
      #"restorationd.Session("a", leave="close")"#, #"restorationd.Session("a", without_broker="fail")"#,
      #"restorationd.Session("a", bundleVersion="1")"#, "wanted.register(encod=print)",
      #"restorationd.testing.Broker(eventBytesMax=1)"#,
    ]
    let head = """
      import restorationd, restorationd.testing
      session, wanted = restorationd.Session("a"), restorationd.Wanted((), "view", None, None, None, None)

      """
    let program = try directory.write(head + wrong.joined(separator: "\n") + "\n", to: "program.py")
    let checked = try ChildProcess.run(
      [PythonPackages.program("mypy"), "--strict", "--cache-dir=/dev/null", program],
      environment: ["MYPYPATH": LibraryClient.module],
      Deadline(.seconds(120))
    )
    let lines = checked.output.split(separator: "\n").filter { $0.contains(": error: ") }
      .compactMap { Int($0.split(separator: ":")[1]) }
    #expect(lines == Array(3..<3 + wrong.count), "\(checked)")
  }

  @Test(
    "A library bears a broker that sends whatever it likes",
    .scratch,
    arguments: LibraryClient.Library.allCases,
    Environment.isLong ? Array(1...40) : [1, 2]
  )
  func bearsAHostileBroker(_ library: LibraryClient.Library, _ seed: Int) throws {
    let socket = directory.file("hostile.sock")
    let program = "\(Products.repository)/Tests/Clients/libraries/hostile.py"
    let broker = try ChildProcess(["python3", "-u", program, socket, "\(seed)"], errors: directory.file("log"))
    #expect(try broker.output?.next(Deadline()) == "ready")
    let client = try LibraryClient(library, socket: socket, errors: directory.file("client.log"))
    try client.open("a", ["patience": 0.5])
    var random = SeededGenerator(seed: UInt64(seed))
    let commands: [(String, JSONObject)] = [
      ("register", ["identifier": "A"]), ("register", ["identifier": "B"]), ("decode", ["name": "A"]),
      ("push", ["name": "A", "state": ["a": [1, 2]]]), ("push", ["name": "B", "bytes": 30_000]), ("save", [:]),
      ("rename", ["name": "A", "identifier": "A"]), ("invalidate", ["name": "B"]), ("restore", ["deadline": 1]),
      ("complete", [:]), ("objects", [:]), ("class", ["restorationClass": "C"]),
      ("set", ["name": "B", "state": ["b": nil]]), ("set", ["name": "A", "state": "fail"]),
    ]
    for (what, members) in commands.prefix(2) + (0..<60).map({ _ in commands.randomElement(using: &random)! }) {
      // Which of them fail, and how, is the broker's whim.
      try client.send(what, members)
      do { _ = try client.receiveResult() } catch is CallError {}
    }
    try client.close()
    try broker.kill()
  }

  @Test("Silence, a line without an end, and an end at any byte are errors, and cost no memory")
  func bearsABrokerThatStops() throws {
    let program = "\(Products.repository)/Tests/Clients/libraries/bounds.py"
    let result = try ChildProcess.run(
      ["python3", "-B", program, Environment.isLong ? "1" : "20", try LibraryClient.driver.get()],
      environment: ["PYTHONPATH": LibraryClient.module, "ASAN_OPTIONS": "exitcode=86"],
      Deadline(.seconds(120))
    )
    #expect(result.end == .exit(0), "\(result.errors)")
    print(result.output)
  }

  @Test("The notes in Python and C come back, and say what is wrong", .broker, arguments: ["python", "c"])
  func notesComeBack(_ language: String) throws {
    let folder = "\(Products.repository)/Protocol/examples"
    let program =
      language == "c"
      ? [try LibraryClient.compile("Protocol/examples/c/note.c", "client-note", ["-fsanitize=address,undefined"])]
      : ["python3", "\(folder)/python/note.py"]
    let environment: [String: String?] = ["RESTORATIOND_SOCKET": broker.socket, "PYTHONDONTWRITEBYTECODE": "1"]
    let first = try ChildProcess.run(program + ["Note"], input: "one\nGrüße", environment: environment)
    #expect(first.output == "new\nnoted: one\nnoted: Grüße\n", "\(first.errors)")
    #expect(first.end == .exit(0))
    let second = try ChildProcess.run(program + ["Note"], input: "quit\nnever\n", environment: environment)
    #expect(second.output == "restored: Grüße\n", "\(second.errors)")
    #expect(second.end == .exit(0))
    let child = try ChildProcess.run(program + ["Below", "Note"], environment: environment)
    #expect(child.output == "new\n", "\(child.errors)")
    let state = try broker.session("org.example.notes").decode("Note")
    #expect(state["state"] == ["language": .string(language), "note": "Grüße"])
    let wrong = try ChildProcess.run(program + ["a/b"], environment: environment)
    #expect(wrong.end == .exit(1))
    #expect(wrong.errors.contains("identifier"))
    let socket = broker.directory.file("none.sock")
    let none = try ChildProcess.run(program + ["Note"], environment: ["RESTORATIOND_SOCKET": socket])
    // In Python it works in memory.
    #expect(none.end == .exit(language == "python" ? 0 : 69))
    #expect(none.errors.contains(socket) && none.errors.split(separator: "\n").count == 1)
  }
}
