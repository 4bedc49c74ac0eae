// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A question to the person at the terminal.
enum Question {
  /// Whether the answer is yes. Everything else is no, also the end of input.
  static func confirms(_ text: String) -> Bool {
    Output.write("\(text) [y/N] ", to: .messages)
    let answer = TimeLimit.suspended { readLine(strippingNewline: true) }
    return ["y", "yes"].contains(answer?.lowercased())
  }
}
