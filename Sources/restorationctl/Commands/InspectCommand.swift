// SPDX-License-Identifier: Apache-2.0

internal import ArgumentParser
internal import RestorationClient
internal import RestorationWire

struct InspectCommand: ControlCommand {
  static let configuration = CommandConfiguration(
    commandName: "inspect",
    abstract: "Make a page that shows an application, for a browser.",
    usage: "restorationctl inspect [<option> ...] [<application>]",
    discussion: """
      Examples:
        restorationctl inspect
        xdg-open "$(restorationctl inspect org.example.Notes)"
        restorationctl inspect org.example.Notes -o notes.html
        restorationctl inspect --live

      The page is one file of HTML that needs nothing else: the tree of objects
      over all processes with their states, references and owners, why each was
      saved and restored, and the differences between generations. It shows one
      moment. Its path is printed; without -o it is in $XDG_RUNTIME_DIR, and only
      its owner can read it. If there is only one application, you need not name
      it. Confidential states are left out unless --reveal is given.

      With --live the page follows the application. The tool serves it to this
      machine, at an address that cannot be guessed, and prints that. An interrupt
      ends it with status 0, and the end of the broker with status 69.
      """
  )

  @OptionGroup var options: OneApplicationOptions
  @OptionGroup var destination: DestinationOptions

  @Flag(help: "Show the states of confidential objects.")
  var reveal = false

  @Flag(help: "Serve a page that follows the application, and print its address.")
  var live = false

  func validate() throws {
    if live, destination.output != nil { throw ValidationError("--live makes no file. Give --live or -o, not both.") }
  }

  func run() async throws {
    if live { Interruption.endsTheTool() }
    try await withBroker { broker in
      let application = try await self.application(broker)
      if live { return try await serve(application, broker) }
      let page = InspectPage(application: try await InspectedApplication(application, reveal: reveal, broker)).html
      if destination.output == "-" {
        return try destination.write(page, printed: Terminal.isOutput ? page.printableJSON : nil)
      }
      let file = try self.file(for: application)
      let place = OutputFile(path: file, isChosen: destination.file != nil)
      try OutputFile.reporting { () throws(OutputFile.Fault) in try place.write(page) }
      let written = PrintedObject { writer in
        writer.member("application", application)
        writer.member("file", file)
        writer.member("bytes", page.utf8.count)
      }
      try output.print(written, or: file + "\n")
    }
  }

  /// Serves the page until the connection to the broker ends.
  private func serve(_ application: String, _ broker: BrokerConnection) async throws {
    let events = try await broker.subscribe(application: application)
    let read = { LiveReading(try await InspectedApplication(application, reveal: reveal, broker)) }
    let server = LiveServer(try await read())
    let address = try await listen(server)
    let printed = PrintedObject { writer in
      writer.member("application", application)
      writer.member("address", address)
    }
    try output.print(printed, or: address + "\n")
    TimeLimit.isForWatching()
    Task {
      do {
        // An opened archive may have been loaded again after a failed write.
        for try await event in events where event.name != EventName.archiveClosed.rawValue { server.changed() }
        server.changesEnded()
      } catch {
        server.changesEnded(error)
      }
    }
    for try await _ in server.happenings {
      guard server.takeChange() else { continue }
      let clock = ContinuousClock()
      let begin = clock.now
      server.publish(try await read())
      // Of many changes in a row a person sees some, and the broker spends at most a fifth of its time on this.
      try await Task.sleep(for: max(.milliseconds(500), begin.duration(to: clock.now) * 4))
    }
  }

  private func listen(_ server: LiveServer) async throws -> String {
    do {
      // On an emulation of Linux, 127.0.0.1 may be the only loopback address.
      return try await server.listen(at: LiveAddress.newHost(), else: LiveAddress.usualHost).text
    } catch {
      let message = "no port of \(LiveAddress.usualHost) can be listened on: \(error)"
      let hint = "Make a file instead, without --live."
      throw Failure(ExitStatus.outputFailed, kind: "outputFailed", message, hint: hint)
    }
  }

  /// The named application, or the only one.
  private func application(_ broker: BrokerConnection) async throws -> String {
    if let application = options.application { return application }
    let known = try await broker.applicationNames()
    if known.count == 1 { return known[0] }
    guard !known.isEmpty else {
      let hint = "Start an application, or name another broker's socket by --socket."
      throw Failure(ExitStatus.notThere, kind: "unknownApplication", "there is no application", hint: hint)
    }
    let hint = "Name one of them: \(Suggestion.list(known))."
    throw Failure(ExitStatus.usage, kind: "usage", "there are \(known.count) applications", hint: hint)
  }

  /// The path given, or a file in a private directory of the user.
  private func file(for application: String) throws -> String {
    if let file = destination.file { return file }
    if let directory = Terminal.variable("XDG_RUNTIME_DIR") { return "\(directory)/\(application).html" }
    let directory = try OutputFile.reporting(hint: "Name a file by -o.") { () throws(OutputFile.Fault) in
      try OutputFile.makePrivateDirectory(in: Terminal.variable("TMPDIR") ?? "/tmp")
    }
    return "\(directory)/\(application).html"
  }
}
