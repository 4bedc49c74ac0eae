// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// Layouts of Vim and Neovim that are large, or that cannot all be saved or restored at once.
@Suite(
  .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement)),
  .timeLimit(.minutes(Environment.isLong ? 10 : 5))
)
struct EditorLayoutTests {
  private static let editors: [Editor] = [.vim, .neovim]

  /// A directory with an editor's settings and files to edit.
  private static func prepare(_ editor: Editor, settings: String = "") throws -> String {
    let home = try broker.directory.makeDirectory("home")
    // The listing would keep its history beside the plugin.
    let common = "set noswapfile\nlet g:netrw_dirhistmax = 0"
    try editor.install(in: home, settings: "\(common)\n\(settings)")
    for file in EditedFile.names { try Files.write(Array(EditedFile.text.utf8), to: "\(home)/\(file)") }
    return home
  }

  private static func stored(_ windows: [String], by process: EditorProcess) throws {
    let reader = try broker.connect()
    var last: [String]?
    do {
      try process.waits(until: "has its windows stored") {
        last = reader.storedWindows("\(process.editor.application)@1")
        return last == windows
      }
    } catch { throw TestFailure("\(error): \(windows), not \(last ?? [])") }
  }

  /// Waits until everything has been stored since: a name that is new in the list is stored with all that differs.
  private static func storedAnew(by process: EditorProcess) throws {
    let name = "new\(process.process.pid)"
    try process.run(["badd \(name)"])
    let reader = try broker.connect()
    try process.waits(until: "has stored a new name") {
      let state = try? reader.decode("Editor", "Buffers", of: "\(process.editor.application)@1")["state"]
      return state?["buffers"]?.array?.contains { $0["file"]?.string?.hasSuffix(name) == true } == true
    }
  }

  /// What an expression has in an editor.
  private static func value(_ expression: String, in process: EditorProcess, _ home: String) throws -> String {
    try process.run(["call writefile([\(expression)], $HOME .. '/value')"])
    return try Files.text("\(home)/value")
  }

  private static let limits: JSONObject = Environment.isLong ? [:] : ["stateBytesMax": 12_288]

  /// In one state this layout would be larger than a state may be.
  @Test(.broker(limits: limits), arguments: editors)
  func hundredsOfWindowsInTabPagesComeBackWhole(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let (tabs, windows) = Environment.isLong ? (300, 500) : (30, 50)
    let script = """
      set hidden shortmess+=A
      for n in range(\(tabs))
        execute n ? 'tabnew' : 'edit' printf('%s/%0\(105 - home.utf8.count)d.cpp', getcwd(), n)
        if n < \(windows - tabs) | execute 'vsplit' printf('%s/%0\(105 - home.utf8.count)d.hpp', getcwd(), n) | endif
      endfor
      """
    try Files.write(Array(script.utf8), to: "\(home)/large.vim")
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.run(["source ~/large.vim"])
    let before = try first.report()
    #expect(before.windows.count == windows)
    try Self.stored(before.windows, by: first)
    let status = try Self.value("execute('RestorationStatus')", in: first, home)
    #expect(status == "\0Kept as \(editor.application)@1.\n")
    try first.process.kill()

    let second = try EditorProcess(editor, home: home)
    let after = try second.restored()
    #expect(after.windows == before.windows)
    #expect(after["files"] == before["files"])
    // Of a movement only its own tab page is told.
    try Self.stored(before.windows, by: second)
    let monitor = try broker.connect()
    try monitor.call("saveApplicationState", ["application": .string("\(editor.application)@1")])
    try monitor.call("subscribe", ["events": ["stateEncoded", "objectUnregistered"]])
    try second.run(["tabclose"])
    var told: Set<String> = []
    while !told.contains("objectUnregistered Tab-\(tabs)") || !told.contains("stateEncoded Editor") {
      try second.waits(until: "has told of the closed tab page") { monitor.hasInput(within: .zero) }
      let event = try monitor.notification("event")
      told.insert("\(event["name"]?.string ?? "") \(event["path"]?.array?.last?.string ?? "")")
    }
    #expect(told.count <= 4, "\(told)")
  }

