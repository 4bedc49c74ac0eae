// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc

/// A program of terminals that can be made to come back, with what does it.
enum Restorer: String, CaseIterable, ExpressibleByArgument {
  case bash, zsh, fish, tmux, vim, neovim, emacs

  var name: String {
    switch self {
    case .bash: "Bash"
    case .zsh: "zsh"
    case .fish: "fish"
    case .tmux: "tmux"
    case .vim: "Vim"
    case .neovim: "Neovim"
    case .emacs: "Emacs"
    }
  }

  var program: String { self == .neovim ? "nvim" : rawValue }

  /// Whether the user has the program.
  var isUsed: Bool { RunProgram.isFound(program) }

  /// A program that it needs and that is missing, and the effect of that.
  var lack: String? {
    switch self {
    case .zsh, .fish:
      RunProgram.isFound("bash") ? Restorer.bash.lack : "shell-keeper.bash, which \(name) begins, needs bash"
    case .bash where !RunProgram.isFound("jq"): "without jq, only shells in tmux and in windows come back"
    case .tmux where !RunProgram.isFound("python3"): "tmux.py needs python3"
    case .bash, .tmux, .vim, .neovim, .emacs: nil
    }
  }

  /// Its file or folder in the directory of the restorers.
  private var source: String {
    switch self {
    case .bash, .zsh, .fish: "terminal/shell.\(rawValue)"
    case .tmux: "terminal/tmux.py"
    case .vim, .neovim, .emacs: rawValue
    }
  }

  /// The change of the user's settings that makes the program come back.
  ///
  /// - Parameter sources: the directory of the restorers.
  func place(from sources: String) throws -> SettingsPlace {
    let source = "\(sources)/\(source)"
    guard access(source, R_OK) == 0 else {
      let hint = "Install the package restoration-terminal, or give it by --from: Protocol/examples of the sources."
      throw Failure(ExitStatus.notThere, kind: "usage", "\(source) is not there", hint: hint)
    }
    return try place(of: source)
  }

  /// - Parameter source: without meaning for what only looks or removes.
  func place(of source: String = "") throws -> SettingsPlace {
    let home = try Self.home()
    func lines(_ file: String, _ comment: String, _ lines: String..., mark: String) -> SettingsPlace {
      SettingsPlace(path: file, content: .lines(SettingsBlock(comment: comment, lines: lines), mark: mark))
    }
    // What was uninstalled must not break what reads the settings.
    switch self {
    case .bash:
      return lines("\(home)/.bashrc", "#", "[ ! -r '\(source)' ] || . '\(source)'", mark: "shell.bash")
    case .zsh:
      let file = "\(Self.directory("ZDOTDIR", home))/.zshrc"
      return lines(file, "#", "[ ! -r '\(source)' ] || . '\(source)'", mark: "shell.zsh")
    case .fish:
      let file = "\(Self.directory("XDG_CONFIG_HOME", "\(home)/.config"))/fish/config.fish"
      return lines(file, "#", "test -r '\(source)'; and source '\(source)'", mark: "shell.fish")
    case .tmux:
      let files = ["\(home)/.tmux.conf", "\(Self.directory("XDG_CONFIG_HOME", "\(home)/.config"))/tmux/tmux.conf"]
      let command = "run-shell \"[ ! -x '\(source)' ] || exec '\(source)'\""
      return Self.chosen(of: files.map { lines($0, "#", command, mark: "tmux.py") })
    case .vim:
      return SettingsPlace(path: "\(home)/.vim/\(Self.package)", content: .link(to: source))
    case .neovim:
      let data = Self.directory("XDG_DATA_HOME", "\(home)/.local/share")
      return SettingsPlace(path: "\(data)/nvim/site/\(Self.package)", content: .link(to: source))
    case .emacs:
      let files = [
        "\(home)/.emacs", "\(home)/.emacs.el", "\(home)/.emacs.d/init.el",
        "\(Self.directory("XDG_CONFIG_HOME", "\(home)/.config"))/emacs/init.el",
      ]
      let path = "(add-to-list 'load-path \"\(source)\")"
      let start = "(when (require 'restoration nil t) (restoration-mode 1))"
      return Self.chosen(of: files.map { lines($0, ";;", path, start, mark: "(require 'restoration") })
    }
  }

