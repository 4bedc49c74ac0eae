// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

/// How the data of a command is shown.
struct OutputOptions: ParsableArguments {
  enum JSONForm: String, CaseIterable, ExpressibleByArgument {
    case short, pretty, off
  }

  @Option(help: ArgumentHelp("Show JSON: short (one line), pretty, or off.", valueName: "form"))
  var json: JSONForm?

  @Flag(name: .short, help: "Show JSON: pretty on a terminal, short in a pipe.")
  var j = false

  @Flag(name: [.customShort("q"), .customLong("quiet")], help: "Do not say what was done if all was done.")
  var isQuiet = false

  @Flag(name: .long, help: "Do not shorten columns to the width of the terminal.")
  var full = false

  @Flag(name: .customLong("no-pager"), help: "Do not show long output in a pager.")
  var hidesPager = false

  /// The layout that was asked for; `nil` if people are to read it.
  var layout: JSONLayout? {
    switch json {
    case .short: .compact
    case .pretty: .pretty
    case .off: nil
    case nil: j ? Self.usualLayout : nil
    }
  }

  /// Prints a value if JSON was asked for, otherwise the text.
  func print(_ value: some JSONWritable, or text: @autoclosure () -> String) throws {
    try layout?.print(value) ?? Output.print(text())
  }

  /// The same, in a pager if that is of use.
  func show(_ value: some JSONWritable, or text: @autoclosure () -> String) throws {
    try layout?.show(value) ?? Output.show(text())
  }

  /// The same, of what is shown again and again.
  func refresh(_ value: some JSONWritable, or text: @autoclosure () -> String) throws {
    try layout?.print(value) ?? Screen.show(text())
  }

  /// Prints a value if JSON was asked for, otherwise a sentence about what was done: without a line feed, and with
  /// names as they are.
  func confirm(_ value: some JSONWritable, or sentence: @autoclosure () -> String) throws {
    if says(isDone: true) { try print(value, or: sentence().printable + "\n") }
  }

  /// Whether to say what became of a command.
  func says(isDone: Bool) -> Bool { layout != nil || !isQuiet || !isDone }

  /// Pretty on a terminal, short in a pipe.
  static var usualLayout: JSONLayout { Terminal.isOutput ? .pretty : .compact }

  /// The options apply to the whole process: errors and tables need them too, wherever they come from.
  func validate() { Output.settings = Output.Settings(layout: layout, isFull: full, allowsPager: !hidesPager) }
}

/// Whether tables have a header and a count.
struct LegendOptions: ParsableArguments {
  @Flag(name: .customLong("no-legend"), help: "Leave out headers and the lines below the data.")
  var hidesLegend = false
}

extension JSONLayout {
  func print(_ value: some JSONWritable) throws { try Output.print(lay(out: value.text.string) + "\n") }

  /// The same, in a pager if that is of use.
  func show(_ value: some JSONWritable) throws { try Output.show(lay(out: value.text.string) + "\n") }

  func print(_ jsonText: String) throws { try Output.print(lay(out: try JSONLayout.compact.format(jsonText)) + "\n") }

  /// The same, in a pager if that is of use.
  func show(_ jsonText: String) throws { try Output.show(lay(out: try JSONLayout.compact.format(jsonText)) + "\n") }

  /// Lays out JSON text that is known to be compact and right. For a terminal, what would steer it is escaped.
  func lay(out compactText: String) -> String {
    let text = self == .pretty ? PrettyJSON.lay(out: compactText) : compactText
    return Terminal.isOutput ? text.printableJSON : text
  }
}