  @Test(.broker(limits: ["stateBytesMax": 2_000]), arguments: editors)
  func aUserHearsOfATabPageThatIsRefusedAndOfNamesThatAreLeftOut(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let process = try EditorProcess(editor, home: home)
    try process.ready()
    try process.run(["edit one.txt", "tabnew two.txt", "for n in range(7) | split | endfor"])
    func status() throws -> String { try Self.value("execute('RestorationStatus')", in: process, home) }
    let pageText = "tab page 2: stays saved as it was, for limitExceeded: stateBytesMax is 2000"
    try process.waits(until: "tells of the tab page") { try status().contains(pageText) }
    let messages = try Self.value("execute('messages')", in: process, home)
    #expect(messages.contains("not all is saved: see :RestorationStatus"))
    try process.run(["only", "for n in range(99) | execute 'badd' n | endfor"])
    try process.waits(until: "tells of the list, and no longer of the tab page") {
      let text = try status()
      return text.contains("list of buffers: ") && !text.contains("tab page")
    }
    try process.run(["%bdelete"])
    try process.waits(until: "has nothing left to tell") { try !status().contains("but") }
  }

  /// Tab pages were once in the state of the editor.
  @Test(.broker, arguments: editors) func aStateOfAnEarlierPluginComesBack(editor: Editor) throws {
    let home = try Self.prepare(editor)
    func leaf(_ file: String, _ line: Int64, _ more: JSONObject = [:]) -> JSONValue {
      var leaf: JSONObject = ["file": .string("\(home)/\(file)"), "line": .integer(line), "column": 1, "top": 1]
      for (name, value) in more.members { leaf[name] = value }
      leaf["width"] = 50
      leaf["height"] = 28
      return .object(leaf)
    }
    let parts: [JSONValue] = [leaf("two.txt", 42, ["selected": true]), leaf("three.txt", 9)]
    let layout: JSONValue = [
      "directory": .string(home), "columns": 100, "lines": 30, "tab": 2,
      "tabs": [["windows": leaf("one.txt", 7)], ["windows": ["split": "row", "parts": .array(parts)]]],
    ]
    let buffers: JSONValue = [
      "buffers": [["file": .string("\(home)/four.txt"), "line": 3, "modified": true]],
      "arguments": [.string("\(home)/one.txt")],
    ]
    let foreign = try broker.connect()
    let instance = "\(editor.application)@1"
    try foreign.encode("Editor", state: layout, of: instance)
    try foreign.encode("Editor", "Buffers", state: buffers, of: instance)
    let windows = ["one.txt:7", "two.txt:42*", "three.txt:9"]
    for _ in 1...2 {
      let process = try EditorProcess(editor, home: home)
      let report = try process.restored()
      #expect(report.windows == windows)
      #expect(report["files"] == ["four.txt", "one.txt", "three.txt", "two.txt"])
      #expect(report["session"]?["arguments"] == ["one.txt"])
      try Self.stored(windows, by: process)
      try process.process.kill()
    }
  }

  /// A listing of a directory at the side, as the settings of many open one.
  @Test(.broker, arguments: editors) func aListingThatTheSettingsOpenIsNotTakenForItsUsersWork(editor: Editor) throws {
    let home = try Self.prepare(editor, settings: "autocmd VimEnter * Lexplore | wincmd p")
    let windows = ["two.txt:9*", "one.txt:5"]
    func own(_ report: JSONValue) -> [String] { report.windows.filter { $0.contains(".txt") } }
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.run(["edit one.txt", "5", "split two.txt", "9"])
    try Self.stored(windows, by: first)
    try first.process.kill()
    for _ in 1...2 {
      let process = try EditorProcess(editor, home: home)
      let report = try process.restored()
      #expect(own(report) == windows)
      #expect(report.windows.count == 3)
      try Self.storedAnew(by: process)
      try Self.stored(windows, by: process)
      try process.process.kill()
    }
    let applications = try broker.connect().call("listApplications")["applications"]?.array ?? []
    #expect(applications.compactMap { $0["application"]?.string } == ["\(editor.application)@1"])
  }

  @Test(.broker, arguments: editors)
  func aWindowThatItsUserOpensBeforeTheBrokerComesIsLeftAlone(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.type(editor.open("one.txt", line: 5))
    try Self.stored(["one.txt:5*"], by: first)
    try first.process.kill()
    try broker.kill()
    let second = try EditorProcess(editor, home: home)
    try second.run(["help"])
    try broker.start()
    #expect(try second.ready().windows == ["help.txt:1*", ":1"])
    #expect(try EditorProcess(editor, home: home).restored().windows == ["one.txt:5*"])
  }

