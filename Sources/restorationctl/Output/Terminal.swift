// SPDX-License-Identifier: Apache-2.0

internal import Glibc

enum Terminal {
  /// Whether a person is likely to read the data.
  static var isOutput: Bool { isatty(STDOUT_FILENO) == 1 }

  /// Whether a person is likely to read the messages.
  static var hasReader: Bool { isatty(STDERR_FILENO) == 1 }

  static var canAsk: Bool { isatty(STDIN_FILENO) == 1 && hasReader }

  /// `$COLUMNS`, otherwise the terminal's columns, otherwise 80; `nil` without a terminal.
  static var columns: Int? {
    if let columns = variable("COLUMNS").flatMap({ Int($0) }), columns > 0 { return columns }
    guard isOutput else { return nil }
    return size.flatMap { $0.ws_col > 0 ? Int($0.ws_col) : nil } ?? 80
  }

  /// `nil` if unknown.
  static var rows: Int? { size.flatMap { $0.ws_row > 2 ? Int($0.ws_row) : nil } }

  /// Whether the whole text with its broken lines and a prompt below fits.
  static func fits(_ text: String) -> Bool {
    guard let rows, let columns else { return false }
    // A longer text takes long to measure and fits no terminal.
    guard text.utf8.count < 65_536 else { return false }
    let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
    return lines.reduce(0) { $0 + max(1, ($1.unpainted.columns + columns - 1) / columns) } <= rows
  }

  private static var size: winsize? {
    var size = winsize()
    return ioctl(STDOUT_FILENO, UInt(TIOCGWINSZ), &size) == 0 ? size : nil
  }

  static let isDumb = (variable("TERM") ?? "dumb") == "dumb"

  /// Whether to use colours: on a capable terminal, unless `$NO_COLOR` is set and not empty (no-color.org).
  static let hasColour = isOutput && !isDumb && variable("NO_COLOR") == nil

  /// By the locale's variables.
  static let isUTF8: Bool = {
    let locale = variable("LC_ALL") ?? variable("LC_CTYPE") ?? variable("LANG") ?? ""
    let charset = locale.split(separator: ".", maxSplits: 1).dropFirst().first?.split(separator: "@").first ?? ""
    return ["utf-8", "utf8"].contains(charset.lowercased())
  }()

  /// `nil` if unset or empty.
  static func variable(_ name: String) -> String? {
    getenv(name).map { String(cString: $0) }.flatMap { $0.isEmpty ? nil : $0 }
  }
}

extension StringProtocol {
  /// The text without the codes of `Colour.paint`.
  fileprivate var unpainted: String { pieces.map(\.text).joined() }

  /// The pieces of a painted text, each with the code before it.
  fileprivate var pieces: [(code: String, text: String)] {
    split(separator: "\u{1b}", omittingEmptySubsequences: false).enumerated().map { index, piece in
      if index == 0 { return ("", String(piece)) }
      let code = piece.prefix { $0 != "m" }
      return ("\u{1b}\(code)m", String(piece.dropFirst(code.count + 1)))
    }
  }
}

extension String {
  /// The first `width` columns of a painted text, with all codes.
  func cut(to width: Int) -> String {
    guard unpainted.columns > width else { return self }
    var left = width
    return pieces.reduce(into: "") { cut, piece in
      let text = piece.text.first(left)
      left = text == piece.text ? left - text.columns : 0
      cut += piece.code + text
    }
  }
}

enum Colour: String {
  case red = "31"
  case green = "32"
  case yellow = "33"
  case blue = "34"
  case magenta = "35"
  case cyan = "36"
  case bold = "1"
  case faint = "2"

  /// The text with the terminal's colour codes, if it has colours.
  func paint(_ text: String) -> String {
    Terminal.hasColour && !text.isEmpty ? "\u{1b}[\(rawValue)m\(text)\u{1b}[0m" : text
  }
}

enum StandardStreams {
  /// Opens closed standard descriptors, so that no other file gets their numbers and receives the output. Each is
  /// opened in the wrong direction, so that its use fails as for a closed one.
  static func reserve() {
    for (descriptor, mode) in [(STDIN_FILENO, O_WRONLY), (STDOUT_FILENO, O_RDONLY), (STDERR_FILENO, O_RDONLY)] {
      // The lowest free number is this one, because all below are in use.
      if fcntl(descriptor, F_GETFD) < 0 { _ = open("/dev/null", mode) }
    }
  }
}

enum Question {
  /// Any answer but yes, and the end of input, means no.
  static func confirms(_ text: String) -> Bool {
    Output.write("\(text.printable) [y/N] ", to: .messages)
    let answer = TimeLimit.suspended { readLine(strippingNewline: true) }
    return ["y", "yes"].contains(answer?.lowercased())
  }
}
