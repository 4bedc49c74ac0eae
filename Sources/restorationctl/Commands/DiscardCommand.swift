// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire

struct DiscardCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "discard",
    abstract: "Discard the saved state of an application, so that it starts empty.",
    usage: "restorationctl discard [<option> ...] <application>",
    discussion: """
      Examples:
        restorationctl discard org.example.Notes
        restorationctl discard org.example.Notes --dry-run
        restorationctl discard org.example.Notes --yes --reason "crashes at start"
        restorationctl discard org.example.Notes --generations --force

      Asks first; without a terminal to ask on, --yes or --force is required.
      Running processes keep their objects and may write new states. Generations
      are kept unless --generations is given. While sessions are live, removing
      them needs --force, because nothing can be restored afterwards.
      """
  )

  @OptionGroup var options: ApplicationOptions

  @OptionGroup var trial: DryRunOptions

  @Flag(help: "Remove the generations as well.")
  var generations = false

  @Flag(help: "Do not ask.")
  var yes = false

  @Flag(help: "Do not ask, and remove generations even while sessions are live.")
  var force = false

  @Option(help: ArgumentHelp("Why, for the broker's log.", valueName: "text"))
  var reason: String?

  func validate() throws {
    if !trial.isDry, !yes, !force, !Terminal.canAsk {
      throw ValidationError("discarding removes saved states, and there is no terminal to ask on: use --yes")
    }
  }

  func run() async throws {
    try Failure.checkChangeable(application)
    try await withBroker { broker in
      let description = try await broker.describeApplication(application)
      let sealed = try await broker.call(ListGenerations(), of: application).generations.count
      let loss = Loss(description, generations: generations ? sealed : 0, kept: generations ? 0 : sealed)
      if trial.isDry { return try output.confirm(loss.document(isDry: true), or: loss.foretold) }
      if !yes, !force, !Question.confirms(loss.question) {
        throw Failure(ExitStatus.refused, kind: "declined", "nothing was discarded")
      }
      try await discard(broker)
      try output.confirm(loss.document(), or: loss.sentence)
    }
  }

  private func discard(_ broker: BrokerConnection) async throws {
    do {
      let call = DiscardApplicationState(reason: reason, generations: generations, force: force)
      try await broker.call(call, of: application)
    } catch let error as RestorationError where error.code == .needsForce {
      throw Failure(error, hint: "Use --force, or keep the generations.")
    }
  }
}

private struct Loss {
  let application: ApplicationName
  let states: Int
  let bytes: Int
  let sessions: Int
  let generations: Int
  let kept: Int

  init(_ description: ApplicationDescription, generations: Int, kept: Int) {
    application = description.application
    states = description.objects.count(where: \.hasState)
    bytes = description.objects.reduce(0) { $0 + $1.bytes }
    sessions = description.sessions.count
    (self.generations, self.kept) = (generations, kept)
  }

  private var what: String {
    let states = "\(Quantity.count(self.states, "state")) (\(Quantity.bytes(bytes)))"
    return generations == 0 ? states : "\(states) and \(Quantity.count(generations, "generation"))"
  }

  private var live: String { Quantity.remark(sessions, "session", "live") }

  private var rest: String { Quantity.remark(kept, "generation", "kept") }

  var foretold: String { "Would discard \(what) of \(application).\(live)\(rest)" }

  var question: String { "Discard \(what) of \(application)?\(live)\(rest)" }

  var sentence: String { "Discarded \(what) of \(application).\(rest)" }

  func document(isDry: Bool = false) -> PrintedObject {
    PrintedObject { writer in
      writer.member("application", application)
      writer.member("states", states)
      writer.member("bytes", bytes)
      writer.member("generations", generations)
      writer.member("generationsKept", kept)
      writer.member("dryRun", ifTrue: isDry)
    }
  }
}
