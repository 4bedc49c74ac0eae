// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import TestSupport

/// The directory of a user of Emacs, with files to edit.
struct EmacsHome {
  static let instance = "org.gnu.Emacs@1"

  let path: String

  /// - Parameter settings: Lisp for the init file, behind what enables the package.
  init(settings: String = "") throws {
    path = try broker.directory.makeDirectory("home")
    try Editor.emacs.install(in: path, settings: "\(settings)\n\(Self.report)")
    for file in EditedFile.names { try write(file, EditedFile.text) }
  }

  func write(_ name: String, _ text: String) throws { try Files.write(Array(text.utf8), to: "\(path)/\(name)") }

  /// An Emacs that is kept.
  func start() throws -> EditorProcess {
    let process = try EditorProcess(.emacs, home: path)
    try process.ready()
    return process
  }

  /// The value of a list of texts in Lisp.
  func texts(_ lisp: String, in process: EditorProcess) throws -> [String] {
    try process.run(["(write-region (json-serialize (vconcat \(lisp))) nil \"~/texts\" nil 'quiet)"])
    return try JSONCodec.parse(try Files.read("\(path)/texts")).array?.compactMap { $0.string } ?? []
  }

  /// What Emacs has told its user.
  func messages(in process: EditorProcess) throws -> String {
    try texts("(list (with-current-buffer \"*Messages*\" (buffer-string)))", in: process).first ?? ""
  }

  /// Waits until these windows are stored.
  func stored(_ windows: [String], by process: EditorProcess) throws {
    let reader = try broker.connect()
    try process.waits(until: "has \(windows) stored") { reader.storedWindows(Self.instance) == windows }
  }

  /// The text of the stored state of an object below Editor; empty while there is no such object.
  func storedText(_ name: String) throws -> String {
    let reader = try broker.connect()
    return ((try? reader.decode("Editor", name, of: Self.instance))?["state"]).map { "\($0)" } ?? ""
  }

  /// `report-tabs` gives the names of the buffers in the windows of each tab of each frame, a text for each.
  private static let report = #"""
    (defun report-hidden (state)
      (if (eq (car state) 'leaf)
          (list (cadr (assq 'buffer (cdr state))))
        (mapcan (lambda (part) (and (memq (car-safe part) '(leaf hc vc)) (report-hidden part))) (cdr state))))
    (defun report-tabs ()
      (mapcan (lambda (frame)
                (mapcar (lambda (tab)
                          (string-join (if (eq (car tab) 'current-tab)
                                           (mapcar (lambda (window) (buffer-name (window-buffer window)))
                                                   (window-list frame 'never (frame-first-window frame)))
                                         (report-hidden (cdr (alist-get 'ws (cdr tab)))))
                                       " "))
                        (with-selected-frame frame (funcall tab-bar-tabs-function))))
              (reverse (frame-list))))
    """#
}
