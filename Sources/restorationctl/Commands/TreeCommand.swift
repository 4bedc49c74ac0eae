// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

struct TreeCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "tree",
    abstract: "Show an application's objects as a tree, across all its processes.",
    usage: "restorationctl tree [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl tree org.example.Notes
        restorationctl tree org.example.Notes --full --no-pager > tree.txt
        restorationctl tree org.example.Notes -j | jq '.objects[].component'
        restorationctl tree org.example.Notes --watch

      A line shows an object's identifier, its class, the role and number of the
      process that owns it (or wrote it last), the age of its state and its size.
      Objects of one process have one colour. Marks are

        v  vacant: unowned now
        o  orphaned: its owner left without closing it
        x  excluded: saves do not reach it
        c  confidential: its state is shown only with show --reveal
        w  withheld: its process failed when it was given its state
        e  empty: it has no state

      Siblings are in the order in which they were first registered. With --watch
      an interrupt ends it with status 0, and the end of the broker with status 69.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Draw with ASCII characters; the default if the locale is not UTF-8.")
  var plain = false

  @Flag(help: "Show it again whenever something changes.")
  var watch = false

  func run() async throws {
    if watch { Interruption.endsTheTool() }
    try await withBroker { broker in
      guard watch else { return try show(try await broker.describeApplication(application)) }
      var changes = try await broker.changes(of: application).makeAsyncIterator()
      TimeLimit.isForWatching()
      repeat {
        try show(try await broker.describeApplication(application))
        // Of many changes in a row a person sees some.
        try await Task.sleep(for: .milliseconds(250))
      } while try await changes.next() != nil
    }
  }

  private func show(_ description: ApplicationDescription) throws {
    let drawing = TreeDrawing(
      application: description,
      lines: plain || !Terminal.isUTF8 ? .ascii : .boxes,
      now: Clock.now
    )
    let tree = TreeJSON(application: description)
    let text = { drawing.text(legend: !legend.hidesLegend) }
    if watch { try output.refresh(tree, or: text()) } else { try output.show(tree, or: text()) }
  }
}
