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

      A line shows an object's identifier, its class, the role and number of the
      process that owns it (or wrote it last), the age of its state and its size.
      Objects of one process have one colour. Marks are

        v  vacant: unowned now
        o  orphaned: its owner left without closing it
        x  excluded: saves do not reach it
        c  confidential: its state is shown only with show --reveal
        e  empty: it has no state

      Siblings are in the order in which they were first registered.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @Flag(help: "Draw with ASCII characters; the default if the locale is not UTF-8.")
  var plain = false

  func run() async throws {
    try await withBroker { broker in
      let description = try await broker.describeApplication(application)
      let drawing = TreeDrawing(
        application: description,
        lines: plain || !Terminal.isUTF8 ? .ascii : .boxes,
        now: Clock.now
      )
      try output.show(TreeJSON(application: description), or: drawing.text(legend: !legend.hidesLegend))
    }
  }
}
