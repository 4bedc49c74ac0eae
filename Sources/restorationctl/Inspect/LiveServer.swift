// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC
package import NIOCore
internal import NIOHTTP1
internal import NIOPosix
internal import RestorationWire
internal import Synchronization

package struct LiveReading: Sendable {
  /// The time of the reading; names it.
  let made: String
  /// The data alone, in JSON.
  let data: ByteBuffer
  /// Made on demand, because an open page needs the data only.
  let page: @Sendable () -> ByteBuffer

  package init(made: String, data: ByteBuffer, page: @escaping @Sendable () -> ByteBuffer) {
    (self.made, self.data, self.page) = (made, data, page)
  }

  init(_ application: InspectedApplication) {
    self.init(made: application.made.description, data: ByteBuffer(bytes: application.text.bytes)) {
      ByteBuffer(string: InspectPage(application: application, isLive: true).html)
    }
  }
}

/// Serves the newest reading of an application to browsers of this machine.
///
/// Invariants:
/// 1. At most `connectionsMax` connections are open, and each has a time limit.
/// 2. A connection without an accepted request gives way to a newer one.
/// 3. An application is read again only if it has changed and a page waits for that.
package final class LiveServer: Sendable {
  private static let connectionsMax = 64

  fileprivate enum Time {
    /// Until the head of its request has arrived.
    static let request = TimeAmount.seconds(10)
    /// For waiting for a change: shorter than the time after which proxies drop a silent connection.
    static let change = TimeAmount.seconds(25)
    static let response = TimeAmount.seconds(60)
  }

  private struct Contents {
    var reading: LiveReading
    var hasChanged = false
    /// Oldest first.
    var connections: [(channel: any Channel, isAccepted: Bool)] = []
    var waiting: [any Channel] = []
  }

  /// Yields an element after a change, and when a page begins to wait for one; ends when the changes end.
  let happenings: AsyncThrowingStream<Void, any Error>
  private let happened: AsyncThrowingStream<Void, any Error>.Continuation
  private let state: Mutex<Contents>
  private let token = LiveAddress.newToken()

  package init(_ reading: LiveReading) {
    state = Mutex(Contents(reading: reading))
    (happenings, happened) = AsyncThrowingStream.makeStream(bufferingPolicy: .bufferingNewest(1))
  }

  /// Listens at a free port of `host`, or of `other` if that fails. Throws an error of NIO if both fail.
  package func listen(at host: String, else other: String) async throws -> LiveAddress {
    let bootstrap = ServerBootstrap(group: MultiThreadedEventLoopGroup.singleton).childChannelInitializer { channel in
      channel.eventLoop.makeCompletedFuture { try self.serve(channel) }
    }
    if let channel = try? await bootstrap.bind(host: host, port: 0).get() { return address(of: channel) }
    return address(of: try await bootstrap.bind(host: other, port: 0).get())
  }

  package func serve(_ channel: any Channel) throws {
    let decoder = HTTPRequestDecoder(leftOverBytesStrategy: .dropBytes, limitConfiguration: Self.headLimits)
    try channel.pipeline.syncOperations.addHandlers([
      ByteToMessageHandler(decoder, maximumBufferSize: 128 << 10), HTTPResponseEncoder(), LiveHandler(self),
    ])
  }

  private static var headLimits: NIOHTTPDecoderLimitConfiguration {
    var limits = NIOHTTPDecoderLimitConfiguration()
    limits.maxHeaderFieldSize = 8 << 10
    limits.maxHeaderListSize = 32 << 10
    limits.maxHeaderFieldCount = 100
    return limits
  }

  // MARK: the readings

  func changed() {
    state.withLock { $0.hasChanged = true }
    happened.yield()
  }

  /// No change follows.
  func changesEnded(_ error: (any Error)? = nil) { happened.finish(throwing: error) }

  /// Whether to read again; the next reading covers all changes until now.
  func takeChange() -> Bool {
    state.withLock { state in
      guard state.hasChanged, !state.waiting.isEmpty else { return false }
      state.hasChanged = false
      return true
    }
  }

  package func publish(_ reading: LiveReading) {
    let waiting = state.withLock { state in
      state.reading = reading
      defer { state.waiting = [] }
      return state.waiting
    }
    for channel in waiting { channel.pipeline.fireUserInboundEventTriggered(reading) }
  }

  // MARK: the connections

  package func address(of channel: any Channel) -> LiveAddress {
    let (host, port) = (channel.localAddress?.ipAddress ?? "", channel.localAddress?.port ?? 0)
    return LiveAddress(host: host, port: port, token: token)
  }

  fileprivate func opened(_ channel: any Channel) {
    let surplus = state.withLock { state -> (any Channel)? in
      state.connections.append((channel, false))
      guard state.connections.count > Self.connectionsMax,
        let oldest = state.connections.firstIndex(where: { !$0.isAccepted })
      else { return nil }
      return state.connections.remove(at: oldest).channel
    }
    surplus?.close(promise: nil)
  }

  fileprivate func closed(_ channel: any Channel) {
    state.withLock { state in
      state.connections.removeAll { $0.channel === channel }
      state.waiting.removeAll { $0 === channel }
    }
  }

  /// The newest reading, for an accepted request. `nil` if the page has it already: the next one is then sent when it
  /// is made.
  fileprivate func reading(since made: String? = nil, for channel: any Channel) -> LiveReading? {
    let reading = state.withLock { state -> LiveReading? in
      if let index = state.connections.firstIndex(where: { $0.channel === channel }) {
        state.connections[index].isAccepted = true
      }
      if state.reading.made != made { return state.reading }
      state.waiting.append(channel)
      return nil
    }
    if reading == nil { happened.yield() }
    return reading
  }
}

