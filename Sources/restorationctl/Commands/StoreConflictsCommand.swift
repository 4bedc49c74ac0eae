// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct StoreConflictsCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "conflicts",
    abstract: "Look after copies that this host has set aside.",
    usage: "restorationctl store conflicts [<option> ...] [<command>]",
    discussion: "Commands that only read take the name of a copy as <application>.",
    subcommands: [
      ConflictsListCommand.self, ConflictsShowCommand.self, ConflictsRestoreCommand.self, ConflictsRemoveCommand.self,
    ],
    defaultSubcommand: ConflictsListCommand.self
  )

  @OptionGroup var options: CommonOptions
}

struct ConflictsListCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "list",
    abstract: "List the copies that this host has set aside.",
    usage: "restorationctl store conflicts list [<option> ...] [<application>]",
    discussion: """
      Examples:
        restorationctl store conflicts list
        journalctl --user MESSAGE_ID=edbf023525ac4c5489589b3940cd6435

      A copy has what only this host had when another host had written or forgotten
      the application, or the fleet's store was put back. The journal says which.
      SINCE is its age, MODIFIED that of its newest state.
      """
  )

  @OptionGroup var options: AnyApplicationOptions

  func run() async throws {
    try await withBroker { broker in
      let application = try options.application.map { try ApplicationName(sending: $0) }
      var table = TextTable([
        TextTable.Column("COPY", minimum: nil), TextTable.Column("SINCE", .right), TextTable.Column("OBJECTS", .right),
        TextTable.Column("MODIFIED", .right),
      ])
      var copies: [PrintedObject] = []
      let found = try await broker.call(ReportReplica(application: application)).applications
      if let application, found.isEmpty { try await requireKnown(application, broker) }
      for copy in found.flatMap(\.conflicts) {
        let objects = try? await broker.describeApplication(copy.application.description).objects
        let newest = objects?.compactMap(\.modified?.milliseconds).max().map { Timestamp(milliseconds: $0) }
        let ages = [copy.since, newest].map { $0.map { Quantity.age(Clock.now - $0.milliseconds) } ?? "-" }
        table.add([copy.application.description, ages[0], objects.map { String($0.count) } ?? "-", ages[1]])
        copies += [
          PrintedObject { writer in
            copy.writeMembers(to: &writer)
            writer.member("objects", objects?.count)
            writer.member("modified", newest)
          }
        ]
      }
      try output.show(PrintedObject { $0.member("copies", copies) }, or: table.text(counting: "conflict", legend))
    }
  }

  /// A command that is misspelt is taken for an application.
  private func requireKnown(_ application: ApplicationName, _ broker: BrokerConnection) async throws {
    let known = try await broker.call(ListApplications()).applications.map(\.application.base)
    guard !known.contains(application.base) else { return }
    let commands = StoreConflictsCommand.configuration.subcommands.compactMap { $0.configuration.commandName }
    let near = Suggestion.nearest(to: application.description, in: commands + known)
    throw Failure(
      ExitStatus.notThere,
      kind: ErrorCode.unknownApplication.description,
      "\(application) is neither an application nor a command of store conflicts",
      hint: "\(near.map { "Did you mean \($0)? " } ?? "")The commands are \(Suggestion.list(commands))."
    )
  }
}

struct CopyOptions: ControlOptions {
  @OptionGroup var shared: SharedOptions

  @Argument(help: "The copy: org.example.Notes+conflict-1.", completion: .copies, transform: Self.read)
  var copy: ApplicationName

  var subject: String? { copy.description }

  private static func read(_ text: String) throws -> ApplicationName {
    if let name = ApplicationName(text), name.isSetAside { return name }
    throw ValidationError("'\(text)' is no copy that was set aside: restorationctl store conflicts lists them")
  }
}

extension Failure {
  /// Refuses to change a copy, in the broker's words, before a person has edited or confirmed anything.
  static func checkChangeable(_ application: String) throws {
    guard ApplicationName(application)?.isSetAside == true else { return }
    let hint = "restorationctl store conflicts restore \(application) makes it the present state of its application."
    let message = "\(application) was set aside: it can only be read, and forgotten"
    var failure = Failure(ExitStatus.refused, kind: ErrorCode.forbidden.description, message, hint: hint)
    failure.code = ErrorCode.forbidden.rawValue
    throw failure
  }
}

extension ControlCommand where Options == CopyOptions {
  fileprivate var copy: String { options.copy.description }
  fileprivate var application: String { String(copy.prefix { $0 != "+" }) }
}

