// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct RunCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "run",
    abstract: "Run a program, and restart it after a crash and at every login.",
    usage: """
      restorationctl run [<option> ...] --id <id> -- <program> [<argument> ...]
      restorationctl run [<option> ...] (--list | --forget <id>)
      """,
    discussion: """
      Examples:
        restorationctl run --id notes -- gnome-text-editor notes.txt
        restorationctl run --id notes --replace -- gedit notes.txt
        restorationctl run --list
        restorationctl run --forget notes

      Any program will do. It runs in this directory as the unit
      restoration-run@ID.service, with this PATH and otherwise the environment of
      the user's manager. The command waits until it has lived for a second. If it
      ends by itself with status 0, it is done. If it crashes, it is started again,
      five times a minute at most. If it is stopped, as at logout, it is started at
      the next login. In a graphical session it begins and ends with that, as
      restoration-run-graphical@ID.service.

      Only programs of files in ~/.config/restorationd/run are run. The broker
      records the directory and how the program ended:
      restorationctl tree org.restorationd.run
      """
  )

  @OptionGroup var options: CommonOptions

  @Option(help: ArgumentHelp("A name for the program.", valueName: "id"), transform: RunID.read)
  var id: RunID?

  @Flag(help: "Replace the program with this ID, and start it again.")
  var replace = false

  @Flag(help: "List the programs.")
  var list = false

  @Option(
    help: ArgumentHelp("Stop a program, and never start it again.", valueName: "id"),
    completion: .programs,
    transform: RunID.read
  )
  var forget: RunID?

  /// Used by the unit, to execute the program.
  @Option(help: .private, transform: RunID.read)
  var become: RunID?

  /// Used by the unit, after the program has ended.
  @Option(help: .private, transform: RunID.read)
  var ended: RunID?

  @Argument(
    parsing: .postTerminator,
    help: ArgumentHelp("The program, by its path or PATH, and its arguments.", valueName: "program"),
    completion: .file()
  )
  var command: [String] = []

  func validate() throws {
    let forms = [id != nil, list, forget != nil, become != nil, ended != nil]
    guard forms.count(where: { $0 }) == 1 else {
      throw ValidationError("Give one of --id with a program, --list and --forget.")
    }
    if id != nil, command.isEmpty { throw ValidationError("Give the program after --: run --id <id> -- <program>") }
    if id == nil, replace || !command.isEmpty { throw ValidationError("A program and --replace need --id.") }
  }

  func run() async throws {
    if let id {
      try await start(id)
    } else if let become {
      try Self.turn(into: become)
    } else if let ended {
      try await end(ended)
    } else if let forget {
      try await remove(forget)
    } else {
      try printList()
    }
  }

  // MARK: What the user does

  private func start(_ id: RunID) async throws {
    let hasDisplay = Terminal.variable("WAYLAND_DISPLAY") != nil || Terminal.variable("DISPLAY") != nil
    let isGraphical =
      hasDisplay && (try? UserUnits.systemctl("--quiet is-active graphical-session.target")) != nil
    let wanted = try RunProgram(command, isGraphical: isGraphical)
    let files = try RunFiles()
    let begin = RunStart.now
    let program = try files.locked { () -> RunProgram in
      // A file that others can write is not replaced, so that a person can look at it.
      let former = try files.read(id)
      if var former, !replace {
        guard former.runsTheSame(as: wanted) else { throw Self.taken(id, former) }
        if former.path != wanted.path {
          former.path = wanted.path
          try files.write(former, id)
        }
        try UserUnits.enable(id, isGraphical: former.isGraphical, restarts: false)
        return former
      }
      try files.write(wanted, id)
      do {
        try UserUnits.enable(id, isGraphical: isGraphical, restarts: replace)
      } catch {
        if let former { try files.write(former, id) } else { _ = try files.remove(id) }
        throw error
      }
      return wanted
    }
    let unit = id.unit(isGraphical: program.isGraphical)
    let verdict = UserUnits.awaitStart(of: unit, after: begin)
    // A program that is done has no file.
    let isDone = try verdict == .isOver && files.read(id) == nil
    let what: String
    switch verdict {
    case .lives: what = "runs, and is restarted after a crash and at login. See it: systemctl --user status \(unit)"
    case .undecided: what = "is being started. See it: systemctl --user status \(unit)"
    case .isOver where isDone: what = "has ended with status 0, so it is done and not started again."
    case .isOver: throw Self.ended(id, unit, "was stopped")
    case .failed(let how): throw Self.ended(id, unit, how.map { "has ended \($0)" } ?? "has failed")
    }
    try output.confirm(ListedProgram(id: id, state: nil, program: program), or: "\(id) \(what)")
    // The unit has reported the end to the broker.
    if isDone { return }
    try await RunRecord(id: id, directory: program.directory, ending: nil).keep(connection)
  }

  private static func taken(_ id: RunID, _ program: RunProgram) -> Failure {
    let message = "\(id) runs \(program.command) in \(program.directory)"
    return Failure(ExitStatus.refused, kind: "exists", message, hint: "Choose another ID, or use --replace.")
  }

  private static func ended(_ id: RunID, _ unit: String, _ how: String) -> Failure {
    let hint =
      "See why: journalctl --user -u \(unit). Mend it and run it again, or end it: restorationctl run --forget \(id)"
    return Failure(ExitStatus.refused, kind: "ended", "\(id) \(how) before it had lived for a second", hint: hint)
  }

  private func remove(_ id: RunID) async throws {
    let files = try RunFiles()
    let isKnown = try files.locked { () -> Bool in
      let isKnown = try files.remove(id)
      try UserUnits.disable(id)
      return isKnown
    }
    try UserUnits.systemctl("--quiet stop \(id.units)")
    UserUnits.reset(id)
    do {
      try await withBroker { broker in
        try await broker.call(UnregisterObject(object: .path([id.description])), of: RunRecord.application)
      }
    } catch let failure as Failure {
      guard isKnown else {
        guard failure.status == ExitStatus.notThere else { throw failure }
        let hint = "restorationctl run --list shows the known ones."
        throw Failure(ExitStatus.notThere, kind: "unknownProgram", "nothing is run as \(id)", hint: hint)
      }
      // The program will not run again, as requested; the broker's record is for people only.
      if failure.status != ExitStatus.notThere {
        let again = "To remove it as well, do the same once a broker runs."
        Output.complain("the broker's record of \(id) stays: \(failure.message)".printable + "\n  \(again)")
      }
    }
    try output.confirm(PrintedObject { $0.member("id", id.description) }, or: "Forgot \(id).")
  }

  private func printList() throws {
    let files = try RunFiles()
    var programs: [(id: RunID, program: RunProgram)] = []
    for id in try files.ids() {
      do {
        if let program = try files.read(id) { programs.append((id, program)) }
      } catch let failure as Failure {
        Output.complain(failure.message.printable)
      }
    }
    let units = programs.map { $0.id.unit(isGraphical: $0.program.isGraphical) }.joined(separator: " ")
    let states = units.isEmpty ? nil : try? UserUnits.systemctl("show --value --property=ActiveState \(units)")
    // Without a manager there are no states.
    let words = (states ?? "").split(separator: "\n").map(String.init) + programs.map { _ in "unknown" }
    let listed = zip(programs, words).map { ListedProgram(id: $0.id, state: $1, program: $0.program) }
    if let layout = output.layout { return try layout.show(PrintedObject { $0.member("programs", listed) }) }
    var table = TextTable(["ID", "STATE", "DIRECTORY", "COMMAND"].map { TextTable.Column($0) })
    for item in listed {
      table.add([item.id.description, item.state ?? "", item.program.directory, item.program.command])
    }
    try Output.show(table.text(counting: "program", legend))
  }

  // MARK: What the unit does

  /// Executes the program in place of this one; returns only by throwing. Does not wait for the broker.
  private static func turn(into id: RunID) throws {
    let program: RunProgram
    do {
      guard let found = try RunFiles().read(id) else {
        throw Failure(ExitStatus.refused, kind: "unknownProgram", "nothing is run as \(id)")
      }
      program = found
    } catch var failure as Failure {
      failure.status = ExitCode(RunEnding.Status.invalid)
      throw failure
    }
    guard chdir(program.directory) == 0 else {
      throw unusable(program.directory, RunEnding.Status.directory, "Make it again, or use --replace elsewhere.")
    }
    // The program would inherit signals that the runtime blocks or this tool ignores.
    var none = sigset_t()
    sigemptyset(&none)
    pthread_sigmask(SIG_SETMASK, &none, nil)
    signal(SIGPIPE, SIG_DFL)
    if let path = program.path { setenv("PATH", path, 1) }
    let words = program.arguments.map { strdup($0) } + [nil]
    execv(program.arguments[0], words)
    throw unusable(program.arguments[0], RunEnding.Status.program, "Install it again, or use --replace.")
  }

  private static func unusable(_ path: String, _ status: Int32, _ hint: String) -> Failure {
    let message = "\(path) cannot be used: \(String(cString: strerror(errno)))"
    return Failure(ExitCode(status), kind: "unusable", message, hint: hint)
  }

  private func end(_ id: RunID) async throws {
    guard let ending = RunEnding(Terminal.variable) else { return }
    let files = try RunFiles()
    let program = try files.locked { () -> RunProgram? in
      // With a job the unit is being stopped or started again by request, so the program comes back whatever its
      // status.
      guard !UserUnits.hasJob(id), let program = try files.read(id) else { return nil }
      if ending.isDone {
        _ = try files.remove(id)
        try UserUnits.disable(id)
      }
      return program
    }
    guard let program else { return }
    if ending.hasFailed {
      Output.complain(ending.message(of: id, unit: id.unit(isGraphical: program.isGraphical)))
    }
    try await RunRecord(id: id, directory: program.directory, ending: ending).keep(connection)
  }
}

private struct ListedProgram: JSONWritable {
  let id: RunID
  /// The manager's word; `nil` if it was not asked.
  let state: String?
  let program: RunProgram

  func writeJSON(to writer: inout JSONWriter) {
    writer.object { writer in
      writer.member("id", id.description)
      writer.member("unit", id.unit(isGraphical: program.isGraphical))
      writer.member("state", ifPresent: state)
      program.writeMembers(to: &writer)
    }
  }
}
