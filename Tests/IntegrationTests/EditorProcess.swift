// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import TestSupport

/// Editors of people, with the plugins of `Protocol/examples`.
enum Editor: String, CaseIterable, Sendable {
  case vim
  case neovim = "nvim"
  case emacs

  var application: String {
    switch self {
    case .vim: "org.vim.Vim"
    case .neovim: "io.neovim.Neovim"
    case .emacs: "org.gnu.Emacs"
    }
  }

  /// Whether all of them are installed; in CI they must be.
  static let areInstalled: Bool = {
    guard !Environment.isCI else { return true }
    return allCases.allSatisfy { (try? ChildProcess.run([$0.rawValue, "--version"]))?.end == .exit(0) }
  }()

  static let requirement = "needs vim, nvim and emacs; Tests/run.sh installs them"

  /// Keys that run a command of the editor: one of the command line, or Lisp.
  func keys(_ command: String) -> String { self == .emacs ? "\u{1b}:\(command)\r" : ":\(command)\r" }

  /// Keys that write the editor's content to a file.
  func report(to file: String) -> String { keys(self == .emacs ? "(report \"\(file)\")" : "call Report('\(file)')") }

  /// Keys that end the editor as its user does.
  var quit: String { self == .emacs ? "\u{18}\u{3}" : ":qa!\r" }

  /// Keys that open a file and go to a line.
  func open(_ file: String, line: Int) -> String {
    self == .emacs
      ? keys("(progn (find-file \"\(file)\") (goto-line \(line)))") : keys("edit \(file)") + keys("\(line)")
  }

  /// Writes the user's settings: the plugin, the test's additions, and `report`.
  func install(in home: String, settings: String = "") throws {
    if !Files.exists("\(home)/tmp") { try Files.makeDirectory("\(home)/tmp") }
    let plugin = "\(Products.repository)/Protocol/examples/\(self == .neovim ? "neovim" : rawValue)"
    func write(_ text: String, to name: String) throws { try Files.write(Array(text.utf8), to: "\(home)/\(name)") }
    switch self {
    case .vim:
      try write("set nocompatible runtimepath^=\(plugin)\n\(settings)\n\(Self.vimReport)", to: ".vimrc")
    case .neovim:
      for name in ["config", "config/nvim"] where !Files.exists("\(home)/\(name)") {
        try Files.makeDirectory("\(home)/\(name)")
      }
      try write("set runtimepath^=\(plugin)\n\(settings)\n\(Self.vimReport)", to: "config/nvim/init.vim")
    case .emacs:
      // Nothing is compiled, in each home anew: what the system loads before the user's settings neither.
      if !Files.exists("\(home)/.emacs.d") { try Files.makeDirectory("\(home)/.emacs.d") }
      try write("(setq native-comp-deferred-compilation nil)", to: ".emacs.d/early-init.el")
      let quiet = "(setq inhibit-startup-screen t)"
      let load = "(add-to-list 'load-path \"\(plugin)\")\n(require 'restoration)\n(restoration-mode 1)"
      try write("\(quiet)\n\(load)\n\(settings)\n\(Self.lispReport)", to: ".emacs")
    }
  }