struct ConflictsShowCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "show",
    abstract: "Show what restoring a copy would change.",
    usage: "restorationctl store conflicts show [<option> ...] <copy>",
    discussion: """
      Examples:
        restorationctl store conflicts show org.example.Notes+conflict-1

      An object that only the copy has is added, one that it lacks is removed.
      """
  )

  @OptionGroup var options: CopyOptions

  func run() async throws {
    try await withBroker { broker in
      let (kept, present) = (try await objects(of: copy, broker), try await objects(of: application, broker))
      let difference = try GenerationDifference(from: present, to: kept)
      let printed = PrintedObject { writer in
        writer.member("application", copy)
        difference.writeMembers(to: &writer)
      }
      let table = difference.isEmpty ? "" : DiffCommand.table(of: difference).text(header: !legend.hidesLegend) + "\n"
      try output.show(printed, or: table + (legend.hidesLegend ? "" : "Restoring it: \(difference.counts).\n"))
    }
  }

  /// With confidential states, to compare them. The application may be gone.
  private func objects(of application: String, _ broker: BrokerConnection) async throws -> [ArchivedObject] {
    var objects: [ArchivedObject] = []
    do {
      for try await object in broker.readArchive(of: application, reveal: true) { objects.append(object) }
    } catch let error as RestorationError where error.code == .unknownApplication && application != copy {}
    return objects
  }
}

extension GenerationDifference {
  /// Between objects of two archives, whose states are compared as texts.
  fileprivate init(from: [ArchivedObject], to: [ArchivedObject]) throws {
    self.init()
    var former = Dictionary(from.map { ($0.path, $0) }) { first, _ in first }
    added = to.map(\.path).filter { former[$0] == nil }
    for object in to {
      guard let before = former.removeValue(forKey: object.path) else { continue }
      let (old, new) = (try before.members(), try object.members())
      let keys = Set(old.keys).union(new.keys).filter { old[$0] != new[$0] }
      let change = ObjectDifference().with {
        $0.path = object.path
        $0.redacted = before.confidential || object.confidential
        $0.elements = before.elementsText != object.elementsText
        $0.keys = $0.redacted ? [] : keys.sorted()
      }
      if !keys.isEmpty || change.elements || before.status != object.status { changed.append(change) }
    }
    removed = from.map(\.path).filter { former[$0] != nil }
  }
}

extension ArchivedObject {
  fileprivate func members() throws -> [String: JSONText] {
    let state = try stateText.map { try JSONSlice.read(sent: $0.string, subject: "the state") }
    return (state?.members ?? []).reduce(into: [:]) { $0[$1.name] = $1.value.compactText }
  }
}

struct ConflictsRestoreCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Make a copy the present state of its application.",
    usage: "restorationctl store conflicts restore [<option> ...] <copy>",
    discussion: """
      Examples:
        restorationctl store conflicts restore org.example.Notes+conflict-1
        restorationctl rollback org.example.Notes 7

      Saved state of the application stays as its newest generation: roll back to
      it to undo this. The application must not be running. The copy stays.
      """
  )

  @OptionGroup var options: CopyOptions

  func run() async throws {
    try await withBroker { broker in
      let imported = try await ProgressLine.during("restoring") { progress in
        let document = try await broker.exportArchive(of: copy, reveal: true, progress: progress)
        return try await broker.importArchive(document, into: application, force: true, progress: progress)
      }
      try output.confirm(imported, or: ImportCommand.sentence(of: imported, application))
    }
  }
}

struct ConflictsRemoveCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "remove",
    abstract: "Remove a copy that was set aside.",
    usage: "restorationctl store conflicts remove [<option> ...] <copy>",
    discussion: """
      Examples:
        restorationctl store conflicts remove org.example.Notes+conflict-1 --yes
      """
  )

  @OptionGroup var options: CopyOptions

  @Flag(help: "Do not ask.")
  var yes = false

  func validate() throws {
    if !yes, !Terminal.canAsk {
      throw ValidationError("removing a copy cannot be undone, and this is not a terminal to ask on: use --yes")
    }
  }

  func run() async throws {
    try await withBroker { broker in
      if !yes, !Question.confirms("Remove \(copy), and what only it has?") {
        throw Failure(ExitStatus.refused, kind: "declined", "nothing was removed", hint: "--yes does not ask.")
      }
      try await broker.call(ForgetApplication(), of: copy)
      try output.confirm(PrintedObject { $0.member("application", copy) }, or: "Removed \(copy).")
    }
  }
}
