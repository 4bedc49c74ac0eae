// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
internal import RestorationWire

/// Changes of the user's settings, which are shown before they are made.
struct SettingsPlan {
  struct Step {
    let restorer: Restorer
    let place: SettingsPlace
    let change: SettingsPlace.Change

    var isChange: Bool { change != .none && change != .byHand }
  }

  let steps: [Step]
  let installs: Bool

  static func installing(_ restorers: [Restorer], from sources: String) throws -> SettingsPlan {
    let steps = try restorers.map { restorer in
      let place = try restorer.place(from: sources)
      return Step(restorer: restorer, place: place, change: restorer.isForAllUsers ? .byHand : try place.installing())
    }
    return SettingsPlan(steps: steps, installs: true)
  }

  static func uninstalling(_ restorers: [Restorer]) throws -> SettingsPlan {
    let steps = try restorers.map { restorer in
      let place = try restorer.place()
      return Step(restorer: restorer, place: place, change: try place.uninstalling())
    }
    return SettingsPlan(steps: steps, installs: false)
  }

  private var isEmpty: Bool { !steps.contains(where: \.isChange) }

  /// Shows the changes, asks, and makes them.
  ///
  /// - Parameter isAnswered: whether the answer is yes already.
  func carryOut(_ output: OutputOptions, isDry: Bool, isAnswered: Bool) throws {
    let asks = !isDry && !isEmpty && !isAnswered
    if output.layout == nil, output.says(isDone: true) || asks {
      try Output.print(text)
    } else if asks {
      Output.write(text, to: .messages)
    }
    if !isDry, !isEmpty {
      if asks, !Question.confirms("Change this?") {
        throw Failure(ExitStatus.refused, kind: "declined", "nothing was changed")
      }
      for (index, step) in steps.enumerated() {
        do {
          try carryOut(step)
        } catch var failure as Failure {
          let done = steps[..<index].filter(\.isChange).map(\.restorer.name).joined(separator: ", ")
          if !done.isEmpty { failure.hint = "\(failure.hint ?? "") Changed before it: \(done)." }
          throw failure
        }
      }
      if installs {
        for lack in steps.compactMap(\.restorer.lack) { Output.complain(lack) }
      }
      if asks, output.layout == nil, output.says(isDone: true) {
        try Output.print(installs ? "Done. restorationctl terminal uninstall undoes it.\n" : "Done.\n")
      }
    }
    let document = PrintedObject { writer in
      writer.member("changes", steps)
      writer.member("dryRun", ifTrue: isDry)
    }
    try output.layout?.print(document)
  }

  private func carryOut(_ step: Step) throws {
    // The user may have edited the file since it was read.
    let change = try installs ? step.place.installing() : step.place.uninstalling()
    guard step.change == change || step.change == .byHand else {
      let message = "\(step.place.path.printable) has changed meanwhile, and stays as it is"
      throw Failure(ExitStatus.refused, kind: "changed", message, hint: "Do it again.")
    }
    try step.place.apply(step.change)
  }

  private var text: String {
    let list = steps.map { "\($0.restorer.name): \(sentence(of: $0))\n" }.joined()
    guard !isEmpty else { return list }
    guard installs else { return "\(list)Programs that run already are saved until they end.\n" }
    let kinds = steps.filter(\.isChange).compactMap { TerminalAdapter.Kind(rawValue: $0.restorer.rawValue) }
    let shells = kinds.filter { $0 != .tmux }.map(\.renewal).joined(separator: " or ")
    var ways = shells.isEmpty ? [] : ["\(shells) begins this shell anew"]
    if kinds.contains(.tmux) { ways.append("\(TerminalAdapter.Kind.tmux.renewal) tells a running tmux") }
    let running = ways.isEmpty ? "" : ": \(ways.joined(separator: "; "))"
    return "\(list)Programs read it when they begin\(running).\n"
  }

  private func sentence(of step: Step) -> String {
    let path = step.place.path.printable
    return switch (step.change, step.place.content) {
    case (.none, _): installs ? "\(path) needs no change." : "\(path) has no change to undo."
    case (.byHand, .lines(_, let mark)): "\(path) has \(mark) in a line of yours, and does not change."
    case (.byHand, .link): "it was set up by hand, and does not change."
    case (.write, .lines(let block, _)) where installs:
      "\(path) gets these lines at its end:\n"
        + block.text.split(separator: "\n").map { "  \($0)" }.joined(separator: "\n")
    case (.write, _): "\(path) loses the lines between the two comments of restorationctl."
    case (.link(let target), _): "\(path) becomes a link to \(target)."
    case (.remove, _): "\(path) is removed."
    }
  }
}

extension SettingsPlan.Step: JSONWritable {
  private var word: String {
    switch change {
    case .none: "none"
    case .byHand: "byHand"
    case .write: "lines"
    case .link: "link"
    case .remove: "remove"
    }
  }

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("program", restorer.rawValue)
      writer.member("path", place.path)
      writer.member("change", word)
    }
  }
}
