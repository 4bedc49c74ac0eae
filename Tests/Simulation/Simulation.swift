// SPDX-License-Identifier: Apache-2.0

internal import Histories
internal import InMemory
internal import JSONRPC
internal import NIOCore
internal import RestorationWire

/// Plays a history, and afterwards, when all faults have passed, looks whether everything is as it should be.
final class Simulation {
  let history: History
  let trace: Trace
  private let world: World
  private let checker: HistoryChecker
  private let clients: [SimulatedClient]
  private let libraries: [SimulatedLibrary]
  /// Asks without a session, as tools do; it has its own connections.
  private var tools: [String: SimulatedClient] = [:]
  private var spies: [SimulatedClient] = []
  private var hadFault = false

  init(_ history: History, keeping: Trace.Keeping = .nothing) {
    self.history = history
    trace = Trace(keeping)
    var limits = Limits()
    // Each of the two applications has its files closed whenever the other one is used.
    if history.seed % 3 == 0 { limits.openArchivesMax = 1 }
    if history.seed % 5 == 0 { (limits.archiveBytesMax, limits.objectsPerApplicationMax) = (40_000, 6) }
    let world = World(seed: history.seed, limits: limits, trace: trace)
    let checker = HistoryChecker(trace)
    (self.world, self.checker) = (world, checker)
    clients = History.clients.enumerated().map { number, application in
      SimulatedClient(number, of: application, in: world, checker: checker)
    }
    for client in clients {
      world.host.state.value.unitFiles[client.unit] = ["[X-Restoration]\nApplication=\(client.application)\n"]
    }
    libraries = History.libraries.enumerated().map { number, application in
      SimulatedLibrary(10 + number, of: application, in: world, checker: checker)
    }
  }

  var reads: Int { checker.reads }
  var acknowledged: Int { checker.acknowledged }

  func run() {
    for step in history.steps {
      trace.add("# \(step)")
      perform(step)
      settle()
      guard trace.faults.isEmpty else { return }
    }
    finish()
  }

  /// Does what follows at this moment.
  private func settle() {
    let epoch = world.epoch
    world.run()
    if world.epoch != epoch { brokerEnded() }
    for client in clients { client.noteEnds() }
    startUnits()
  }

  /// A unit that the broker has started is a process that comes back with an object.
  private func startUnits() {
    let started = world.host.state.value.startedUnits
    guard !started.isEmpty else { return }
    world.host.state.value.startedUnits = []
    for client in clients where started.contains(client.unit) && !client.isConnected {
      trace.add("\(client.number) is started")
      guard !world.host.state.value.brokenUnits.contains(client.unit) else { continue }
      client.connect(delegate: false)
      register(client, History.paths[client.number % History.paths.count], false)
    }
    world.run()
  }

  private func advance(milliseconds: Int64) {
    let end = world.nowMilliseconds + milliseconds
    repeat {
      let epoch = world.epoch
      world.advance(milliseconds: min(max(end - world.nowMilliseconds, 0), 1_000))
      if world.epoch != epoch { brokerEnded() }
      for client in clients { client.noteEnds() }
      startUnits()
    } while world.nowMilliseconds < end
  }

  private func brokerEnded() {
    checker.brokerEnded()
    for client in clients {
      let wasConnected = client.hasConnection
      client.noteEnds()
      // If the next broker continues its connection, it has noticed nothing.
      guard !client.isConnected else { continue }
      client.loseObjects()
      if wasConnected { client.connect(delegate: false) }
    }
    for spy in spies { spy.disconnect() }
    spies = []
    for tool in tools.values { tool.noteEnds() }
  }

  // MARK: Steps