  @Test(.broker, arguments: editors) func directoriesThatAreMissingForOneStartStaySaved(editor: Editor) throws {
    let home = try Self.prepare(editor)
    for name in ["disk", "disk/all", "disk/tab", "disk/window"] { try Files.makeDirectory("\(home)/\(name)") }
    try Files.write([], to: "\(home)/disk/window/inside")
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.run([
      "cd ~/disk/all", "edit ~/one.txt", "tabnew ~/two.txt", "tcd ~/disk/tab", "split ~/disk/window",
      "lcd ~/disk/window", "wincmd j", "9",
    ])
    func directories(_ process: EditorProcess) throws -> String {
      let all = "getcwd(winnr('#'), 2), getcwd(-1, 2), getcwd(1, 1)"
      return try Self.value("json_encode([\(all), getline(1, '$')])", in: process, home)
    }
    try Self.storedAnew(by: first)
    try first.process.kill()
    try Files.rename("\(home)/disk", to: "\(home)/gone")
    let second = try EditorProcess(editor, home: home)
    _ = try second.restored()
    try Self.storedAnew(by: second)
    try second.process.kill()
    try Files.rename("\(home)/gone", to: "\(home)/disk")

    let third = try EditorProcess(editor, home: home)
    _ = try third.restored()
    try third.run(["wincmd k"])
    let text = try directories(third)
    let found = try JSONCodec.parse(Array(text.utf8)).array ?? []
    #expect(found.first == .string("\(home)/disk/tab"))
    #expect(found.dropFirst().prefix(2) == [.string("\(home)/disk/tab"), .string("\(home)/disk/all")])
    #expect(try Self.value("getcwd()", in: third, home) == "\(home)/disk/window\n")
    // The directory is listed, not only named.
    let listing = found.last?.array?.compactMap { $0.string } ?? []
    #expect(listing.contains { $0.contains("inside") }, "\(found)")
  }

  @Test(.broker, arguments: editors) func namesOfFilesComeBackAsTheirUserSawThem(editor: Editor) throws {
    let home = try Self.prepare(editor)
    try Files.makeDirectory("\(home)/inner")
    func names(in process: EditorProcess) throws -> String {
      let buffers = "map(getbufinfo({'buflisted': 1}), 'bufname(v:val.bufnr)')"
      return try Self.value("json_encode([\(buffers), argv()])", in: process, home)
    }
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    // The last command has the editor shorten the names by itself.
    try first.run([
      "cd inner", "args ../one.txt inside", "execute 'badd' fnameescape('+x')", "badd -y", "badd ./~z",
      "badd /etc/passwd", "edit inside", "tabnew ../two.txt", "tabprevious", "cd .",
    ])
    let before = try names(in: first)
    for name in ["inside", "+x", "-y", "~z"] { #expect(before.contains("\"\(name)\""), "\(before)") }
    try Self.storedAnew(by: first)
    try first.process.kill()
    let second = try EditorProcess(editor, home: home)
    _ = try second.restored()
    try second.run(["bdelete new\(first.process.pid)"])
    #expect(try names(in: second) == before)
  }

  @Test(.broker, arguments: editors) func windowsForWhichThereIsNoRoomStaySaved(editor: Editor) throws {
    let home = try Self.prepare(editor)
    let first = try EditorProcess(editor, home: home)
    try first.ready()
    try first.run(["edit one.txt", "split two.txt", "split three.txt", "split four.txt", "3"])
    let windows = ["four.txt:3*", "three.txt:1", "two.txt:1", "one.txt:1"]
    try Self.stored(windows, by: first)
    try first.process.kill()
    try editor.install(in: home, settings: "set noswapfile winheight=9 winminheight=9")
    let second = try EditorProcess(editor, home: home)
    #expect(try second.restored().windows.count < 4)
    try second.run(["7"])
    try Self.storedAnew(by: second)
    #expect(try broker.connect().storedWindows("\(editor.application)@1") == windows)
    try second.process.kill()
    try editor.install(in: home, settings: "set noswapfile")
    #expect(try EditorProcess(editor, home: home).restored().windows == windows)
  }
}
