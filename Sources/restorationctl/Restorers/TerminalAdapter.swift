// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A restorer of a terminal from `Protocol/examples/terminal`, and whether it works.
struct TerminalAdapter {
  enum Kind: String {
    case bash, zsh, fish, tmux

    var name: String { restorer.name }

    var application: String {
      switch self {
      case .bash: "org.gnu.bash"
      case .zsh: "org.zsh.zsh"
      case .fish: "com.fishshell.fish"
      case .tmux: "org.tmux.tmux"
      }
    }

    var restorer: Restorer {
      switch self {
      case .bash: .bash
      case .zsh: .zsh
      case .fish: .fish
      case .tmux: .tmux
      }
    }

    /// The program that stores the state.
    var script: String { self == .tmux ? "tmux.py" : "shell-keeper.bash" }

    /// What has it read its settings again.
    var renewal: String {
      switch self {
      case .bash, .zsh, .fish: "exec \(rawValue)"
      case .tmux: "tmux source-file \((try? restorer.place().path.shellWord) ?? "~/.tmux.conf")"
      }
    }

    /// The variable through which the shell runs the restorer, if the user may set it again.
    private var hook: String? {
      switch self {
      case .bash: "PROMPT_COMMAND"
      case .zsh: "precmd_functions"
      case .fish, .tmux: nil
      }
    }

    var unread: String {
      let reset = hook.map { ", or \($0) was set again after it" } ?? ""
      return switch self {
      case .tmux where restorer.isSetUp: "this server has not run tmux.py: \(renewal) does"
      case .tmux: "tmux.py was not run: run restorationctl terminal install tmux, and restart tmux"
      case _ where restorer.isSetUp: "this shell has not read shell.\(rawValue)\(reset): begin a new one by \(renewal)"
      case .bash, .zsh, .fish: "shell.\(rawValue) was not read\(reset): run restorationctl terminal install \(rawValue)"
      }
    }

    func ended(_ keeper: Int32) -> String {
      switch self {
      case .bash, .zsh, .fish: "its process \(keeper) has ended: the shell begins another one after its next prompt"
      case .tmux: "its process \(keeper) has ended: \(renewal) begins another one"
      }
    }
  }

  let kind: Kind
  /// The shell, or the server of tmux.
  let pid: Int32
  let isAtWork: Bool
  /// The object it stores; tmux has others below it.
  let object: String?
  /// Why it does not work, or which calls were refused.
  let troubles: [String]

  /// - Parameter report: written by the adapter; only the user can have written it.
  init(_ kind: Kind, _ pid: Int32, _ report: AdapterReport?) {
    (self.kind, self.pid) = (kind, pid)
    guard let report else {
      (isAtWork, object, troubles) = (false, nil, [kind.unread])
      return
    }
    isAtWork = ProcessEntry.runs(kind.script, report.keeper)
    object = report.object
    troubles = isAtWork ? report.troubles : [kind.ended(report.keeper)]
  }

  /// The adapters of the terminal in which this process runs.
  ///
  /// - Parameters:
  ///   - tmux: the variable `TMUX`: socket, server and session. A socket's path may contain commas.
  ///   - folder: where adapters leave their reports.
  static func all(tmux: String?, folder: String) -> [TerminalAdapter] {
    func report(_ kind: Kind, _ pid: Int32) -> AdapterReport? {
      AdapterReport(file: "\(folder)/\(kind.rawValue).\(pid)")
    }
    var adapters: [TerminalAdapter] = []
    // A script may run between the shell and this process.
    let shells = ProcessEntry.ancestors().compactMap { process in
      Kind(rawValue: process.name).flatMap { $0 == .tmux ? nil : (kind: $0, pid: process.pid) }
    }
    let kept = shells.first { report($0.kind, $0.pid) != nil }
    if let shell = kept ?? shells.first(where: { $0.pid == getsid(0) }) ?? shells.first {
      adapters.append(TerminalAdapter(shell.kind, shell.pid, report(shell.kind, shell.pid)))
    }
    if let words = tmux?.split(separator: ","), words.count >= 3, let server = Int32(words[words.count - 2]) {
      adapters.append(TerminalAdapter(.tmux, server, report(.tmux, server)))
    }
    return adapters
  }
}

/// An adapter's report about itself: lines with its process, its object, and refused calls.
struct AdapterReport: Equatable {
  let keeper: Int32
  let object: String
  let troubles: [String]

  private static let bytesMax = 16_384

  init?(_ text: String) {
    let lines = text.split(separator: "\n").map(String.init)
    guard lines.count >= 2, let keeper = Int32(lines[0]), keeper > 0 else { return nil }
    (self.keeper, object, troubles) = (keeper, lines[1], Array(lines.dropFirst(2)))
  }

  init?(file path: String) {
    // Not blocking: a pipe would wait for a writer.
    let descriptor = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC)
    guard descriptor >= 0 else { return nil }
    defer { close(descriptor) }
    var status = stat()
    guard fstat(descriptor, &status) == 0, status.st_mode & S_IFMT == S_IFREG, status.st_uid == geteuid() else {
      return nil
    }
    self.init(ProcessEntry.text(descriptor, bytesMax: Self.bytesMax))
  }
}

private struct ProcessEntry {
  let pid: Int32
  let name: String
  let parent: Int32

  /// `nil` if the process does not exist.
  private init?(_ pid: Int32) {
    let text = Self.text("/proc/\(pid)/stat")
    guard let begin = text.firstIndex(of: "("), let end = text.lastIndex(of: ")") else { return nil }
    let fields = text[end...].split(separator: " ")
    guard fields.count > 2, let parent = Int32(fields[2]) else { return nil }
    (self.pid, self.parent) = (pid, parent)
    name = String(text[text.index(after: begin)..<end])
  }

  /// The ancestors of this process, the nearest first.
  static func ancestors() -> [ProcessEntry] {
    var ancestors: [ProcessEntry] = []
    var next = getppid()
    while next > 1, let entry = ProcessEntry(next) {
      ancestors.append(entry)
      next = entry.parent
    }
    return ancestors
  }

  static func runs(_ script: String, _ pid: Int32) -> Bool {
    text("/proc/\(pid)/cmdline").split(separator: "\0").contains { $0.split(separator: "/").last == script[...] }
  }

  private static func text(_ path: String) -> String {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return "" }
    defer { close(descriptor) }
    return text(descriptor, bytesMax: 65_536)
  }

  static func text(_ descriptor: Int32, bytesMax: Int) -> String {
    var bytes: [UInt8] = []
    var buffer = [UInt8](repeating: 0, count: 4_096)
    while bytes.count < bytesMax {
      let count = read(descriptor, &buffer, buffer.count)
      guard count > 0 else { break }
      bytes += buffer[..<count]
    }
    return String(decoding: bytes, as: UTF8.self)
  }
}
