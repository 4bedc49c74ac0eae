// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport
internal import Testing

/// Vim, Neovim and Emacs on terminals, with the plugins of `Protocol/examples`.
@Suite(.broker, .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement))) struct EditorTests {
  /// A user's actions in an editor, and the expected content afterwards.
  private struct Scene {
    let editor: Editor
    /// Commands.
    let keys: [String]
    let windows: [String]
  }

  /// The last command of each makes the last difference.
  private static let scenes: [Scene] = [
    Scene(
      editor: .vim,
      keys: [
        "edit one.txt", "20", "vsplit two.txt", "3", "split three.txt", "resize 5", "badd four.txt", "normal ihello",
        "preserve", "7",
      ],
      windows: ["three.txt:7*", "two.txt:3", "one.txt:20"]
    ),
    Scene(
      editor: .vim,
      keys: [
        "edit four.txt", "11", "execute 'tabnew' fnameescape('zwölf #1 %.txt')", "44", "split", "cd /",
        "call cursor(100, 3)",
      ],
      windows: ["four.txt:11", "zwölf #1 %.txt:100*", "zwölf #1 %.txt:44"]
    ),
    Scene(
      editor: .neovim,
      keys: [
        "edit one.txt", "70", "split two.txt", "vsplit", "9", "wincmd l", "vertical resize 20", "call cursor(100, 2)",
      ],
      windows: ["two.txt:9", "two.txt:100*", "one.txt:70"]
    ),
    Scene(
      editor: .neovim,
      keys: [
        "execute 'edit' fnameescape('zwölf #1 %.txt')", "badd two.txt", "tabnew four.txt", "12", "tabprevious",
        "normal ihello", "preserve", "31",
      ],
      windows: ["zwölf #1 %.txt:31*", "four.txt:12"]
    ),
    Scene(
      editor: .emacs,
      keys: [
        "(progn (find-file \"one.txt\") (goto-line 60) (split-window-right 30) (other-window 1))",
        "(progn (find-file \"two.txt\") (goto-line 6) (split-window-below 9) (find-file-noselect \"four.txt\"))",
        "(progn (find-file \"three.txt\") (goto-line 90))",
      ],
      windows: ["one.txt:60", "three.txt:90*", "two.txt:6"]
    ),
    Scene(
      editor: .emacs,
      keys: [
        "(progn (find-file \"zwölf #1 %.txt\") (split-window-below))",
        "(with-selected-frame (make-frame) (find-file \"two.txt\") (goto-line 99))", "(goto-line 13)",
      ],
      windows: ["zwölf #1 %.txt:13*", "zwölf #1 %.txt:1", "two.txt:99"]
    ),
  ]

  /// A directory with an editor's settings and files to edit.
  private static func home(_ name: String, _ editor: Editor, settings: String = "") throws -> String {
    let home = try broker.directory.makeDirectory(name)
    try editor.install(in: home, settings: settings)
    for file in EditedFile.names { try Files.write(Array(EditedFile.text.utf8), to: "\(home)/\(file)") }
    return home
  }

  /// Tells of the lives of sessions.
  private static func monitor() throws -> WireClient {
    let monitor = try broker.connect()
    try monitor.call("subscribe", ["events": ["sessionBegan", "sessionEnded"]])
    return monitor
  }

  /// Waits until these editors are kept, each with its first session; the instance of each.
  @discardableResult
  private static func begun(_ monitor: WireClient, _ editors: [EditorProcess]) throws -> [Int32: String] {
    for editor in editors { try editor.ready() }
    var instances: [Int32: String] = [:]
    while instances.count < editors.count {
      let event = try monitor.notification("event")
      let pid = Int32(event["pid"]?.integer ?? 0)
      guard event["name"] == "sessionBegan", editors.contains(where: { $0.process.pid == pid }) else { continue }
      instances[pid] = event["application"]?.string
    }
    return instances
  }

  /// Waits until these windows are stored.
  private static func stored(_ instance: String, _ windows: [String], by editor: EditorProcess) throws {
    let reader = try broker.connect()
    var last: [String]?
    do {
      try editor.waits(until: "has \(windows) stored") {
        last = reader.storedWindows(instance)
        return last == windows
      }
    } catch {
      throw TestFailure("\(error); \(instance) has \(last ?? [])")
    }
  }

  @Test func killedEditorsComeBackWithTheirWindowsAlsoWhereTheBrokerWasKilledMeanwhile() throws {
    let homes = try Self.scenes.enumerated().map { try Self.home("home\($0)", $1.editor) }
    var monitor = try Self.monitor()
    var editors = try zip(Self.scenes, homes).map { try EditorProcess($0.editor, home: $1) }
    let instances = try Self.begun(monitor, editors)
    #expect(Set(instances.values).count == editors.count, "\(instances)")
    for (editor, scene) in zip(editors, Self.scenes) { try editor.run(scene.keys.prefix(2)) }
    try broker.crashAndRestart()
    for (editor, scene) in zip(editors, Self.scenes) { try editor.run(scene.keys.dropFirst(2)) }
    var before: [String: JSONValue] = [:]
    for (editor, scene) in zip(editors, Self.scenes) {
      let instance = try #require(instances[editor.process.pid])
      let report = try editor.report()
      #expect(report.windows == scene.windows)
      before[instance] = report
      try Self.stored(instance, scene.windows, by: editor)
    }
    for editor in editors { try editor.process.kill() }

    monitor = try Self.monitor()
    editors = try zip(Self.scenes, homes).map { try EditorProcess($0.editor, home: $1) }
    let again = try Self.begun(monitor, editors)
    #expect(again.values.sorted() == instances.values.sorted())
    for editor in editors {
      let instance = try #require(again[editor.process.pid])
      let (old, new) = (try #require(before[instance]), try editor.restored())
      #expect(new.withoutSizes == old.withoutSizes)
      // Vim counts the line of tabs late in windows that are not shown.
      #expect(new.sizes.count == old.sizes.count)
      #expect(zip(new.sizes, old.sizes).allSatisfy { abs($0 - $1) <= 1 }, "\(new.sizes) after \(old.sizes)")
    }
  }

  @Test(arguments: Editor.allCases)
  func anEditorThatIsStartedWithAFileShowsItAndLeavesWhatWasKeptToTheNext(editor: Editor) throws {
    let home = try Self.home("home", editor)
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.type(editor.open("two.txt", line: 42))
    try Self.stored("\(editor.application)@1", ["two.txt:42*"], by: first)
    try first.process.kill()

    let named = try EditorProcess(editor, home: home, files: ["one.txt"])
    let report = try named.report()
    #expect(report.windows == ["one.txt:1*"])
    #expect(report["files"] == ["one.txt"])
    // Without a connection there is no session, and no state of it.
    let monitor = try Self.monitor()
    try Wait.until("nobody is connected but the monitor") {
      try monitor.call("statistics")["gauges"]?["connections"] == 1
    }

    let next = try EditorProcess(editor, home: home)
    #expect(try Self.begun(monitor, [next]).values.sorted() == ["\(editor.application)@1"])
    #expect(try next.restored().windows == ["two.txt:42*"])
    try named.type(editor.quit)
    #expect(try named.end() == .exit(0))
  }

  @Test(arguments: Editor.allCases)
  func withoutABrokerAnEditorWorksAsEverAndIsKeptWhenOneComes(editor: Editor) throws {
    try broker.kill()
    let home = try Self.home("home", editor)
    let process = try EditorProcess(editor, home: home)
    _ = try process.report()
    try process.type(editor.open("three.txt", line: 17))
    #expect(try process.report().windows == ["three.txt:17*"])
    let screen = try process.terminal.shown()
    #expect(!screen.contains("rror") && !screen.contains("estoration"), "\(screen)")
    try broker.start()
    try process.ready()
    // It may have come before anybody could subscribe to that.
    let monitor = try Self.monitor()
    let applications = try monitor.call("listApplications")["applications"]?.array ?? []
    #expect(applications.count == 1)
    let instance = try #require(applications.first?["application"]?.string)
    try Self.stored(instance, ["three.txt:17*"], by: process)
    try process.process.kill()
    let next = try EditorProcess(editor, home: home)
    #expect(try Self.begun(monitor, [next]).values.sorted() == [instance])
    #expect(try next.restored().windows == ["three.txt:17*"])
  }

  @Test(arguments: [Editor.vim, .neovim])
  func anEditorThatIsNotKeptSaysWhyAndHowToHaveItKept(editor: Editor) throws {
    let home = try Self.home("home", editor)
    try Files.write(Array("let v:this_session = expand('<sfile>:p')".utf8), to: "\(home)/session.vim")
    for (words, cause) in [(["-S", "session.vim"], "a session file"), (["one.txt"], "files")] {
      let process = try EditorProcess(editor, home: home, files: words)
      let name = editor == .vim ? "Vim" : "Neovim"
      #expect(try Self.status(process, home) == "Not kept: \(name) was started with \(cause); use :RestorationStart.")
      try process.type(editor.keys("RestorationStart"))
      try process.ready()
      #expect(try Self.status(process, home).hasPrefix("Kept as \(editor.application)@"))
    }
  }

  @Test(arguments: [Editor.vim, .neovim])
  func aBrokerThatHasNotAnsweredYetIsNotTakenForAMissingOne(editor: Editor) throws {
    let home = try Self.home("home", editor)
    Glibc.kill(try broker.pid, SIGSTOP)
    let process = try EditorProcess(editor, home: home)
    try process.waits(until: "waits for an answer") {
      try Self.status(process, home) == "Not kept yet: the broker has not answered."
    }
    Glibc.kill(try broker.pid, SIGCONT)
    try process.ready()
    #expect(try Self.status(process, home) == "Kept as \(editor.application)@1.")
  }

  @Test(arguments: [Editor.vim, .neovim])
  func ofUnsavedChangesThatAKilledEditorLeftBehindItsUserIsTold(editor: Editor) throws {
    let home = try Self.home("home", editor)
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    let windows = ["two.txt:42*", "one.txt:1"]
    try first.run([
      "edit one.txt", "normal ihello", "preserve", "split two.txt", "normal ihello", "preserve", "42",
    ])
    try Self.stored("\(editor.application)@1", windows, by: first)
    try first.process.kill()

    let second = try EditorProcess(editor, home: home)
    #expect(try second.restored().windows == windows)
    let told = try Self.told(second, home)
    let message = "restoration: unsaved: two.txt and 1 more; see :help recovery"
    #expect(told["messages"]?.string?.contains(message) == true, "\(told)")
    #expect(told["readonly"] == 0)
    // After a recovery the user deletes the swap file.
    for file in ["two.txt", "one.txt"] {
      let words = try Self.status(second, home).split(separator: "\n").dropFirst().first?.split(separator: " ") ?? []
      #expect(words.first == "\(home)/\(file):", "\(words)")
      let swap = words.first { $0.contains(".swp") }?.dropLast() ?? ""
      try second.run(["call delete('\(swap)')"])
    }
    #expect(try Self.status(second, home) == "Kept as \(editor.application)@1.")
    // The other one is still there for :recover.
    #expect(told["swap"]?.string?.hasSuffix(".swo") == true, "\(told)")
  }

  @Test(arguments: [Editor.vim, .neovim])
  func aFileThatARunningEditorHasOpenComesBackReadOnly(editor: Editor) throws {
    let home = try Self.home("home", editor)
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.run(["set noswapfile", "edit two.txt", "42"])
    try Self.stored("\(editor.application)@1", ["two.txt:42*"], by: first)
    try first.process.kill()

    let running = try EditorProcess(editor, home: home, files: ["two.txt"])
    try running.run(["normal ihello", "preserve"])
    let next = try EditorProcess(editor, home: home)
    #expect(try next.restored().windows == ["two.txt:42*"])
    let told = try Self.told(next, home)
    #expect(told["readonly"] == 1)
    #expect(told["messages"]?.string?.contains("unsaved") == false, "\(told)")
  }

  /// A name that the user types next is one in that directory.
  @Test(arguments: [Editor.vim, .neovim]) func anotherWorkingDirectoryThanThatOfTheStartIsTold(editor: Editor) throws {
    let home = try Self.home("home", editor)
    for (directory, isTold) in [("/usr", true), ("~", false)] {
      let editing = try EditorProcess(editor, home: home)
      try editing.ready()
      try editing.run(["edit ~/two.txt", "cd \(directory)", isTold ? "42" : "41"])
      try Self.stored("\(editor.application)@1", ["two.txt:\(isTold ? 42 : 41)*"], by: editing)
      try editing.process.kill()
      let next = try EditorProcess(editor, home: home)
      #expect(try next.restored().windows.count == 1)
      let messages = try Self.told(next, home)["messages"]?.string ?? ""
      #expect(messages.contains("restoration: /usr is the working directory again") == isTold, "\(messages)")
      #expect(messages.contains("working directory") == isTold, "\(messages)")
      try next.process.kill()
    }
  }

  /// What an editor's own session file has as well; the last command moves the cursor.
  @Test(arguments: Editor.allCases) func foldsOptionsArgumentsTabsAndNarrowingComeBack(editor: Editor) throws {
    let home = try Self.home("home", editor)
    try Files.write(Array("a\n\tb\n\t\tc\n\t\td\n\te\nf\n\tg\n\th\ni\n".utf8), to: "\(home)/indented")
    let commands =
      editor == .emacs
      ? [
        "(progn (find-file \"one.txt\") (narrow-to-region 10 100) (setq truncate-lines t tab-width 3))",
        "(progn (tab-new) (find-file \"two.txt\") (setq display-line-numbers 'relative) (split-window-below))",
        "(progn (tab-new) (find-file \"three.txt\") (tab-previous))", "(goto-line 44)",
      ]
      : [
        "args one.txt two.txt three.txt", "next", "setlocal number nowrap tabstop=3",
        "5,7fold | 10,20fold | 30,40fold | 10foldopen | 12,14fold | 5,7foldopen | 5,7foldclose",
        "tabnew indented", "setlocal foldmethod=indent", "2foldopen", "tabprevious", "3",
      ]
    let windows =
      editor == .emacs
      ? ["two.txt:44*", "two.txt:1"] : ["two.txt:3*", "indented:1"]
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.run(commands)
    let before = try first.report()
    #expect(before.windows == windows)
    if editor == .emacs {
      #expect(
        before["session"] == [
          "tabs": 3, "tab": 1,
          "buffers": [
            ["file": "one.txt", "narrowed": [10, 100], "local": ["tab-width=3", "truncate-lines=t"]],
            ["file": "three.txt", "narrowed": [], "local": []],
            ["file": "two.txt", "narrowed": [], "local": ["display-line-numbers=relative"]],
          ],
        ]
      )
    } else {
      #expect(before["session"]?["arguments"] == ["one.txt", "two.txt", "three.txt"])
      #expect(before["session"]?["argument"] == 1)
      let views = before["session"]?["views"]?.array ?? []
      #expect(views.map { $0["closed"] } == [["5-7", "12-14", "30-40"], ["3-4", "7-8"]])
      #expect(views.first?["wrap"] == 0 && views.first?["tabstop"] == 3 && views.first?["number"] == 1)
    }
    try Self.stored("\(editor.application)@1", windows, by: first)
    try first.process.kill()

    let second = try EditorProcess(editor, home: home)
    let after = try second.restored()
    #expect(after.windows == windows)
    #expect(after["session"] == before["session"])
    if editor == .emacs {
      try second.run(["(tab-bar-select-tab 1)"])
      #expect(try second.report().windows == ["one.txt:5*"])
    } else {
      // Where the list goes on, and a fold that is open is one still.
      try second.run(["10foldclose", "next"])
      #expect(try second.report()["session"]?["argument"] == 2)
    }
  }

  /// What is saved may come from an import, or from whoever may use the broker.
  @Test(arguments: Editor.allCases) func nothingThatIsSavedIsRun(editor: Editor) throws {
    let home = try Self.home("home", editor, settings: editor == .emacs ? "(setq enable-local-variables :all)" : "")
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.type(editor.open("two.txt", line: 42))
    try Self.stored("\(editor.application)@1", ["two.txt:42*"], by: first)
    try first.process.kill()
    let hostile = try HostileEditorState(editor, in: home)
    let foreign = try broker.connect()
    try Wait.until("the first one has no session") {
      try foreign.call("statistics")["gauges"]?["sessions"] == 0
    }
    let pages = hostile.pages.map { (["Editor", $0], $1) }
    for (path, state) in [(["Editor"], hostile.editor), (["Editor", "Buffers"], hostile.buffers)] + pages {
      try foreign.call(
        "encodeRestorableState",
        [
          "application": .string("\(editor.application)@1"), "object": .array(path.map { .string($0) }),
          "state": state,
        ]
      )
    }
    let second = try EditorProcess(editor, home: home)
    let report = try second.restored()
    #expect(report.windows == hostile.windows)
    #expect(report["files"] == .array(hostile.files))
    #expect(report["session"] == hostile.session)
    // By now it has been shown as well.
    _ = try second.report()
    #expect(!Files.exists("\(home)/proof"))
  }

  /// What Vim has told its user, and how the file of the selected window is opened.
  private static func told(_ editor: EditorProcess, _ home: String) throws -> JSONValue {
    let told = "'messages': execute('messages'), 'readonly': &readonly, 'swap': swapname('%')"
    let status = "'status': execute('RestorationStatus')"
    try editor.run(["call writefile([json_encode({\(told), \(status)})], $HOME .. '/told')"])
    return try JSONCodec.parse(try Files.read("\(home)/told"))
  }

  private static func status(_ editor: EditorProcess, _ home: String) throws -> String {
    String(try told(editor, home)["status"]?.string?.drop { $0 == "\n" } ?? "")
  }

  @Test(arguments: Editor.allCases)
  func whoeverQuitsBeginsAfreshAndWhoeverIsEndedDoesNot(editor: Editor) throws {
    let home = try Self.home("home", editor)
    let monitor = try Self.monitor()
    let instance = "\(editor.application)@1"
    for (signal, ending) in [(SIGTERM, "logout"), (0, "userQuit")] as [(Int32, JSONValue)] {
      let process = try EditorProcess(editor, home: home)
      #expect(try Self.begun(monitor, [process]).values.sorted() == [instance])
      if signal == 0 {
        #expect(try process.restored().windows == ["one.txt:5*"])
        try process.type(editor.quit)
        #expect(try process.end() == .exit(0))
      } else {
        // Told at once, what was opened last is kept nevertheless.
        try process.type(editor.open("one.txt", line: 5))
        #expect(try process.report().windows == ["one.txt:5*"])
        process.process.send(signal: signal)
        _ = try process.end()
      }
      #expect(try Self.ending(monitor) == ending)
    }
    let last = try EditorProcess(editor, home: home)
    #expect(try Self.begun(monitor, [last]).values.sorted() == [instance])
    #expect(try last.report()["files"] == [])
  }

  @Test(arguments: Editor.allCases)
  func anEditorThatIsToldToComesBackAfterItsUserHasQuit(editor: Editor) throws {
    let settings =
      editor == .emacs ? "(setq restoration-on-quit 'restart)" : "let g:restoration = {'on_quit': 'restart'}"
    let home = try Self.home("home", editor, settings: settings)
    let monitor = try Self.monitor()
    let first = try EditorProcess(editor, home: home)
    let instances = try Self.begun(monitor, [first])
    try first.type(editor.open("two.txt", line: 9) + editor.quit)
    #expect(try first.end() == .exit(0))
    let second = try EditorProcess(editor, home: home)
    #expect(try Self.begun(monitor, [second]).values.sorted() == instances.values.sorted())
    #expect(try second.restored().windows == ["two.txt:9*"])
  }

  /// How the next session ended.
  private static func ending(_ monitor: WireClient) throws -> JSONValue {
    while true {
      let event = try monitor.notification("event")
      if event["name"] == "sessionEnded" { return event["ending"] ?? .null }
    }
  }
}
