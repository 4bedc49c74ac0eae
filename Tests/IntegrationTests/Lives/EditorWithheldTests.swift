// SPDX-License-Identifier: Apache-2.0

internal import TestSupport
internal import Testing

/// What an editor tells of a state that is withheld.
@Suite(
  .broker,
  .enabled(if: Editor.areInstalled, Comment(rawValue: Editor.requirement)),
  .timeLimit(.minutes(5))
)
struct EditorWithheldTests {
  @Test("R35 An editor tells its user how what is withheld comes back", arguments: Editor.allCases)
  func whatIsWithheldIsTold(editor: Editor) throws {
    let home = try broker.directory.makeDirectory("home")
    try editor.install(in: home)
    try broker.withhold("Editor", of: "\(editor.application)@1")
    let process = try EditorProcess(editor, home: home)
    try process.ready()
    try process.run([
      editor == .emacs
        ? #"(with-current-buffer "*Messages*" (write-region nil nil "~/told" nil 'quiet))"#
        : "call writefile([execute('RestorationStatus')], $HOME .. '/told')"
    ])
    let told = try Files.text("\(home)/told")
    #expect(told.contains("restorationctl quarantine release \(editor.application)@1\n"), "\(told)")
  }
}