/// A connection: reads one request and answers it. Input after the request is dropped.
private final class LiveHandler: ChannelInboundHandler {
  typealias InboundIn = HTTPServerRequestPart
  typealias OutboundOut = HTTPServerResponsePart

  private enum Mode {
    case request, change, answered
  }

  private let server: LiveServer
  private var mode = Mode.request
  private var timer: Scheduled<Void>?

  init(_ server: LiveServer) { self.server = server }

  func channelActive(context: ChannelHandlerContext) {
    closes(context, after: LiveServer.Time.request)
    server.opened(context.channel)
  }

  func channelInactive(context: ChannelHandlerContext) {
    timer?.cancel()
    server.closed(context.channel)
  }

  func channelRead(context: ChannelHandlerContext, data: NIOAny) {
    guard mode == .request, case .head(let head) = unwrapInboundIn(data) else { return }
    switch server.address(of: context.channel).request(head) {
    case .refused(let status):
      refuse(status, context, hasBody: head.method != .HEAD)
    case .page:
      guard let reading = server.reading(for: context.channel) else { return }
      respond(LiveResponse(mediaType: "text/html; charset=utf-8", body: reading.page()), context)
    case .changes(let made):
      mode = .change
      if let reading = server.reading(since: made, for: context.channel) { return respond(reading, context) }
      after(LiveServer.Time.change, context) { [self] in respond(LiveResponse(status: .noContent), context) }
    }
  }

  func userInboundEventTriggered(context: ChannelHandlerContext, event: Any) {
    if mode == .change, let reading = event as? LiveReading { return respond(reading, context) }
    context.fireUserInboundEventTriggered(event)
  }

  func errorCaught(context: ChannelHandlerContext, error: any Error) {
    guard mode == .request else { return context.close(promise: nil) }
    switch error {
    case HTTPParserError.headerOverflow, is ByteToMessageDecoderError.PayloadTooLargeError:
      refuse(.requestHeaderFieldsTooLarge, context)
    case is HTTPParserError: refuse(.badRequest, context)
    default: context.close(promise: nil)
    }
  }

  private func refuse(_ status: HTTPResponseStatus, _ context: ChannelHandlerContext, hasBody: Bool = true) {
    let body = ByteBuffer(string: "\(status.code) \(status.reasonPhrase)\n")
    respond(LiveResponse(status: status, body: hasBody ? body : nil), context)
  }

  private func respond(_ reading: LiveReading, _ context: ChannelHandlerContext) {
    respond(LiveResponse(mediaType: "application/json", body: reading.data), context)
  }

  /// The peer closes the connection when it has everything.
  private func respond(_ response: LiveResponse, _ context: ChannelHandlerContext) {
    mode = .answered
    closes(context, after: LiveServer.Time.response)
    context.write(wrapOutboundOut(.head(response.head)), promise: nil)
    if let body = response.body { context.write(wrapOutboundOut(.body(.byteBuffer(body))), promise: nil) }
    let written = context.eventLoop.makePromise(of: Void.self)
    written.futureResult.assumeIsolated().whenComplete { _ in context.close(mode: .output, promise: nil) }
    context.writeAndFlush(wrapOutboundOut(.end(nil)), promise: written)
  }

  private func closes(_ context: ChannelHandlerContext, after time: TimeAmount) {
    after(time, context) { context.close(promise: nil) }
  }

  private func after(_ time: TimeAmount, _ context: ChannelHandlerContext, _ body: @escaping () -> Void) {
    timer?.cancel()
    timer = context.eventLoop.assumeIsolated().scheduleTask(in: time, body)
  }
}
