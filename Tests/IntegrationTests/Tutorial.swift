// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport

/// The code on a page, as a reader copies it.
struct TutorialPage {
  private let path: String
  private let text: String

  /// - Parameter path: relative to the repository's top directory.
  init(_ path: String) throws {
    self.path = path
    text = try Files.text("\(Products.repository)/\(path)")
  }

  /// The same page by its headings of the second level; first what is above them.
  var sections: [Self] {
    let starts = [text.startIndex] + text.ranges(of: "\n## ").map(\.lowerBound)
    return zip(starts, starts.dropFirst() + [text.endIndex]).map { Self(path: path, text: String(text[$0..<$1])) }
  }

  /// The code blocks in this language, in their order.
  func blocks(_ language: String) -> [String] {
    text.components(after: "```\(language)\n").map { String($0.prefix(upTo: $0.firstRange(of: "\n```")) + "\n") }
  }

  /// The code block whose first line, a comment, is that name of a file.
  func file(_ name: String, _ language: String) throws -> String {
    let block = blocks(language).first { $0.prefix { $0 != "\n" }.split(separator: " ").contains { $0 == name } }
    guard let block else { throw TestFailure("\(path) has no \(name)") }
    return block
  }

  /// The same page from a heading to the next one of its level or above.
  func section(_ heading: String) throws -> Self {
    guard let start = text.firstRange(of: "\n\(heading)\n") else { throw TestFailure("\(path) has no \(heading)") }
    let rest = text[start.upperBound...]
    let end = rest.firstRange(of: "\n\(heading.prefix { $0 == "#" }) ")?.lowerBound ?? rest.endIndex
    return Self(path: path, text: String(rest[..<end]))
  }

  /// The items of its first numbered list.
  var steps: [Self] {
    var steps: [String] = []
    for line in text.split(separator: "\n", omittingEmptySubsequences: false) {
      let number = "\(steps.count + 1). "
      if line.hasPrefix(number) {
        steps.append(String(line.dropFirst(number.count)))
      } else if !steps.isEmpty {
        guard line.isEmpty || line.hasPrefix("   ") else { break }
        steps[steps.count - 1] += "\n\(line.dropFirst(3))"
      }
    }
    return steps.map { Self(path: path, text: $0) }
  }

  /// The one code block in this language.
  func block(_ language: String) throws -> String {
    let blocks = blocks(language)
    guard let block = blocks.first, blocks.count == 1 else {
      throw TestFailure("\(path) has \(blocks.count) blocks of \(language): \(text)")
    }
    return block
  }

  /// What the text says where it matches.
  func words<Output>(_ pattern: Regex<Output>) throws -> Output {
    // Lines end where they are full.
    guard let match = text.replacing("\n", with: " ").firstMatch(of: pattern) else {
      throw TestFailure("\(path) has no words that match: \(text)")
    }
    return match.output
  }

  /// What a reader types: blocks for a shell, and commands within a text, in their order. What begins in `systemd/`
  /// compiles for minutes, and is left out.
  var commands: [String] {
    text.matches(of: /```sh\n(?<block>(?s:.+?))\n```|`(?<line>(?:sh|pip|python3|cc) [^`]+)`/).compactMap { found in
      let lines = (found.output.block ?? found.output.line ?? "").split(separator: "\n")
      let rest = lines.filter { !$0.hasPrefix("systemd/") }.joined(separator: "\n")
      return rest.isEmpty ? nil : rest
    }
  }

  /// The code in a line of text, if these words are before it at the end of a line.
  func code(after words: String) throws -> String {
    guard let start = text.firstRange(of: "\(words)\n`")?.upperBound else {
      throw TestFailure("\(path) has no \(words)")
    }
    return String(text[start...].prefix { $0 != "`" })
  }

  private init(path: String, text: String) { (self.path, self.text) = (path, text) }
}

extension String {
  /// What follows each occurrence of a mark.
  func components(after mark: String) -> [Substring] { ranges(of: mark).map { self[$0.upperBound...] } }
}

extension Substring {
  fileprivate func prefix(upTo range: Range<Index>?) -> Substring { self[..<(range?.lowerBound ?? endIndex)] }
}

/// Programs of tutorials, compiled in the directory of the test's broker, or its scratch directory.
enum TutorialProgram {
  static let articles = "Sources/RestorationClient/RestorationClient.docc"

  /// Compiles a program of one file against the library that was built with the tests.
  static func swift(_ text: String, _ name: String, in directory: ScratchDirectory) throws -> String {
    let source = try directory.write(text, to: "\(name).swift")
    let objects = try Files.text("\(Products.directory)/smallest.product/Objects.LinkFileList").split(separator: "\n")
      .filter { !$0.contains("/smallest.build/") }
    let list = try directory.write(objects.joined(separator: "\n"), to: "\(name).objects")
    let program = directory.file(name)
    let flags = ["-swift-version", "6", "-warnings-as-errors", "-module-name", name]
    try run(["swiftc"] + flags + (try importFlags) + [source, "@\(list)", "-ljansson", "-o", program])
    return program
  }

