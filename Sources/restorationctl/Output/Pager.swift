// SPDX-License-Identifier: Apache-2.0

internal import Glibc

struct Pager {
  private let command: String

  /// `$RESTORATIOND_PAGER`, otherwise `$PAGER`, otherwise less. `nil` if standard output is not a terminal or cannot
  /// scroll, or the variable is empty or `cat`.
  static var usual: Pager? {
    guard Terminal.isOutput, !Terminal.isDumb else { return nil }
    let command = (getenv("RESTORATIOND_PAGER") ?? getenv("PAGER")).map { String(cString: $0) } ?? "less"
    guard !command.isEmpty, command != "cat" else { return nil }
    return Pager(command: command)
  }

  /// Returns when the user leaves the pager; false if the program cannot be started.
  func show(_ text: String) -> Bool {
    // As for systemctl: quit if all fits on a screen, show colours, chop lines, be verbose, leave the text there, and
    // quit on an interrupt. A chopped line does not fit, so that less would wait for a key.
    let flags = Terminal.fits(text) ? "FRXMK" : "FRSXMK"
    let charset = Terminal.isUTF8 ? "LESSCHARSET=utf-8; " : ""
    let line = "LESS=\(flags); \(charset)export LESS LESSCHARSET; \(command)"
    // The program inherits ignored signals, but expects to be ended by these.
    signal(SIGPIPE, SIG_DFL)
    let stream = popen(line, "we")
    signal(SIGPIPE, SIG_IGN)
    guard let stream else { return false }
    // An interrupt is for the pager.
    signal(SIGINT, SIG_IGN)
    signal(SIGQUIT, SIG_IGN)
    // A reader who leaves the pager early has seen enough.
    _ = Output.write(text, descriptor: fileno(stream))
    let status = pclose(stream)
    signal(SIGINT, SIG_DFL)
    signal(SIGQUIT, SIG_DFL)
    // The shell's statuses for a missing or non-executable command.
    let exit = (status >> 8) & 0xff
    return status >= 0 && exit != 127 && exit != 126
  }
}
