// SPDX-License-Identifier: Apache-2.0

internal import Glibc
internal import JSONRPC
internal import RestorationClient
internal import RestorationWire
internal import TestSupport
internal import Testing

/// A session that began without a broker, and one that comes when its socket has the name that the session looks for.
struct WithoutBrokerScene {
  static let storeFailed = ErrorObject.restoration(.storeFailed, "the disk is full", hint: "Make room.")
  static let stored = #"{"sequence":1,"durability":"disk"}"#
  static let nothing = #"{"status":"none","state":null,"coder":null}"#

  let script = SessionScript()
  let session: RestorationSession

  init(delegate: (any RestorationDelegate)? = nil, timeout: Duration? = nil) async throws {
    fake.answers(script.answer)
    session = try await RestorationSession.start(
      SessionOptions(application: "a", answersCalls: true),
      delegate: delegate,
      socket: fake.path + ".later",
      brokerTimeout: timeout
    )
  }

  func becomes(_ state: SessionState) async throws {
    for await next in session.states where next == state { return }
    throw TestFailure("the session has ended")
  }

  func brokerComes() throws { try #require(symlink(fake.path, fake.path + ".later") == 0) }

  func brokerGoes() throws { try #require(unlink(fake.path + ".later") == 0) }

  func end() async { await session.end(.restart, timeout: .zero) }

  /// Which of the registrations of an identifier were fresh.
  func fresh(_ identifier: String) -> [Bool] {
    script.registrations.filter { $0.contains("\"\(identifier)\"") }.map { $0.contains(#""fresh":true"#) }
  }

  /// The next request is this one; answers it, unless `answer` is nil.
  static func expect(
    _ text: String,
    _ answer: String? = stored,
    sourceLocation: SourceLocation = #_sourceLocation
  ) async throws {
    let request = try await fake.events.request()
    #expect(request.text == text, sourceLocation: sourceLocation)
    if let answer { try await request.answer(answer) }
  }
}
