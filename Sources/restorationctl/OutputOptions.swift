// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient

/// How the data of a command is shown.
struct OutputOptions: ParsableArguments {
  enum JSONForm: String, CaseIterable, ExpressibleByArgument {
    case short, pretty, off
  }

  @Option(help: ArgumentHelp("Show JSON: short (one line), pretty, or off.", valueName: "form"))
  var json: JSONForm?

  @Flag(name: .short, help: "Show JSON: pretty on a terminal, short in a pipe.")
  var j = false

  /// The layout that was asked for; nil where people are to read it.
  var layout: JSONLayout? {
    switch json {
    case .short: .compact
    case .pretty: .pretty
    case .off: nil
    case nil: j ? Self.usualLayout : nil
    }
  }

  /// Pretty on a terminal, short in a pipe.
  static var usualLayout: JSONLayout { Output.isTerminal ? .pretty : .compact }
}

/// Whether tables have a header and a count.
struct LegendOptions: ParsableArguments {
  @Flag(name: .customLong("no-legend"), help: "Leave out the table's header and the count below it.")
  var hidesLegend = false
}

extension JSONLayout {
  /// Prints JSON text in this layout.
  func print(_ jsonText: String) throws {
    try Output.print(try format(jsonText) + "\n")
  }
}
