// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Why the process ends instead of serving.
enum Ending: Error {
  /// It was only asked something.
  case answered(String)
  /// The command line or the configuration is invalid.
  case refused(String)
  /// The log says why; this is the exit status.
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
