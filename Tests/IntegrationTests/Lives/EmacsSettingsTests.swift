// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport
internal import Testing

/// What the settings of Emacs open at its start the user has not opened.
@Suite(.broker, .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement)))
struct EmacsSettingsTests {
  private static func atStart(_ lisp: String) -> String { "(add-hook 'emacs-startup-hook (lambda () \(lisp)))" }

  private static let sidebar = #"(display-buffer-in-side-window (dired-noselect "~") '((side . left)))"#

  static let all = [
    atStart(sidebar), atStart("(select-window \(sidebar))"),
    atStart("(split-window-right 20) (switch-to-buffer \"*tree*\") (set-window-dedicated-p nil t)"),
    atStart("(find-file \"one.txt\") (split-window-right)"),
    atStart("(with-selected-frame (make-frame) (switch-to-buffer \"*Messages*\"))"),
    "(setq initial-buffer-choice (lambda () (get-buffer-create \"*dashboard*\")))",
    "(setq initial-buffer-choice \"~/one.txt\")",
  ]

  /// The names of buffers in windows.
  private static func buffers(_ report: JSONValue) -> [Substring] {
    report.windows.map { $0.prefix { $0 != ":" } }
  }

  @Test(arguments: all) func settingsThatOpenSomethingHideNothing(settings: String) throws {
    let home = try EmacsHome(settings: settings)
    let first = try home.start()
    let open = """
      (progn (select-window (car (seq-remove (lambda (window) (or (window-dedicated-p window) \
      (window-parameter window 'window-side))) (window-list)))) \
      (find-file "two.txt") (goto-line 42) (split-window-below) (find-file "three.txt") (goto-line 7))
      """
    try first.run([open])
    let windows = ["three.txt:7*", "two.txt:42"]
    let reader = try broker.connect()
    var stored: [String] = []
    try first.waits(until: "has \(windows) stored") {
      stored = reader.storedWindows(EmacsHome.instance) ?? []
      return stored.filter { windows.contains($0) } == windows
    }
    let before = try first.report()
    try first.process.kill()
    let next = try home.start()
    let after = try next.restored()
    #expect(after.windows.filter { windows.contains($0) } == windows, "\(after.windows)")
    #expect(Self.buffers(after) == Self.buffers(before))
    let applications = try reader.call("listApplications")["applications"]?.array ?? []
    #expect(applications.map { $0["application"]?.string } == [EmacsHome.instance])
    // What the settings have opened once more is not saved once more.
    try next.run(["(goto-line 8)"])
    try home.stored(stored.map { $0 == windows[0] ? "three.txt:8*" : $0 }, by: next)
  }
}
