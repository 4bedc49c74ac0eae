// SPDX-License-Identifier: Apache-2.0

internal import Glibc

enum Ending: Error {
  /// A question on the command line was answered.
  case answered(String)
  case refused(String)
  /// The cause is in the log; this is the exit status.
  case logged(Int32)

  func end() -> Never {
    switch self {
    case .answered(let text):
      print(text)
      exit(EXIT_SUCCESS)
    case .refused(let reason):
      let text = "Error: \(reason)\nUsage: \(Options.usage)\n  See 'restorationd --help' for more information.\n"
      _ = write(STDERR_FILENO, text, text.utf8.count)
      exit(EX_USAGE)
    case .logged(let status): exit(status)
    }
  }
}