  /// Writes tab pages with their windows, and the files, as JSON, also after each restoration.
  private static let vimReport = #"""
    function! s:Tree(node) abort
      if a:node[0] !=# 'leaf' | return {a:node[0]: map(copy(a:node[1]), {_, child -> s:Tree(child)})} | endif
      let info = getwininfo(a:node[1])[0]
      let [_, line, column; _] = getcurpos(a:node[1])
      return {'file': fnamemodify(bufname(info.bufnr), ':t'), 'line': line, 'column': column, 'width': info.width,
        \ 'height': info.height, 'selected': tabpagewinnr(info.tabnr) == info.winnr && info.tabnr == tabpagenr()}
    endfunction
    function! s:Closed() abort
      let lines = filter(range(1, line('$')), {_, line -> foldclosed(line) == line})
      return map(lines, {_, line -> line .. '-' .. foldclosedend(line)})
    endfunction
    function! s:View(info) abort
      let view = {}
      for name in ['number', 'wrap', 'tabstop', 'textwidth', 'foldmethod', 'statusline']
        let view[name] = gettabwinvar(a:info.tabnr, a:info.winid, '&' .. name)
      endfor
      call win_execute(a:info.winid, "let s:more = {'closed': s:Closed(), 'markers': search('{{{', 'nw')}")
      return extend(view, s:more)
    endfunction
    function! Report(name) abort
      let files = filter(getbufinfo({'buflisted': 1}), {_, info -> info.name !=# ''})
      let report = {'tabs': map(range(1, tabpagenr('$')), {_, tab -> s:Tree(winlayout(tab))}),
        \ 'files': sort(map(files, {_, info -> fnamemodify(info.name, ':t')})), 'error': v:errmsg, 'directory': getcwd(),
        \ 'session': {'arguments': map(argv(), {_, name -> fnamemodify(name, ':t')}), 'argument': argidx(),
        \ 'views': map(getwininfo(), {_, info -> s:View(info)})}}
      call writefile([json_encode(report)], $HOME .. '/part')
      call rename($HOME .. '/part', $HOME .. '/' .. a:name)
    endfunction
    autocmd User RestorationRestored call Report('restored.' .. getpid())
    autocmd User RestorationReady call Report('ready.' .. getpid())
    """#

  private static let lispReport = #"""
    (defun report-tree (window)
      (if (window-live-p window)
          (with-current-buffer (window-buffer window)
            (save-excursion
              (goto-char (window-point window))
              `((file . ,(if buffer-file-name (file-name-nondirectory buffer-file-name) (buffer-name)))
                (line . ,(line-number-at-pos nil t)) (column . ,(1+ (current-column)))
                (width . ,(window-total-width window)) (height . ,(window-total-height window))
                (selected . ,(if (and (eq window (frame-selected-window (window-frame window)))
                                      (eq (window-frame window) (selected-frame)))
                                 1 0)))))
        (let ((child (window-child window)) trees)
          (while child
            (push (report-tree child) trees)
            (setq child (window-next-sibling child)))
          `((,(if (window-left-child window) 'row 'col) . ,(vconcat (nreverse trees)))))))
    (defun report-buffer (file)
      (with-current-buffer (get-file-buffer file)
        `((file . ,(file-name-nondirectory file))
          (narrowed . ,(if (buffer-narrowed-p) (vector (point-min) (point-max)) []))
          (local . ,(vconcat (cl-loop for name in '(display-line-numbers mode-line-format tab-width truncate-lines)
                                      when (local-variable-p name)
                                      collect (format "%s=%S" name (symbol-value name))))))))
    (defun report (name)
      (let ((files (delq nil (mapcar #'buffer-file-name (buffer-list)))))
        (write-region
         (json-serialize `((tabs . ,(vconcat (mapcar (lambda (frame) (report-tree (frame-root-window frame)))
                                                     (reverse (frame-list)))))
                           (files . ,(vconcat (sort (mapcar #'file-name-nondirectory files) #'string<)))
                           (session . ((tabs . ,(length (funcall tab-bar-tabs-function)))
                                       (tab . ,(tab-bar--current-tab-index))
                                       (buffers . ,(vconcat (mapcar #'report-buffer (sort files #'string<))))))
                           (error . "")))
         nil "~/part" nil 'quiet)
        (rename-file "~/part" (concat "~/" name) t)))
    (add-hook 'restoration-restored-hook (lambda () (report (format "restored.%d" (emacs-pid)))))
    (add-hook 'restoration-ready-hook (lambda () (report (format "ready.%d" (emacs-pid)))))
    """#
}

/// What an editor runs in.
enum EditorHost: Sendable {
  /// A terminal, whose only process it is.
  case terminal
  /// An interactive shell in a terminal, as its job.
  case shell
  /// A shell that ignores SIGHUP, as `nohup` does: that its terminal is gone shows only by the end of its input.
  case deafShell
  /// A pane of tmux, whose process it is.
  case pane
  /// A shell in a pane of tmux, as its job.
  case paneShell
}

/// An editor that runs on a terminal of its own.
final class EditorProcess {
  let editor: Editor
  let host: EditorHost
  /// What runs on the terminal: the editor, a shell or a client of tmux.
  let process: ChildProcess
  /// Nil when it was closed.
  private var window: PseudoTerminal?
  private let home: String
  /// The editor, if it is not the terminal's process: known when it is ready.
  private var job: Int32?
  /// Tells whether it has ended: its number may then be that of another process.
  private var jobEnd: FileDescriptor?
  /// What editors before this one have left.
  private let former: Set<String>
  private let tmux: [String]

  /// - Parameters:
  ///   - home: where its settings and its files are.
  ///   - directory: where it is started, if not there.
  init(
    _ editor: Editor,
    home: String,
    files: [String] = [],
    in host: EditorHost = .terminal,
    directory: String? = nil
  ) throws {
    self.editor = editor
    self.host = host
    self.home = home
    former = Set(Files.list(home))
    // A server of its own: one that was killed may still be there.
    tmux = ["tmux", "-u", "-S", "\(home)/t\(former.count)", "-f", "/dev/null"]
    let terminal = try PseudoTerminal(rows: 30, columns: 100)
    window = terminal
    let words = [editor.rawValue] + (editor == .emacs ? ["-nw"] : []) + files
    let shell = ["bash", "--norc", "--noprofile", "-i"]
    let command =
      switch host {
      case .terminal: words
      case .shell, .deafShell: shell
      case .pane: tmux + ["new-session", words.joined(separator: " ")]
      case .paneShell: tmux + ["new-session", shell.joined(separator: " ")]
      }
    process = try ChildProcess(
      command,
      environment: Self.environment(home),
      output: .terminal(terminal),
      directory: directory ?? home
    )
    guard host != .terminal, host != .pane else { return }
    if host == .paneShell {
      try waits(until: "has a pane") { try terminal.shown().contains("bash-") }
    }
    try type((host == .deafShell ? "trap '' HUP; " : "") + words.joined(separator: " ") + "\r")
  }

  deinit {
    if let job, let jobEnd, !jobEnd.waitUntilReadable(Deadline(.zero)) { Glibc.kill(job, SIGKILL) }
    if isInTmux { _ = try? tmux("kill-server") }
  }

  private static func environment(_ home: String) -> [String: String?] {
    var environment = broker.environment
    environment["RESTORATIOND_SOCKET"] = broker.socket
    environment["PATH"] = "\(home)/bin:/usr/bin:/bin"
    let own: [String: String?] = [
      "HOME": home, "XDG_CONFIG_HOME": "\(home)/config", "XDG_DATA_HOME": "\(home)/data", "XDG_STATE_HOME": home,
      "XDG_CACHE_HOME": "\(home)/cache", "TMPDIR": "\(home)/tmp", "LC_ALL": "C.UTF-8", "TERM": "vt220",
      "VIMINIT": nil, "NVIM_APPNAME": nil, "TMUX": nil, "TMUX_PANE": nil, "PS1": nil, "SHELL": "/bin/bash",
    ]
    environment.merge(own) { $1 }
    return environment
  }

  private var isInTmux: Bool { host == .pane || host == .paneShell }

  /// Gives a command to the tmux that it runs in.
  func tmux(_ words: String...) throws {
    let done = try ChildProcess.run(tmux + words, environment: Self.environment(home))
    guard done.end == .exit(0) else { throw TestFailure("tmux \(words): \(done.errors)") }
  }

  var terminal: PseudoTerminal {
    get throws {
      guard let window else { throw TestFailure("the terminal was closed") }
      return window
    }
  }

  /// Closes the terminal, as its program does that ends, or a connection that is lost.
  func closeTerminal() { window = nil }

  /// The editor.
  var pid: Int32 {
    get throws {
      guard host != .terminal else { return process.pid }
      guard let job else { throw TestFailure("\(editor) is not ready") }
      return job
    }
  }

  func type(_ keys: String) throws {
    try waits(until: "takes keys") { try terminal.takesKeys }
    try terminal.type(keys)
  }

  /// Waits, and reads the screen meanwhile: an editor whose output is not read stops.
  func waits(until what: String, _ isTrue: () throws -> Bool) throws {
    try Wait.until("\(editor) \(what)") {
      try window?.drain()
      return try isTrue()
    }
  }

  /// Waits for its end, if it is the terminal's process.
  func end() throws -> ChildProcess.End {
    try waits(until: "has ended") { !process.isRunning }
    return try process.waitForEnd()
  }

  /// Runs commands, each when the one before is done: Emacs gives keys to the frame that is shown when they are typed.
  func run(_ commands: some Sequence<String>) throws {
    let name = "done.\(try pid)"
    for command in commands {
      Files.remove("\(home)/\(name)")
      try type(
        editor == .emacs
          ? editor.keys("(progn \(command) (report \"\(name)\"))") : editor.keys(command) + editor.report(to: name)
      )
      _ = try written(name)
    }
  }

  /// The editor's own report of its content.
  func report() throws -> JSONValue {
    let name = "report.\(try pid)"
    Files.remove("\(home)/\(name)")
    try type(editor.report(to: name))
    return try written(name)
  }

  /// Waits until the session is kept; returns the report of that moment.
  @discardableResult
  func ready() throws -> JSONValue {
    if host != .terminal {
      try waits(until: "is ready") {
        let new = Files.list(home).first { $0.hasPrefix("ready.") && !former.contains($0) }
        job = new.flatMap { Int32($0.dropFirst(6)) }
        jobEnd = job.flatMap { try? FileDescriptor.process($0) }
        return job != nil
      }
    }
    return try written("ready.\(try pid)")
  }

  /// The report after the restoration.
  func restored() throws -> JSONValue { try written("restored.\(try pid)") }

  private func written(_ name: String) throws -> JSONValue {
    do {
      try waits(until: "has written \(name)") { Files.exists("\(home)/\(name)") }
    } catch {
      throw TestFailure("\(error); its process: \(process.condition); its screen: \(try terminal.shown())")
    }
    return try JSONCodec.parse(try Files.read("\(home)/\(name)"))
  }
}

/// The files that are edited: lines with their numbers.
enum EditedFile {
  static let names = ["one.txt", "two.txt", "three.txt", "four.txt", "zwölf #1 %.txt"]
  static let text = (1...100).map { "\($0)\n" }.joined()

  /// The line of a position as Emacs counts it.
  static func line(ofPoint point: Int64) -> Int64 {
    1 + Int64(text.utf8.prefix(Int(point) - 1).count { $0 == UInt8(ascii: "\n") })
  }
}

extension BrokerCaller {
  /// The windows that are stored of an editor, row by row, as `windows` of a report has them.
  func storedWindows(_ instance: String) -> [String]? {
    guard let editor = (try? decode("Editor", of: instance))?["state"] else { return nil }
    func windows(of tab: String, isSelected: Bool) -> [String] {
      let state = (try? decode("Editor", tab, of: instance))?["state"]
      return state?["windows"]?.storedWindows(isSelected) ?? []
    }
    if let frames = editor["frames"]?.array {
      return frames.flatMap { windows(of: $0["tab"]?.string ?? "", isSelected: $0["selected"] == true) }
    }
    return (editor["tabs"]?.array ?? []).enumerated().flatMap { index, number in
      windows(of: "Tab-\(number.integer ?? 0)", isSelected: editor["tab"] == .integer(Int64(index + 1)))
    }
  }
}

extension JSONValue {
  fileprivate func storedWindows(_ isSelected: Bool) -> [String] {
    if let parts = self["parts"]?.array { return parts.flatMap { $0.storedWindows(isSelected) } }
    let file = self["file"]?.string?.split(separator: "/").last ?? ""
    let line = self["line"]?.integer ?? EditedFile.line(ofPoint: self["point"]?.integer ?? 1)
    return ["\(file):\(line)\(isSelected && self["selected"] == true ? "*" : "")"]
  }

  /// A report without the sizes of windows.
  var withoutSizes: JSONValue {
    switch self {
    case .array(let elements): return .array(elements.map(\.withoutSizes))
    case .object(let object):
      var rest: JSONObject = [:]
      for (name, value) in object.members where name != "width" && name != "height" { rest[name] = value.withoutSizes }
      return .object(rest)
    default: return self
    }
  }

  /// Widths and heights of a report's windows, row by row.
  var sizes: [Int64] {
    if let parts = (self["tabs"] ?? self["row"] ?? self["col"])?.array { return parts.flatMap(\.sizes) }
    return [self["width"], self["height"]].compactMap { $0?.integer }
  }

  /// The windows of a report, row by row: `file:line`, the selected one with a star.
  var windows: [String] {
    if let tabs = self["tabs"]?.array { return tabs.flatMap(\.windows) }
    if let parts = (self["row"] ?? self["col"])?.array { return parts.flatMap(\.windows) }
    let star = self["selected"] == 1 ? "*" : ""
    return ["\(self["file"]?.string ?? ""):\(self["line"]?.integer ?? 0)\(star)"]
  }
}
