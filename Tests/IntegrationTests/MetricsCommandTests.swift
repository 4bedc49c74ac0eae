// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// `restorationctl metrics`, read by the parser that Prometheus publishes.
@Suite(
  .enabled(if: PythonPackages.areUsable("prometheus_client"), Comment(rawValue: PythonPackages.requirement))
)
struct MetricsCommandTests {
  private static let application = "org.example.Notes"

  private static func metrics(_ arguments: String...) throws -> [String: MetricFamily] {
    let result = try ControlTool.run(["metrics"] + arguments, status: 0)
    #expect(result.errors.isEmpty)
    return try MetricFamily.all(in: result.output)
  }

  @Test(.broker) func allFamiliesAreThoseOfThePageAndAreDescribed() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Main")
    try client.encode("Main", state: ["a": 1])
    try client.call("saveApplicationState")
    try broker.connect().encode("A", state: [:], of: "b@two")
    let families = try Self.metrics("--applications")
    let named = families.values.map { ($0.kind == "counter" ? "\($0.name)_total" : $0.name, $0.kind) }
    let promised = try MetricFamily.promised().filter { !$0.key.contains("_replica_") }
    #expect(Dictionary(uniqueKeysWithValues: named) == promised)
    for family in families.values {
      #expect(!family.samples.isEmpty && family.help.hasSuffix("."), "\(family.name)")
      #expect(family.unit.isEmpty == !family.name.contains(/_(bytes|seconds)$/), "\(family.name)")
    }
    #expect(families["restorationd_up"]?.samples.map(\.value) == [1])
    #expect(families["restorationd_sessions"]?.samples.map(\.value) == [1])
    #expect(families["restorationd_applications"]?.samples.map(\.value) == [2])
    #expect(families["restorationd_damaged_archives"]?.samples.map(\.value) == [0])
    let version = try ChildProcess.run([Products.broker, "--version"]).output.filter { $0 != "\n" }
    #expect(families["restorationd_build_info"]?.samples.map(\.labels) == [["version": version]])
    let sessions = families["restorationd_application_sessions"]?.samples ?? []
    let expected = [("b@two", 0.0), (Self.application, 1.0)].map { name, value in
      MetricFamily.Sample(name: "restorationd_application_sessions", labels: ["application": name], value: value)
    }
    #expect(sessions == expected)
    #expect(families["restorationd_application_generation"]?.samples.map(\.value) == [1])
    let few = try Self.metrics()
    #expect(few.keys.allSatisfy { !$0.hasPrefix("restorationd_application_") } && few.count >= 20)
  }

  @Test(.broker) func countersCountWhatIsDoneAndNeverFall() throws {
    let client = try broker.session(Self.application, process: "main")
    try client.register("Main")
    let before = try Self.metrics()
    for number in 1...3 {
      try client.encode("Main", state: ["n": .integer(Int64(number))])
      _ = try client.call("decodeRestorableState", ["object": ["Main"]])
    }
    let after = try Self.metrics()
    let counters = before.values.filter { $0.kind == "counter" }
    #expect(counters.count == 10)
    for counter in counters {
      let (former, latter) = (counter.samples[0].value, after[counter.name]?.samples.first?.value ?? -1)
      #expect(former >= 0 && former <= latter, "\(counter.name): \(former), \(latter)")
    }
    func growth(_ name: String) -> Double {
      (after[name]?.samples.first?.value ?? .nan) - (before[name]?.samples.first?.value ?? .nan)
    }
    #expect(growth("restorationd_encodes") == 3 && growth("restorationd_decodes") == 3)
    func count(_ name: String, _ families: [String: MetricFamily]) throws -> Double {
      let samples = try #require(families[name]?.samples)
      #expect(samples.count == 19 && samples.first?.labels == ["le": "0.0001"], "\(samples)")
      #expect(samples.last?.name == "\(name)_sum" && (samples.last?.value ?? 0) > 0)
      return try #require(samples.first { $0.name == "\(name)_count" }).value
    }
    let (commits, turns) = ("restorationd_commit_seconds", "restorationd_loop_turn_seconds")
    // Each state was durable before the next was sent.
    #expect(try count(commits, after) >= count(commits, before) + 3)
    #expect(try count(turns, after) > count(turns, before))
    #expect(growth("restorationd_connections_accepted") == 1)
    #expect(growth("restorationd_requests") >= 6)
  }

  /// Names of applications are letters, digits and a few signs; labels of the command line are any text.
  @Test(.broker) func anyTextOfALabelComesBackAsItWas() throws {
    let hostile = [
      "a\"b", #"\"#, #"\n"#, "a\nb\n", "{x=\"y\"} 1", "# EOF", "= =", "ü\u{1F600}\u{202e}", "\t\r\u{1}", "\u{301}", "",
    ]
    let arguments = hostile.enumerated().flatMap { ["--label", "l\($0)=\($1)"] }
    let result = try ControlTool.run(["metrics"] + arguments, status: 0)
    let labels = Dictionary(uniqueKeysWithValues: hostile.enumerated().map { ("l\($0)", $1) })
    for family in try MetricFamily.all(in: result.output).values {
      for sample in family.samples {
        #expect(sample.labels.filter { !["le", "version"].contains($0.key) } == labels, "\(sample)")
      }
    }
    for (wrong, why) in [
      (["a"], "give name=value"), (["1a=x"], "'1a' names no label"), (["__a=x"], "'__a' names no label"),
      (["ü=x"], "'ü' names no label"), (["=x"], "'' names no label"), (["application=x"], "choose another name"),
      (["le=x"], "choose another name"), (["a=x", "a=y"], "'a' is given twice"),
    ] {
      let refused = try ControlTool.run(["metrics"] + wrong.flatMap { ["--label", $0] }, status: 64)
      #expect(refused.errors.contains(why), "\(refused.errors)")
    }
  }

  @Test(.broker) func aFileIsReplacedInOneStepOrStaysAsItWas() throws {
    let file = broker.directory.file("restorationd.prom")
    let former = broker.directory.file("former")
    try Files.write(Array("former".utf8), to: file)
    #expect(link(file, former) == 0)
    func run(_ script: String, _ file: String) throws -> (end: ChildProcess.End, output: String, errors: String) {
      // Messages go into a pipe, which has no limit.
      let command = ["sh", "-c", "\(script); exec \"$0\" metrics -o \"$1\" 2>&1", Products.control, file]
      return try ChildProcess.run(command, environment: ControlTool.environment())
    }
    // No room for any byte.
    let full = try run("trap '' XFSZ; ulimit -f 0", file)
    #expect(full.end == .exit(74))
    #expect(full.output.contains("\(file) cannot be written: ") && full.output.contains("by -o"), "\(full.output)")
    #expect(try Files.text(file) == "former")
    let written = try run("umask 077", file)
    #expect(written.end == .exit(0) && written.output.isEmpty, "\(written.output)")
    #expect(try MetricFamily.all(in: Files.text(file))["restorationd_up"]?.samples.map(\.value) == [1])
    #expect(Files.mode(file) == 0o644)
    #expect(try Files.text(former) == "former")
    for place in ["/sys/restorationd.prom", "/dev/null/restorationd.prom", broker.directory.path] {
      let refused = try run(":", place)
      #expect(refused.end == .exit(74) && refused.output.contains("\(place) cannot be written: "), "\(refused.output)")
    }
    #expect(!Files.list(broker.directory.path).contains { $0.contains(".part") })
    #expect(try MetricFamily.all(in: ControlTool.run(["metrics", "-o", "-"], status: 0).output).count >= 20)
  }

  @Test(.scratch) func aFileSaysThatNoBrokerHasAnswered() throws {
    let (file, socket) = (directory.file("restorationd.prom"), directory.file("broker.sock"))
    func run(_ arguments: String...) throws -> (end: ChildProcess.End, output: String, errors: String) {
      try ChildProcess.run([Products.control, "--socket", socket, "metrics", "--label", "user=me"] + arguments)
    }
    func expectDown() throws {
      let families = try MetricFamily.all(in: Files.text(file))
      #expect(families.count == 1)
      let sample = MetricFamily.Sample(name: "restorationd_up", labels: ["user": "me"], value: 0)
      #expect(families["restorationd_up"]?.samples == [sample])
      Files.remove(file)
    }
    let printed = try run()
    #expect(printed.end == .exit(3) && printed.output.isEmpty)
    let written = try run("-o", file)
    #expect(written.end == .exit(0) && written.output.isEmpty && written.errors.isEmpty, "\(written.errors)")
    try expectDown()
    // Something else listens there, which is not as it should be.
    let server = """
      import socket
      s = socket.socket(socket.AF_UNIX); s.bind("\(socket)"); s.listen(); print("ready", flush=True)
      c, _ = s.accept(); c.recv(1); c.close()
      c, _ = s.accept()
      while c.recv(4096): pass
      """
    let process = try ChildProcess(["python3", "-c", server])
    #expect(try process.output?.next() == "ready")
    let failed = try run("-o", file)
    #expect(failed.end == .exit(69) && !failed.errors.isEmpty, "\(failed)")
    try expectDown()
    let late = try run("-o", file, "--timeout", "0.5")
    #expect(late.end == .exit(75) && late.errors.contains("did not finish within 0.5 s"), "\(late)")
    try expectDown()
    try process.waitForEnd()
  }

  /// The units of the installation.
  @Test(.userManager, .enabled(if: UserManager.isUsable, UserManager.condition))
  func theServiceWritesTheFileAndStartsNoBroker() throws {
    let file = "\(manager.home)/restorationd.prom"
    func set(_ variable: String, _ value: String) throws {
      let text = "[Service]\nEnvironment=\"RESTORATION_METRICS_\(variable)=\(value)\"\n"
      try manager.dropIn("restoration-metrics.service", variable, text)
    }
    func expectWritten(_ value: Double, _ labels: [String: String] = [:]) throws {
      let user = ["user": "restorationd-test"].merging(labels) { $1 }
      let sample = MetricFamily.Sample(name: "restorationd_up", labels: user, value: value)
      #expect(try MetricFamily.all(in: Files.text(manager.outside(file)))["restorationd_up"]?.samples == [sample])
      Files.remove(manager.outside(file))
    }
    try set("FILE", file)
    try manager.systemctl("start", "restoration-metrics.service")
    try expectWritten(0)
    #expect(try manager.mainPID == 0)
    try set("OPTIONS", "--applications --label more=x")
    try manager.systemctl("start", UserManager.service)
    try manager.systemctl("start", "restoration-metrics.timer")
    try Wait.until("the timer has the file written") { Files.exists(manager.outside(file)) }
    try expectWritten(1, ["more": "x"])
  }
}