  private func perform(_ step: History.Step) {
    switch step {
    case .connect(let number, let delegate): clients[number].connect(delegate: delegate)
    case .comeBack(let number): comeBack(clients[number])
    case .disconnect(let number): clients[number].disconnect()
    case .killClient(let number, let isCrash): clients[number].kill(isCrash: isCrash)
    case .silence(let number, let isSilent, let isLying):
      (clients[number].isSilent, clients[number].isLying) = (isSilent, isLying)
    case .register(let number, let path, let takesOver): register(clients[number], History.paths[path], takesOver)
    case .unregister(let number, let path, let keeps): unregister(clients[number], History.paths[path], keeps)
    case .showRows(let number, let path):
      clients[number].call("registerDataSource", #"{"view":\#(History.paths[path].json)}"#)
    case .breakUnit(let number, let isBroken):
      let unit = clients[number].unit
      if isBroken {
        world.host.state.value.brokenUnits.insert(unit)
      } else {
        world.host.state.value.brokenUnits.remove(unit)
      }
    case .forget(let number, let path): forget(clients[number], History.paths[path])
    case .reopen(let number): revive("reopenObject", "{}", clients[number])
    case .move(let number, let choice): move(clients[number], choice)
    case .goodbye(let number, let reason): goodbye(clients[number], reason)
    case .encode(let number, let path, let padding):
      // What it owns, if it owns anything: others' objects are refused.
      let own = clients[number].handles.keys.sorted()
      encode(clients[number], own.isEmpty ? History.paths[path] : own[path % own.count], padding)
    case .encodeUnowned(let application, let path): encode(tool(application), History.paths[path], 10)
    case .decode(let number, let path): decode(clients[number], History.paths[path])
    case .read(let application, let path): read(application, History.paths[path])
    case .readArchive(let application): readHead(application)
    case .readGenerations(let application): readGenerations(application)
    case .save(let number): save(clients[number])
    case .restore(let number): clients[number].call("restoreApplicationState", #"{"deadlineMilliseconds":2000}"#)
    case .discard(let application, let generations): discard(application, generations)
    case .rollBack(let application): rollBack(application)
    case .copy(let application): copy(application)
    case .spy(let application, let path): spy(application, History.paths[path])
    case .verify(let application): verify(application)
    case .list: tool("App").call("listApplications", "{}")
    case .library(let number, let step): perform(step, libraries[number])
    case .noise(let number, let text): clients[number].send(text)
    case .tear(let number, let path):
      clients[number].send(#"{"jsonrpc":"2.0","id":1,"method":"encodeRestorableState","params":{"object":["\#(path)"#)
      clients[number].disconnect()
    case .advance(let milliseconds): advance(milliseconds: milliseconds)
    case .moveClock(let milliseconds): world.moveClock(milliseconds: milliseconds)
    case .slowDisk(let milliseconds): world.slownessMilliseconds = milliseconds
    case .fault(let fault): (world.disk.fault, hadFault) = (fault, true)
    case .fillDisk(let bytes): (world.disk.capacity, hadFault) = (bytes, true)
    case .emptyDisk: world.disk.capacity = .max
    case .killBrokerAfter(let calls): world.disk.callsToKill = calls
    case .killBroker: restart(world.kill)
    case .cutPower: restart(world.cutPower)
    case .stopBroker(let handsOver): restart { world.stop(handsOver: handsOver) }
    }
  }

  private func perform(_ step: History.LibraryStep, _ library: SimulatedLibrary) {
    switch step {
    case .start(let answersCalls, let isPatient): library.start(answersCalls: answersCalls, isPatient: isPatient)
    case .cancel: library.cancelNewest()
    case .register(let path, let takesOver): library.register(History.paths[path], takesOver: takesOver)
    case .unregister(let path, let keepsState): library.unregister(History.paths[path], keepsState: keepsState)
    case .encode(let path, let padding):
      let own = library.ownPaths
      library.encode(own.isEmpty ? History.paths[path] : own[path % own.count], padding: padding)
    case .decode(let path): library.decode(History.paths[path])
    case .save: library.save()
    case .restore: library.restore()
    case .cut: library.cut()
    case .away(let milliseconds):
      library.cut(forMilliseconds: milliseconds)
      advance(milliseconds: milliseconds)
    case .end(let reason): library.end(reason)
    case .kill(let isCrash): library.kill(isCrash: isCrash)
    }
  }

  private func restart(_ body: () -> Void) {
    body()
    brokerEnded()
  }

  private func tool(_ application: String) -> SimulatedClient {
    let tool = tools[application] ?? SimulatedClient(90, of: application, in: world, checker: checker)
    tools[application] = tool
    tool.noteEnds()
    tool.openWithoutSession()
    return tool
  }

  private func register(_ client: SimulatedClient, _ path: Path, _ takesOver: Bool) {
    let parent = path.parent.map { #","restorationParent":\#($0.json)"# } ?? ""
    let more = takesOver ? #","takeOver":true"# : ""
    let session = client.token
    let claims = checker.claiming(path, of: client.application, takesOver: takesOver)
    let name = path.components.last ?? ""
    client.call("registerObjectForStateRestoration", #"{"restorationIdentifier":"\#(name)"\#(parent)\#(more)}"#) {
      [checker] answer in
      guard case .result(let result) = answer, let handle = result["object"]?.integer, client.token == session
      else { return }
      checker.claimed(path, of: client.application, by: client.number, takesOver: takesOver, after: claims)
      client.register(path, handle)
    }
  }

  private func encode(_ client: SimulatedClient, _ path: Path, _ padding: Int) {
    let push = checker.push(path, of: client.application, over: client.link, padding: padding, hasRows: true)
    let expectation = checker.expectation(client.application)
    let more = client.number == 90 ? #","application":"\#(client.application)""# : ""
    client.call("encodeRestorableState", #"{"object":\#(path.json),"state":\#(push.state)\#(push.elements)\#(more)}"#) {
      [checker] answer in
      guard case .result(let result) = answer, result["durability"] != nil else { return }
      checker.acknowledge(push, at: path, of: client.application, result["sequence"]?.integer, since: expectation)
    }
  }

  private func unregister(_ client: SimulatedClient, _ path: Path, _ keepsState: Bool) {
    guard let handle = client.handles[path] else { return }
    client.lose(path)
    remove("unregisterObject", #"{"object":\#(handle),"keepState":\#(keepsState)}"#, client) {
      $0.isAtOrBelow(path)
    }
  }

  private func comeBack(_ client: SimulatedClient) {
    guard !client.isConnected else { return }
    client.connect(delegate: false)
    for path in client.formerPaths { register(client, path, false) }
    client.call("restoreApplicationState", #"{"deadlineMilliseconds":2000}"#)
  }

  private func forget(_ client: SimulatedClient, _ path: Path) {
    // It may be its own.
    client.lose(path)
    // A registration that was under way came before.
    remove("unregisterObject", #"{"object":\#(path.json)}"#, client, { $0.isAtOrBelow(path) }) { client.lose(path) }
  }

  /// Gives an object of the client's another identifier, or another parent.
  private func move(_ client: SimulatedClient, _ choice: Int) {
    let own = client.handles.keys.sorted()
    guard !own.isEmpty, let handle = client.handles[own[choice % own.count]] else { return }
    let path = own[choice % own.count]
    let target = path.neighbour(choice)
    let move = checker.moving(path, of: client.application, to: target)
    let (method, change) =
      path.components.count == 1
      ? ("setRestorationIdentifier", #""restorationIdentifier":"\#(target.components[0])""#)
      : ("setRestorationParent", #""restorationParent":\#(target.parent?.json ?? "null")"#)
    let isAffected: (Path) -> Bool = { $0.isAtOrBelow(path) || $0.isAtOrBelow(target) }
    let connection = client.connection
    client.call(method, #"{"object":\#(handle),\#(change)}"#) { [checker, world] answer in
      switch answer {
      case .result:
        for own in client.handles.keys where own.isAtOrBelow(path) {
          client.moved(own, to: own.moved(from: path, to: target))
        }
        checker.moved(move)
      case .error: checker.removing(client.application, where: isAffected)
      case .lost:
        guard let connection else { return }
        checker.removing(client.application, where: isAffected) { world.isDone(with: connection) }
      }
    }
  }

  private func goodbye(_ client: SimulatedClient, _ reason: String) {
    guard client.isConnected else { return }
    let removes = reason == "closed" || reason == "userQuit"
    client.loseObjects()
    let isQuit = reason == "userQuit"
    remove("goodbye", #"{"reason":"\#(reason)"}"#, client, { _ in removes }, isQuit: isQuit) { client.loseObjects() }
  }

  /// Makes a call that removes states: some time before its answer, or before the broker is done with the connection.
  private func remove(
    _ method: String,
    _ parameters: String,
    _ client: SimulatedClient,
    _ isRemoved: @escaping (Path) -> Bool,
    isQuit: Bool = false,
    _ complete: @escaping () -> Void = {}
  ) {
    guard let connection = client.connection else { return complete() }
    var isAnswered = false
    checker.removing(client.application, where: isRemoved, isQuit: isQuit) { [world] in
      isAnswered || !connection.isOpen && world.isDone(with: connection)
    }
    client.call(method, parameters) { answer in
      complete()
      if case .lost = answer {} else { isAnswered = true }
    }
  }

  private func discard(_ application: String, _ generations: Bool) {
    let tool = tool(application)
    let connection = tool.connection
    var isAnswered = false
    checker.removing(application, where: { _ in true }) { [world] in
      isAnswered || connection.map { !$0.isOpen && world.isDone(with: $0) } ?? true
    }
    if generations { checker.removingGenerations(of: application) }
    let former = checker.emptying(application)
    tool.call(
      "discardApplicationState",
      #"{"application":"\#(application)","generations":\#(generations),"force":true}"#
    ) { [checker] answer in
      isAnswered = connection?.isOpen ?? true
      if case .result = answer { checker.emptied(application, of: former) }
      if generations { checker.removingGenerations(of: application) }
    }
  }

  private func rollBack(_ application: String) {
    let tool = tool(application)
    tool.call("listGenerations", #"{"application":"\#(application)"}"#) { [self] answer in
      guard case .result(let result) = answer,
        let generation = result["generations"]?.array?.first?["generation"]?.integer
      else { return }
      revive("rollBack", #"{"application":"\#(application)","generation":\#(generation),"force":true}"#, tool)
    }
  }

  /// Makes a call that brings back what was there before.
  private func revive(_ method: String, _ parameters: String, _ client: SimulatedClient) {
    guard let connection = client.connection else { return }
    var isAnswered = false
    checker.reviving(client.application) { [world] in
      isAnswered || !connection.isOpen && world.isDone(with: connection)
    }
    remove(method, parameters, client, { _ in true }) { isAnswered = connection.isOpen }
  }

  private func save(_ client: SimulatedClient) {
    let expectation = checker.expectation(client.application)
    client.call("saveApplicationState", #"{"deadlineMilliseconds":2000}"#) { [checker] answer in
      guard case .result(let result) = answer, result["saved"]?.bool == true,
        let generation = result["generation"]?.integer
      else { return }
      checker.saved(generation, of: client.application, expectation)
    }
  }

  // MARK: Reading

  private func decode(_ client: SimulatedClient, _ path: Path) {
    checker.giving(path, of: client.application, until: world.whileGiving())
    client.call("decodeRestorableState", #"{"object":\#(path.json)}"#) { [checker] answer in
      guard case .result(let result) = answer, let state = result["state"], !state.isNull else { return }
      checker.handed(path, of: client.application, state)
      checker.elements(result["elements"], of: state, "an owner")
    }
  }

  private func read(_ application: String, _ path: Path) {
    let expectation = checker.expectation(application)
    let parameters = #"{"application":"\#(application)","object":\#(path.json)}"#
    tool(application).call("decodeRestorableState", parameters) { [checker] answer in
      switch answer {
      case .result(let result):
        let state = result["state"]
        checker.read(path, of: application, state?.isNull == false ? state : .none, expectation, by: "a reader")
        checker.elements(result["elements"], of: state, "a reader")
      case .error(let kind):
        if kind == "unknownObject" || kind == "unknownApplication" {
          checker.read(path, of: application, .none, expectation, by: "a reader (\(kind))")
        }
      case .lost: break
      }
    }
  }

  private func readHead(_ application: String) {
    let expectation = checker.expectation(application)
    readPages(application, generation: nil) { [checker] states in
      for path in checker.paths(of: application) {
        checker.read(path, of: application, states[path], expectation, by: "a reader of the archive")
      }
      checker.measure(states, of: application, self.world.limits)
    }
  }

  private func readGenerations(_ application: String) {
    tool(application).call("listGenerations", #"{"application":"\#(application)"}"#) { [checker] answer in
      guard case .result(let result) = answer else { return }
      for generation in result["generations"]?.array ?? [] {
        guard let number = generation["generation"]?.integer else { continue }
        self.readPages(application, generation: number) { checker.read(generation: number, of: application, $0) }
      }
    }
  }

  private func readPages(
    _ application: String,
    generation: Int64?,
    cursor: String? = nil,
    _ former: [Path: JSONValue] = [:],
    _ complete: @escaping ([Path: JSONValue]) -> Void
  ) {
    let which = generation.map { #","generation":\#($0)"# } ?? ""
    let place = cursor.map { #","cursor":"\#($0)""# } ?? ""
    let tool = tool(application)
    tool.call("readArchive", #"{"application":"\#(application)"\#(which)\#(place)}"#) { answer in
      guard case .result(let result) = answer else { return }
      var states = former
      for object in result["objects"]?.array ?? [] {
        guard let path = object["path"].flatMap(Path.init), let state = object["state"], !state.isNull else { continue }
        states[path] = state
      }
      guard let next = result["cursor"]?.string else { return complete(states) }
      self.readPages(application, generation: generation, cursor: next, states, complete)
    }
  }

  /// Whoever is confined to one application sees nothing of another.
  private func spy(_ application: String, _ path: Path) {
    let spy = SimulatedClient(80, of: application, in: world, checker: checker)
    spy.openConfined()
    spies.append(spy)
    guard let other = History.applications.first(where: { $0 != application }) else { return }
    let parameters = #"{"application":"\#(other)","object":\#(path.json)}"#
    for method in ["decodeRestorableState", "readArchive", "exportArchive", "listApplications", "describeApplication"] {
      spy.call(method, method == "decodeRestorableState" ? parameters : #"{"application":"\#(other)"}"#)
    }
  }

  /// Takes a document of the application, has everybody leave, and brings the document back.
  private func copy(_ application: String) {
    let expectation = checker.expectation(application)
    export(application) { [self] parts in
      for client in clients where client.application == application { client.kill(isCrash: false) }
      for library in libraries where library.application == application { library.kill(isCrash: false) }
      let tool = tool(application)
      let connection = tool.connection
      let copied = checker.replacing(application, by: expectation)
      var isAnswered = false
      checker.reviving(application) { [world] in
        isAnswered || connection.map { !$0.isOpen && world.isDone(with: $0) } ?? true
      }
      tool.upload(parts[...]) { [checker, world] answer in
        isAnswered = connection?.isOpen ?? true
        switch answer {
        case .result: checker.replaced(copied)
        case .error: checker.removing(application)
        case .lost:
          if let connection { checker.removing(application, where: { _ in true }) { world.isDone(with: connection) } }
        }
      }
    }
  }

  private func export(
    _ application: String,
    cursor: String? = nil,
    _ former: [JSONValue] = [],
    _ complete: @escaping ([JSONValue]) -> Void
  ) {
    let place = cursor.map { #","cursor":"\#($0)""# } ?? ""
    tool(application).call("exportArchive", #"{"application":"\#(application)"\#(place)}"#) { answer in
      guard case .result(let result) = answer, let part = result["part"] else { return }
      guard let next = result["cursor"]?.string else { return complete(former + [part]) }
      self.export(application, cursor: next, former + [part], complete)
    }
  }

  private func verify(_ application: String) {
    let faults = world.disk.faults
    tool(application).call("verifyArchive", #"{"application":"\#(application)"}"#) { [trace, world] answer in
      guard case .result(let result) = answer, result["sound"]?.bool != true, world.disk.faults == faults else {
        return
      }
      trace.fault("\(application) is not sound: \(result)")
    }
  }

  // MARK: The end

  /// What a library believes to be its process's has to be.
  private func compareOwners(_ library: SimulatedLibrary) {
    tool(library.application).call("describeApplication", #"{"application":"\#(library.application)"}"#) {
      [trace, checker] answer in
      guard case .result(let result) = answer else { return }
      let owned = result["objects"]?.array?.filter { $0["pid"]?.integer == library.pid }.map { $0["path"] } ?? []
      for path in library.believedPaths
      where !checker.mayHaveLost(path, of: library.application)
        && !owned.contains(where: { $0.flatMap(Path.init) == path })
      {
        trace.fault("the library \(library.number) believes it has \(path), and the broker does not")
      }
    }
    advance(milliseconds: 1_000)
  }

  /// The faults pass; everything that was asked is answered, and everything promised is there, also for the next broker.
  private func finish() {
    trace.add("# the end")
    (world.disk.fault, world.disk.callsToKill, world.disk.capacity) = (nil, nil, .max)
    world.slownessMilliseconds = 2
    for client in clients { (client.isSilent, client.isLying) = (false, false) }
    advance(milliseconds: 180_000)
    for client in clients + tools.values where client.isConnected && !client.unanswered.isEmpty {
      trace.fault("client \(client.number) waits for ever for \(client.unanswered)")
    }
    for library in libraries where !library.unanswered.isEmpty {
      trace.fault("the library \(library.number) waits for ever for \(library.unanswered)")
    }
    for library in libraries where !library.believedPaths.isEmpty { compareOwners(library) }
    // Twice only now and then: it is half of the work.
    let isThorough = history.seed % 4 == 0
    if !isThorough { restart(world.kill) }
    for round in 0..<(isThorough ? 2 : 1) {
      for application in History.applications {
        readHead(application)
        for path in checker.paths(of: application) { read(application, path) }
        readGenerations(application)
        verify(application)
        advance(milliseconds: 2_000)
      }
      if isThorough, round == 0 { restart(world.kill) }
    }
    for client in clients + tools.values + spies { client.kill(isCrash: false) }
    for library in libraries { library.kill(isCrash: false) }
    advance(milliseconds: 700_000)
    for library in libraries where !library.unanswered.isEmpty {
      trace.fault("the library \(library.number) never ends \(library.unanswered)")
    }
    let holdings = world.holdings
    if !holdings.isEmpty { trace.fault("still held when everybody has left: \(holdings)") }
    world.disk.erase()
    if !hadFault, let complaint = world.complaints.first(where: { $0.contains("damaged") || $0.contains("fatal") }) {
      trace.fault("the broker complains: \(complaint)")
    }
  }
}
