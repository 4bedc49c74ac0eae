// SPDX-License-Identifier: Apache-2.0

/// A broker that is measured: one that was started for it, or another one.
struct BrokerUnderLoad: RunningPeer {
  let socket: String
  var target = Target()
  private let process: Int32
  /// Ends with this value.
  private let server: Server?

  init(_ server: Server) { (self.server, socket, process) = (server, server.socket, server.process) }

  /// - Parameter socket: of a broker that runs.
  init(_ socket: String) throws {
    (self.socket, server) = (socket, nil)
    let answer = try LineConnection(socket).call("statistics", "{}")
    guard let process = LineConnection.number("pid", in: answer) else { throw Failure("the broker tells no pid") }
    self.process = Int32(process)
  }

  private func load(_ work: Work, _ subject: Subject, _ framing: MessageFraming = .lines) -> Load {
    let request = Requests.broker(work, size: subject.size, framing, of: target)
    var load = Load(socket: socket, request: request, replies: framing.replies)
    load.take(subject)
    load.servers = [process]
    return load
  }

  func measure(_ work: Work, _ subject: Subject, seconds: Double) throws -> Figures {
    try measure(work, subject, .lines, seconds: seconds)
  }

  func measure(
    _ work: Work,
    _ subject: Subject,
    _ framing: MessageFraming,
    seconds: Double,
    requests: Int? = nil
  ) throws -> Figures {
    var load = load(work, subject, framing)
    (load.seconds, load.warmUp, load.requests) = (seconds, seconds / 5, requests)
    return try load.run()
  }

  func fill(_ subject: Subject) throws { try load(.encode, subject).fill(subject) }

  /// Saves the application so many times, each time with another state of one object.
  func save(_ subject: Subject, times: Int) throws {
    let caller = try LineConnection(socket)
    for turn in 0..<times {
      let encode = Requests.broker(.encode, size: subject.size, of: target)
      try caller.socket.send(encode.message(id: MessageTemplate.firstID + turn))
      _ = try caller.answer()
      try caller.call("saveApplicationState", #"{"application":"\#(target.application)"}"#)
    }
  }

  /// One request.
  func once(_ work: Work, key: Int) throws {
    let connection = try LineConnection(socket)
    try connection.socket.send(Requests.broker(work, size: 40).message(key: key))
    _ = try connection.answer()
  }

  func playRounds(_ subject: Subject, times: Int) throws -> Figures? { try play(subject, times) { try $0.save() } }

  func playRestorations(_ subject: Subject, times: Int) throws -> Figures {
    try play(subject, times) { try $0.restore() }
  }

  private func play(
    _ subject: Subject,
    _ times: Int,
    _ body: (ServingApplication) throws -> UInt64
  ) throws -> Figures {
    let (processes, objects) = (subject.clients, subject.objects)
    let application = try ServingApplication(socket, processes: processes, objects: objects, size: subject.size)
    // What is restored has to be saved first, and what is done first is slower.
    _ = try application.save()
    let (own, theirs) = (Clock.ownCPU, Clock.cpu(of: [process]))
    var figures = try Figures(times) { _ in try body(application) }
    figures.generatorCPU = Clock.ownCPU - own
    if let theirs, let later = Clock.cpu(of: [process]) { figures.serverCPU = later - theirs }
    return figures
  }

  /// Removes what was stored.
  func forget() {
    for application in [Requests.application, ServingApplication.name] {
      _ = try? LineConnection(socket).call("forgetApplication", #"{"application":"\#(application)","force":true}"#)
    }
  }
}
