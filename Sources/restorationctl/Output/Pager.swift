// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// A program that shows text page by page.
struct Pager {
  private let command: String

  /// `$RESTORATIOND_PAGER`, else `$PAGER`, else less; nil where standard output is no terminal, cannot scroll, or the
  /// variable says that none is wanted by being empty or `cat`.
  static var usual: Pager? {
    guard Terminal.isOutput, !Terminal.isDumb else { return nil }
    let command = (getenv("RESTORATIOND_PAGER") ?? getenv("PAGER")).map { String(cString: $0) } ?? "less"
    guard !command.isEmpty, command != "cat" else { return nil }
    return Pager(command: command)
  }

  /// Shows the text and waits until the person has read enough of it; false where the program cannot be started.
  func show(_ text: String) -> Bool {
    // As systemctl has it: quit where all fits on a screen, show colours, chop lines, be verbose, leave the text there,
    // and quit on an interrupt.
    let charset = Terminal.isUTF8 ? "LESSCHARSET=utf-8; " : ""
    let line = "LESS=FRSXMK; \(charset)export LESS LESSCHARSET; \(command)"
    // The program inherits what is ignored, and expects to be ended by these.
    signal(SIGPIPE, SIG_DFL)
    let stream = popen(line, "we")
    signal(SIGPIPE, SIG_IGN)
    guard let stream else { return false }
    // An interrupt is for the pager.
    signal(SIGINT, SIG_IGN)
    signal(SIGQUIT, SIG_IGN)
    // Who leaves the pager early has seen what they wanted.
    _ = Output.write(text, descriptor: fileno(stream))
    let status = pclose(stream)
    signal(SIGINT, SIG_DFL)
    signal(SIGQUIT, SIG_DFL)
    // The shell's words for a command that is not there, or is none.
    let exit = (status >> 8) & 0xff
    return status >= 0 && exit != 127 && exit != 126
  }
}
