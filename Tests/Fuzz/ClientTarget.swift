// SPDX-License-Identifier: Apache-2.0

internal import Dispatch
internal import RestorationClient

extension FuzzTarget {
  /// What a broker may send to a client of the Swift library: answers, calls, notifications, events and the end of the
  /// connection. The lines of the input are sent one by one as `ScriptedBroker` says. Every call of the program ends.
  static let client = FuzzTarget(
    name: "client",
    seeds: {
      let answers = [
        #"{"session":"t","application":"org.example.App","limits":{"depthMax":64},"restoration":{}}"#,
        #"{"object":1,"path":["A"],"included":true,"restoration":{"state":"none"}}"#,
        #"{"sequence":9,"durability":"disk"}"#, #"{"status":"available","state":{"a":1},"coder":null,"elements":[]}"#,
        #"{"subscription":1}"#, "{}", #"{"saved":true}"#, #"{"status":"none"}"#, #"{"pending":0}"#,
      ]
      let asked = [
        #"{"jsonrpc":"2.0","id":1,"method":"encodeRestorableStateWithCoder","params":{"round":1,"objects":["#
          + #"{"object":1,"path":["A"]}]}}"#,
        #"{"jsonrpc":"2.0","id":2,"method":"decodeRestorableStateWithCoder","params":{"objects":["#
          + #"{"object":1,"path":["A"],"state":{"a":[1,"\u0000",null]},"elements":[]},"#
          + #"{"object":1,"path":["A"],"deferred":true}]}}"#,
        #"{"jsonrpc":"2.0","id":3,"method":"viewControllerWithRestorationIdentifierPath","params":"#
          + #"{"restorationClass":"C","identifierPath":["A","X"],"kind":"object","state":{}}}"#,
        #"{"jsonrpc":"2.0","method":"pathChanged","params":{"object":1,"path":["B","A#3"]}}"#,
        #"{"jsonrpc":"2.0","method":"registrationReplaced","params":{"object":1,"path":["A"],"by":{"pid":2}}}"#,
        #"{"jsonrpc":"2.0","method":"applicationFinishedRestoringState","params":{"objects":[1,99]}}"#,
        #"{"jsonrpc":"2.0","method":"event","params":{"subscription":1,"event":"eventsLost","count":3}}"#,
        #"{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"no","data":{"kind":"parseError"}}}"#,
      ]
      return (0..<2).flatMap { head in
        asked.map { line in
          let lines = answers.flatMap { [line, "R" + $0] }
          return [UInt8(head)] + Array(lines.joined(separator: "\n").utf8)
        } + [[UInt8(head)] + Array(answers.map { "R" + $0 }.joined(separator: "\n").utf8)]
      }
    },
    run: { input in
      guard let first = input.first else { return }
      let socket = broker.play(input.dropFirst())
      let isOver = DispatchSemaphore(value: 0)
      Task.detached {
        do { try await first & 7 == 0 ? session(socket) : connection(socket) } catch {}
        isOver.signal()
      }
      demand(isOver.wait(timeout: .now() + 30) == .success, "a call does not end")
    }
  )

  private static let broker = ScriptedBroker()
  private static let options = SessionOptions(application: "org.example.App", isDelegate: true, answersCalls: true)

  /// Each call fails or not, as the broker likes.
  private static func connection(_ socket: String) async throws {
    let connection = try await BrokerConnection.connect(to: socket)
    let served = ["willEncodeRestorableState", "encodeRestorableStateWithCoder", "decodeRestorableStateWithCoder"]
    _ = try? await connection.initialize(options, serving: served) { _, text in text }
    let state = try RestorableState(jsonText: #"{"a":1}"#)
    _ = try? await connection.register(ObjectRegistration("A"))
    _ = try? await connection.encode(state, for: .path(["A"]))
    _ = try? await connection.decode(.path(["A"]))
    let events = try? await connection.subscribe(application: "org.example.App")
    _ = try? await connection.describeApplication()
    _ = try? await connection.call(SaveApplicationState())
    _ = try? await connection.call(RestoreApplicationState())
    _ = try? await connection.call(ExplainRestoration(object: .path(["A"])))
    events?.cancel()
    _ = try? await connection.exportArchive()
    await connection.close()
    for await notification in connection.notifications { _ = "\(notification)" }
  }

  private static func session(_ socket: String) async throws {
    let delegate = Program()
    let session = try await RestorationSession.start(
      options,
      delegate: delegate,
      socket: socket,
      brokerTimeout: .milliseconds(50)
    )
    do {
      let object = try await session.register(ObjectRegistration("A"), restoring: delegate)
      _ = try await session.encode(RestorableState(jsonText: #"{"a":1}"#), for: object)
      _ = try await session.decode(object)
      _ = try await session.saveApplicationState()
      _ = try await session.restoreApplicationState()
      _ = try await session.completeStateRestoration()
    } catch {}
    _ = await session.end(.restart, timeout: .milliseconds(50))
    withExtendedLifetime(delegate) {}
  }
}

private final class Program: RestorationDelegate, StateRestoring {
  func encodeRestorableState() -> ObjectState { ["a": .integer(1)] }
  func decodeRestorableState(_ saved: ObjectState) { _ = "\(saved)" }
}
