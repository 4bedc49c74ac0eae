// SPDX-License-Identifier: Apache-2.0

internal import Glibc

/// Findings about units, `PATH`, linger and the terminal.
extension Finding {
  /// Whether the broker begins with the user's session.
  static func ofUnits() -> [Finding] {
    let names = ["restorationd.socket", "restoration-login.service"]
    let properties = "--property=Id,LoadState,ActiveState,UnitFileState"
    guard let text = try? UserUnits.systemctl("show \(properties) \(names.joined(separator: " ")) 2>/dev/null") else {
      let message = "no service manager of yours answers, so the broker does not begin with your session"
      return [.note("units", message, run: "systemctl --user status")]
    }
    let units = text.split(separator: "\n\n").map { block in
      let pairs = block.split(separator: "\n").map { $0.split(separator: "=", maxSplits: 1) }
      return Dictionary(pairs.filter { $0.count == 2 }.map { ($0[0], $0[1]) }) { $1 }
    }
    guard let socket = units.first(where: { $0["Id"] == "restorationd.socket" }), socket["LoadState"] == "loaded" else {
      let message = "restorationd.socket is not installed, so the broker does not begin with your session"
      return [.note("units", message, run: "systemd/install.sh")]
    }
    if socket["UnitFileState"] != "enabled" {
      let message = "restorationd.socket is not enabled, so the broker does not begin with your session"
      return [.trouble("units", message, run: "systemctl --user enable --now restorationd.socket")]
    }
    if socket["ActiveState"] != "active" {
      let command = "systemctl --user reset-failed restorationd.socket restorationd.service"
      let start = "systemctl --user start restorationd.socket"
      let isFailed = socket["ActiveState"] == "failed"
      return [.trouble("units", "restorationd.socket is not active", run: (isFailed ? "\(command); " : "") + start)]
    }
    let login = units.first { $0["Id"] == "restoration-login.service" }
    if login?["UnitFileState"] != "enabled" {
      let message = "restoration-login.service is not enabled, so applications are not restored at login"
      return [.note("units", message, run: "systemctl --user enable --now restoration-login.service")]
    }
    return [.well("units", "enabled and active")]
  }

  /// Whether shells and scripts find this tool.
  static func ofPath() -> Finding {
    guard let tool = Tool.path, let directory = Tool.directory else { return .well("PATH", "restorationctl runs") }
    guard let found = try? RunProgram.find("restorationctl") else {
      let line = "export PATH=\"$PATH\":\(directory.shellWord)"
      return .trouble("PATH", "it does not lead to restorationctl; add to ~/.profile:", run: line)
    }
    let resolved = realpath(found, nil)
    defer { free(resolved) }
    guard resolved.map({ String(cString: $0) }) == tool else {
      return .note(
        "PATH",
        "it leads to another restorationctl than this one, \(tool):",
        run: "ls -l \(found.shellWord)"
      )
    }
    return .well("PATH", found)
  }

  /// Whether programs outlive the user's last session; `nil` without systemd.
  static func ofLinger() -> Finding? {
    guard access("/run/systemd/system", F_OK) == 0, let user = getpwuid(geteuid()) else { return nil }
    let isOn = access("/var/lib/systemd/linger/\(String(cString: user.pointee.pw_name))", F_OK) == 0
    if isOn { return .well("linger", "on: the broker and its programs outlive your sessions") }
    guard Terminal.variable("SSH_CONNECTION") != nil else {
      return .well("linger", "off: the broker ends with your last session")
    }
    let message = "off: the broker, and programs of restorationctl run, end when you leave this host"
    return .note("linger", message, run: "loginctl enable-linger")
  }

  /// The restorers of the terminal around this command, and whether editors have theirs.
  static func ofTerminal() -> [Finding] {
    let runtime = Terminal.variable("XDG_RUNTIME_DIR") ?? ""
    let adapters = TerminalAdapter.all(tmux: Terminal.variable("TMUX"), folder: "\(runtime)/restoration-terminal")
    var (well, missing): ([String], [Restorer]) = ([], [])
    var troubles: [Finding] = []
    for adapter in adapters {
      if adapter.isAtWork, adapter.troubles.isEmpty {
        well.append(adapter.kind.name)
      } else if adapter.isAtWork || adapter.kind.restorer.isSetUp {
        let message = "\(adapter.kind.name): \(adapter.troubles.joined(separator: "; "))"
        let command = adapter.object == nil ? adapter.kind.renewal : "restorationctl terminal status"
        troubles.append(.trouble("terminal", message, run: command))
      } else {
        missing.append(adapter.kind.restorer)
      }
    }
    for editor in [Restorer.vim, .neovim, .emacs] where editor.isUsed {
      if editor.isSetUp { well.append(editor.name) } else { missing.append(editor) }
    }
    if !well.isEmpty { troubles.append(.well("terminal", "set up: \(well.joined(separator: ", "))")) }
    if !missing.isEmpty {
      let message = "not set up: \(missing.map(\.name).joined(separator: ", "))"
      let programs = missing.map(\.rawValue).joined(separator: " ")
      troubles.append(.note("terminal", message, run: "restorationctl terminal install \(programs)"))
    }
    return troubles
  }
}
