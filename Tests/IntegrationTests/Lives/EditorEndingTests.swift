// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// How editors end, and with what they begin again: only what their users say ends what is saved.
@Suite(
  .broker,
  .enabled(if: Editor.areInstalled && TerminalExample.isInstalled, Comment(rawValue: Editor.requirement)),
  .timeLimit(.minutes(Environment.isLong ? 30 : 5))
)
struct EditorEndingTests {
  private static let rounds = Environment.isLong ? 20 : 1
  private static let windows = ["two.txt:9*", "one.txt:5"]

  /// A directory with files to edit, an editor's settings, and what it is to have open.
  private static func prepare(_ editor: Editor) throws -> String {
    let home = try broker.directory.makeDirectory("home")
    try editor.install(in: home, settings: editor == .emacs ? "" : "set noswapfile")
    for file in EditedFile.names { try Files.write(Array(EditedFile.text.utf8), to: "\(home)/\(file)") }
    return home
  }

  private static func stored(_ windows: [String], by process: EditorProcess) throws {
    let reader = try broker.connect()
    try process.waits(until: "has \(windows) stored") {
      reader.storedWindows("\(process.editor.application)@1") == windows
    }
  }

  /// Is told how sessions end.
  private static func monitor() throws -> WireClient {
    let monitor = try broker.connect()
    try monitor.call("subscribe", ["events": ["sessionEnded"]])
    return monitor
  }

  /// Waits until an editor's session has ended; how.
  private static func ending(of process: EditorProcess, _ monitor: WireClient) throws -> String? {
    do {
      try process.waits(until: "has ended") { monitor.hasInput(within: .zero) }
    } catch {
      let status = try? Files.text("/proc/\(process.pid)/status")
      throw TestFailure("\(error) in \(process.host): \(status ?? "its process is gone")")
    }
    return try monitor.notification("event")["ending"]?.string
  }

  /// Opens the windows, and kills the editor when they are stored.
  private static func begin(_ editor: Editor, _ home: String, _ monitor: WireClient) throws {
    let process = try EditorProcess(editor, home: home)
    try process.ready()
    try process.run(
      editor == .emacs
        ? [
          "(progn (find-file \"one.txt\") (goto-line 5) (split-window-below) (find-file \"two.txt\") (goto-line 9))"
        ] : ["edit one.txt", "5", "split two.txt", "9"]
    )
    try stored(windows, by: process)
    try process.end(by: .kill)
    #expect(try ending(of: process, monitor) == "crashed")
  }

  /// Instances that there are: an editor that begins with another one has nothing.
  private static var applications: String {
    String(describing: try? broker.connect().call("listApplications"))
  }

  @Test(arguments: Editor.allCases)
  func anEditorComesBackAsItWasWhateverEndsItButItsUser(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let monitor = try Self.monitor()
    try Self.begin(editor, home, monitor)
    for _ in 0..<Self.rounds {
      for ending in EditorEnding.all {
        let process = try EditorProcess(editor, home: home, in: ending.host)
        let windows = try process.ready().windows
        #expect(windows == Self.windows, "before \(ending), of \(Self.applications)")
        try process.end(by: ending.cause)
        let reason = try Self.ending(of: process, monitor)
        #expect(reason == "crashed" || reason == "logout", "\(ending)")
      }
    }
    #expect(try EditorProcess(editor, home: home).ready().windows == Self.windows)
  }

  @Test(arguments: Editor.allCases)
  func anEditorThatItsUserQuitsBeginsAfresh(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let monitor = try Self.monitor()
    for _ in 0..<Self.rounds {
      for farewell in editor.farewells {
        let process = try EditorProcess(editor, home: home, in: .shell)
        #expect(try process.ready()["files"] == [], "before \(farewell)")
        try process.type(editor.open("one.txt", line: 5))
        try Self.stored(["one.txt:5*"], by: process)
        for (index, keys) in farewell.enumerated() {
          if index > 0 { _ = try process.terminal.shown(until: "(C)ancel") }
          try process.terminal.type(keys)
        }
        #expect(try Self.ending(of: process, monitor) == "userQuit", "\(farewell)")
      }
    }
    #expect(try EditorProcess(editor, home: home).ready()["files"] == [])
  }

