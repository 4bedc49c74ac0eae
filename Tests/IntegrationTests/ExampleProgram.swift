// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import TestSupport
internal import Testing

/// The note programs of `Protocol/examples`, by the names of their folders, which are also their process roles.
enum ExampleProgram: String, CaseIterable, Sendable, CustomTestStringConvertible {
  case bash, c, go, java, node, perl, python, rust

  var testDescription: String { rawValue }

  /// Whether the program survives a restart of the broker; programs without a library end with it.
  var outlivesBroker: Bool { self == .c || self == .python }

  private var folder: String { "\(Products.repository)/Protocol/examples/\(rawValue)" }

  /// The program, ready to run, without its arguments.
  ///
  /// If a tool is missing, the test is skipped by that name; in CI it fails.
  func command() throws -> [String] {
    for tool in tools where !Self.isInstalled(tool) {
      let text = "the example in \(rawValue) needs \(tool), which is not installed; Tests/run.sh installs it"
      if Environment.isCI { throw TestFailure(text) }
      try Test.cancel("\(text)")
    }
    return switch self {
    case .bash: ["bash", "\(folder)/note.sh"]
    case .c: [try Build.c.get()]
    case .go: [try Build.go.get()]
    case .java: ["java", "-XX:TieredStopAtLevel=1", "-cp", try Build.java.get(), "Note"]
    case .node: ["node", "\(folder)/note.mjs"]
    case .perl: ["perl", "\(folder)/note.pl"]
    case .python: ["python3", "-B", "\(folder)/note.py"]
    case .rust: [try Build.rust.get()]
    }
  }

  private var tools: [String] {
    switch self {
    case .bash: ["bash", "curl", "jq"]
    case .c: ["cc"]
    case .go: ["go"]
    case .java: ["java", "javac"]
    case .node: ["node"]
    case .perl: ["perl"]
    case .python: ["python3"]
    case .rust: ["rustc"]
    }
  }

  private static func isInstalled(_ tool: String) -> Bool {
    let directories = Environment.variable("PATH")?.split(separator: ":") ?? []
    return directories.contains { access("\($0)/\(tool)", X_OK) == 0 }
  }

  /// Programs that must be compiled, at most once in a process.
  private enum Build {
    static let c = Result {
      try ExampleProgram.c.build { output in
        let flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-I", clientInC, "-o", output]
        return ["cc"] + flags + ["note.c", "\(clientInC)/restoration.c", "-ljansson"]
      }
    }
    static let go = Result { try ExampleProgram.go.build { ["go", "build", "-o", $0, "note.go"] } }
    static let java = Result {
      try ExampleProgram.java.build { ["javac", "-Xlint:all", "-Werror", "-d", $0, "Note.java"] }
    }
    static let rust = Result {
      try ExampleProgram.rust.build { ["rustc", "--edition", "2021", "-D", "warnings", "-o", $0, "note.rs"] }
    }
  }

  private static var clientInC: String { "\(Products.repository)/Protocol/clients/c" }

  /// Compiles the program into the build directory, unless it exists and is newer than its sources.
  private func build(_ compiler: (_ output: String) -> [String]) throws -> String {
    let directory = "\(Products.repository)/.build/examples"
    if !Files.exists(directory) { try Files.makeDirectory(directory) }
    let output = "\(directory)/\(rawValue)"
    // Java's output directory keeps its time.
    let program = self == .java ? "\(output)/Note.class" : output
    let folders = self == .c ? [folder, Self.clientInC] : [folder]
    let sources = try folders.flatMap { folder in try Files.list(folder).map { try Self.modified("\(folder)/\($0)") } }
    if let built = try? Self.modified(program), sources.allSatisfy({ $0 < built }) { return output }
    let result = try ChildProcess.run(
      compiler(output),
      environment: ["GO111MODULE": "off", "GOFLAGS": nil, "GOCACHE": "\(directory)/go-cache"],
      directory: folder,
      Deadline(.seconds(300))
    )
    guard result.end == .exit(0) else {
      throw TestFailure("the example in \(rawValue) is not compiled: \(result.output)\(result.errors)")
    }
    return output
  }

  /// Nanoseconds since 1970.
  private static func modified(_ path: String) throws -> Int {
    var status = stat()
    guard stat(path, &status) == 0 else { throw TestFailure("stat \(path): \(SystemError.current)") }
    return status.st_mtim.tv_sec * 1_000_000_000 + status.st_mtim.tv_nsec
  }
}

/// A note program that runs.
final class NoteProcess {
  let program: ExampleProgram
  private let process: ChildProcess
  private let errors: String

  /// - Parameter object: the components of the object's path, parents first.
  init(_ program: ExampleProgram, _ object: [String], _ application: String) throws {
    self.program = program
    errors = broker.directory.file("errors-\(program)-\(Deadline.now)")
    guard let identifier = object.last else { preconditionFailure("a path has a component") }
    process = try ChildProcess(
      try program.command() + [identifier] + object.dropLast(),
      environment: ["RESTORATIOND_SOCKET": broker.socket, "RESTORATION_APPLICATION": application, "LC_ALL": "C.UTF-8"],
      errors: errors
    )
  }

  /// Reads its next line, which must be this one.
  func expect(_ line: String, sourceLocation: SourceLocation = #_sourceLocation) throws {
    let printed = try process.output?.next()
    let errors = try Files.text(errors)
    #expect(printed == line, "\(program): \(errors)", sourceLocation: sourceLocation)
  }

  /// Types text; a line feed ends a line.
  func type(_ text: String) throws { try process.write(text) }

  /// Types a note and waits until the program has taken it.
  func note(_ text: String) throws {
    try type(text + "\n")
    try expect("noted: \(text)")
  }

  func closeInput() { process.closeInput() }

  func kill() throws { try process.kill() }

  /// Waits until it has ended with this status; returns its standard error.
  @discardableResult
  func waitForExit(_ status: Int32, sourceLocation: SourceLocation = #_sourceLocation) throws -> String {
    let end = try process.waitForEnd()
    let errors = try Files.text(errors)
    #expect(end == .exit(status), "\(program): \(errors)", sourceLocation: sourceLocation)
    return errors
  }
}