  /// How SwiftPM tells the compiler where the modules are that the library imports: as it does for `smallest`.
  static var importFlags: [String] {
    get throws {
      let lines = try Files.text("\(Products.directory)/../../debug.yaml").split(separator: "\n")
      let arguments = lines.drop { !($0.hasPrefix("  \"C.smallest-") && $0.hasSuffix(".module\":")) }
        .first { $0.hasPrefix("    args: ") }?.dropFirst("    args: ".count)
      guard let arguments, let words = try JSONCodec.parse(arguments.utf8).array?.compactMap(\.string) else {
        throw TestFailure("debug.yaml does not say how smallest is compiled")
      }
      return zip(words, words.dropFirst()).filter { $0.0 == "-I" || $0.0 == "-Xcc" }.flatMap { [$0.0, $0.1] }
    }
  }

  /// Compiles a program with the C library, by the command on its page.
  static func c(_ text: String, _ name: String, in directory: ScratchDirectory) throws -> String {
    let source = try directory.write(text, to: "\(name).c")
    // Another language may have a program of the same name.
    let program = directory.file("\(name)-in-c")
    let library = "\(Products.repository)/Protocol/clients/c"
    let command = """
      cc -std=c11 -Wall -Wextra -Werror -I \(library) -o \(program) \(source) \(library)/restoration.c \
      $(pkg-config --cflags --libs jansson)
      """
    try run(["sh", "-c", command])
    return program
  }

  /// The directory where pip installs the Python library for a test.
  static func python(in directory: ScratchDirectory) throws -> String {
    let place = directory.file("installed")
    let pip = ["python3", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", "--target", place]
    try run(pip + [LibraryClient.module], ["PIP_CONFIG_FILE": "/dev/null", "PYTHONDONTWRITEBYTECODE": "1"])
    return place
  }

  private static func run(_ command: [String], _ environment: [String: String?] = [:]) throws {
    let result = try ChildProcess.run(command, environment: environment, Deadline(.seconds(240)))
    guard result.end == .exit(0) else { throw TestFailure("\(command[0]): \(result.output)\(result.errors)") }
  }
}

/// A program that a reader runs at a terminal, beside the test's broker.
struct ReadersProgram {
  private let process: ChildProcess
  private var terminal: PseudoTerminal?

  /// - Parameter python: where the Python library is installed.
  init(_ command: [String], python: String? = nil) throws {
    let terminal = try PseudoTerminal()
    self.terminal = terminal
    let environment: [String: String?] = [
      "RESTORATIOND_SOCKET": broker.socket, "PYTHONPATH": python, "PYTHONDONTWRITEBYTECODE": "1", "LC_ALL": "C.UTF-8",
      "PATH": Products.searchPath,
    ]
    process = try ChildProcess(command, environment: environment, output: .terminal(terminal))
  }

  /// Waits for a line, which is shown after what was awaited before.
  func awaitLine(_ text: String) throws { _ = try terminal?.shown(until: "\(text)\n") }

  /// Waits for a text within a line.
  func awaitText(_ text: String) throws { _ = try terminal?.shown(until: text) }

  func type(_ line: String) throws { try terminal?.type("\(line)\n") }

  /// As `Wait.until`; a failure says as well what the program shows and does.
  func waits(until what: String, _ isTrue: () throws -> Bool) throws {
    do {
      try Wait.until(what) { try isTrue() }
    } catch {
      let screen = try terminal?.shown() ?? ""
      throw TestFailure("\(error): the terminal shows: \(screen); the program: \(process.condition)")
    }
  }

  func kill() throws { try process.kill() }

  /// Sends the signal when the program waits for a line. In Python `input()` misses an interrupt that comes after its
  /// prompt and before it reads.
  func end(by signal: Int32) throws -> ChildProcess.End {
    try Wait.until("the program reads descriptor 0") {
      ProcessStatus(process.pid).threads.contains { thread in
        // The number of the system call in which it sleeps, and its arguments.
        let call = try? Files.text("/proc/\(process.pid)/task/\(thread)/syscall").split(separator: " ")
        return call?.dropFirst().first == "0x0"
      }
    }
    process.send(signal: signal)
    return try process.waitForEnd()
  }

  mutating func closeTerminal() throws -> ChildProcess.End {
    terminal = nil
    return try process.waitForEnd()
  }

  func waitForEnd() throws -> ChildProcess.End { try process.waitForEnd() }
}