  @Test(arguments: Editor.allCases.filter { !$0.withdrawn.isEmpty })
  func anEditorWhoseUserHasNotQuitAfterAllComesBackAsItWas(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let monitor = try Self.monitor()
    try Self.begin(editor, home, monitor)
    for _ in 0..<Self.rounds {
      for host in [EditorHost.shell, .deafShell] {
        for (keys, shown) in editor.withdrawn {
          let process = try EditorProcess(editor, home: home, in: host)
          #expect(try process.ready().windows == Self.windows, "before \(keys)")
          try process.type(keys)
          _ = try process.terminal.shown(until: shown)
          process.closeTerminal()
          // A second signal may end it before it has said goodbye, which takes nothing away either.
          let ending = try Self.ending(of: process, monitor)
          #expect(ending != "userQuit", "\(keys)")
        }
      }
    }
    #expect(try EditorProcess(editor, home: home).ready().windows == Self.windows)
  }

  /// Emacs selects each window while it draws the mode line of it.
  @Test func emacsComesBackInTheWindowOfItsUserAlsoIfASignalEndsItWhileItDrawsAModeLine() throws {
    let home = try Self.prepare(.emacs)
    let monitor = try Self.monitor()
    try Self.begin(.emacs, home, monitor)
    let format = "(setq mode-line-format '((:eval (signal-process (emacs-pid) 'HUP))))"
    let draw = "(with-current-buffer \"one.txt\" \(format) (force-mode-line-update))"
    try Editor.emacs.install(in: home, settings: "(add-hook 'restoration-ready-hook (lambda () \(draw)) 90)")
    let process = try EditorProcess(.emacs, home: home)
    try process.ready()
    _ = try Self.ending(of: process, monitor)
    try Editor.emacs.install(in: home)
    #expect(try EditorProcess(.emacs, home: home).ready().windows == Self.windows)
  }

  /// While one signal makes Vim remove its directory for temporary files, a second one makes it remove what that is in.
  @Test func vimHasNoDirectoryForTemporaryFilesBecauseItIsSaved() throws {
    let home = try Self.prepare(.vim)
    let process = try EditorProcess(.vim, home: home)
    try process.ready()
    try process.run(["edit one.txt", "5,7fold", "9"])
    try Self.stored(["one.txt:9*"], by: process)
    #expect(Files.list("\(home)/tmp").isEmpty)
    #expect(Files.list(broker.directory.path).filter { $0.hasPrefix("vim-") }.isEmpty)
  }

  /// Vim takes a terminal that is gone for one of 80 columns and 24 lines.
  @Test(arguments: [Editor.vim, .neovim])
  func sizesOfWindowsComeBackAsTheyWereIfTheTerminalClosesWhileAnEditorIsSuspended(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let monitor = try Self.monitor()
    let process = try EditorProcess(editor, home: home, in: .shell)
    try process.ready()
    try process.run(["edit one.txt", "vsplit two.txt", "split three.txt", "resize 5", "vertical resize 70", "9"])
    try Self.stored(["three.txt:9*", "two.txt:1", "one.txt:1"], by: process)
    let sizes = try process.report().sizes
    try process.type("\u{1a}")
    _ = try process.terminal.shown(until: "Stopped")
    process.closeTerminal()
    // Neovim may be ended before it has said goodbye.
    let ending = try Self.ending(of: process, monitor)
    #expect(ending == "crashed" || ending == "logout")
    #expect(try EditorProcess(editor, home: home).ready().sizes == sizes)
  }

  @Test(arguments: Editor.allCases)
  func editorsOfTwoProjectsComeBackEachInItsOwn(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let projects = [("alpha", "one.txt"), ("beta", "two.txt")]
    func start() throws -> [EditorProcess] {
      try projects.map { project, _ in
        let process = try EditorProcess(editor, home: home, directory: "\(home)/\(project)")
        try process.ready()
        return process
      }
    }
    for (project, _) in projects { try Files.makeDirectory("\(home)/\(project)") }
    let before = try start()
    for (index, process) in before.enumerated() {
      try process.type(editor.open("../\(projects[index].1)", line: 5))
      let reader = try broker.connect()
      try process.waits(until: "is stored") {
        reader.storedWindows("\(editor.application)@\(index + 1)") == ["\(projects[index].1):5*"]
      }
    }
    // The last project's editor is used last, and the first one's is started first.
    for process in before { try process.process.kill() }
    for _ in 1...2 {
      let after = try start()
      for (process, (project, file)) in zip(after, projects) {
        let report = try process.report()
        #expect(report.windows == ["\(file):5*"])
        // The directory of Emacs is that of each buffer.
        #expect(report["directory"]?.string == (editor == .emacs ? nil : "\(home)/\(project)"))
      }
      for process in after { try process.process.kill() }
    }
  }
}
