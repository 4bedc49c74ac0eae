// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct OutputOptions: ParsableArguments {
  enum JSONForm: String, CaseIterable, ExpressibleByArgument {
    case short, pretty, off
  }

  @Option(help: ArgumentHelp("Show JSON: short (one line), pretty, or off.", valueName: "form"))
  var json: JSONForm?

  @Flag(name: .short, help: "Show JSON: pretty on a terminal, short in a pipe.")
  var j = false

  @Flag(name: [.customShort("q"), .customLong("quiet")], help: "Print no message if everything was done.")
  var isQuiet = false

  @Flag(name: .long, help: "Do not shorten columns to the width of the terminal.")
  var full = false

  @Flag(name: .customLong("no-pager"), help: "Do not show long output in a pager.")
  var hidesPager = false

  /// `nil` for output to people.
  var layout: JSONLayout? {
    switch json {
    case .short: .compact
    case .pretty: .pretty
    case .off: nil
    case nil: j ? Self.usualLayout : nil
    }
  }

  /// Prints the value as JSON if requested, otherwise the text.
  func print(_ value: some JSONWritable, or text: @autoclosure () -> String) throws {
    try layout?.print(value) ?? Output.print(text())
  }

  /// As `print`, on a terminal through a pager.
  func show(_ value: some JSONWritable, or text: @autoclosure () -> String) throws {
    try layout?.show(value) ?? Output.show(text())
  }

  /// As `print`, for output that is repeated.
  func refresh(_ value: some JSONWritable, or text: @autoclosure () -> String) throws {
    try layout?.print(value) ?? Screen.show(text())
  }

  /// Prints the value as JSON if requested, otherwise a sentence about the result. The sentence has no line feed, and
  /// its names are printed unchanged.
  func confirm(_ value: some JSONWritable, or sentence: @autoclosure () -> String) throws {
    if says(isDone: true) { try print(value, or: sentence().printable + "\n") }
  }

  /// Whether to print the outcome of a command.
  func says(isDone: Bool) -> Bool { layout != nil || !isQuiet || !isDone }

  /// Pretty on a terminal, compact in a pipe.
  static var usualLayout: JSONLayout { Terminal.isOutput ? .pretty : .compact }

  /// Stored for the whole process, because errors and tables need them as well.
  func validate() { Output.settings = Output.Settings(layout: layout, isFull: full, allowsPager: !hidesPager) }
}

/// Whether tables have a header and a count.
struct LegendOptions: ParsableArguments {
  @Flag(name: .customLong("no-legend"), help: "Leave out headers and the lines below the data.")
  var hidesLegend = false
}

extension JSONLayout {
  func print(_ value: some JSONWritable) throws { try Output.print(lay(out: value.text.string) + "\n") }

  /// On a terminal through a pager.
  func show(_ value: some JSONWritable) throws { try Output.show(lay(out: value.text.string) + "\n") }

  func print(_ jsonText: String) throws { try Output.print(lay(out: try JSONLayout.compact.format(jsonText)) + "\n") }

  /// On a terminal through a pager.
  func show(_ jsonText: String) throws { try Output.show(lay(out: try JSONLayout.compact.format(jsonText)) + "\n") }

  /// Formats valid, compact JSON. For a terminal, control characters are escaped.
  func lay(out compactText: String) -> String {
    let text = self == .pretty ? PrettyJSON.lay(out: compactText) : compactText
    return Terminal.isOutput ? text.printableJSON : text
  }
}