  /// Whether the Debian package vim-restorationd has it for all users.
  var isForAllUsers: Bool {
    switch self {
    case .vim: access("/usr/share/vim/vimfiles/pack/dist-bundle/start/restoration", F_OK) == 0
    case .neovim: access("/usr/share/nvim/site/pack/dist-bundle/start/restoration", F_OK) == 0
    case .bash, .zsh, .fish, .tmux, .emacs: false
    }
  }

  /// Whether it was set up, by this tool or by hand.
  var isSetUp: Bool { isForAllUsers || (try? place().isInstalled) == true }

  /// A package of Vim that is loaded at each start.
  private static let package = "pack/restoration/start/restoration"

  private static func home() throws -> String {
    guard let home = Terminal.variable("HOME"), home.hasPrefix("/") else {
      throw Failure(
        ExitStatus.usage,
        kind: "usage",
        "HOME names no directory",
        hint: "Set it to your home directory."
      )
    }
    var status = stat()
    guard stat(home, &status) == 0, status.st_uid == geteuid() else {
      let hint = "Run this as the user whose settings are to change, with HOME set."
      throw Failure(ExitStatus.refused, kind: "unusable", "\(home.printable) is not your home directory", hint: hint)
    }
    return home
  }

  private static func directory(_ variable: String, _ usual: String) -> String {
    Terminal.variable(variable).flatMap { $0.hasPrefix("/") ? $0 : nil } ?? usual
  }

  /// The file that has lines of this tool, else the first that exists.
  private static func chosen(of places: [SettingsPlace]) -> SettingsPlace {
    places.first(where: \.hasBlock) ?? places.first { access($0.path, F_OK) == 0 } ?? places[0]
  }

  /// The directory of the restorers: the given one, otherwise that of the installed tool, or of the release's archive
  /// in which it runs.
  static func sources(_ given: String?) throws -> String {
    let own = Tool.prefix.map { ["\($0)/share/restorationd/restorers", "\($0)/restorers"] } ?? []
    let installed = own + ["/usr/local/share/restorationd/restorers", "/usr/share/restorationd/restorers"]
    let found = given ?? installed.first { access("\($0)/terminal", F_OK) == 0 }
    guard let found, let bytes = realpath(found, nil) else {
      throw Failure(
        ExitStatus.notThere,
        kind: "usage",
        "the restorers of a terminal are not in \(given ?? installed[0])",
        hint: "Install the package restoration-terminal, or give it by --from: Protocol/examples of the sources."
      )
    }
    defer { free(bytes) }
    let path = String(cString: bytes)
    // Each of the settings quotes it in its own way.
    if path.contains(where: { "'\"\\$#`%".contains($0) }) || path.printable != path {
      let hint = "Copy them to a directory whose name has no quotes and none of \\ $ # ` %."
      throw Failure(ExitStatus.usage, kind: "usage", "settings cannot name \(path)", hint: hint)
    }
    return path
  }
}

/// This program.
enum Tool {
  /// Its file, without links.
  static let path: String? = {
    guard let bytes = realpath("/proc/self/exe", nil) else { return nil }
    defer { free(bytes) }
    return String(cString: bytes)
  }()

  static let directory = path.map { $0.split(separator: "/").dropLast().reduce("") { "\($0)/\($1)" } }

  /// The directory that has `bin` with the tool; `nil` if it is not installed.
  static let prefix: String? = directory.flatMap { $0.hasSuffix("/bin") ? String($0.dropLast("/bin".count)) : nil }
}
