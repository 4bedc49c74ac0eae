// SPDX-License-Identifier: Apache-2.0

internal import NIOCore
internal import NIOPosix

/// A server that is not a broker: sends one text to each connection and reads nothing.
enum RawListener {
  static func run(_ path: String, says text: String, _ body: (String) async throws -> Void) async throws {
    let group = MultiThreadedEventLoopGroup(numberOfThreads: 1)
    do {
      let channel = try await ServerBootstrap(group: group)
        .childChannelInitializer { channel in
          channel.eventLoop.makeCompletedFuture {
            try channel.pipeline.syncOperations.addHandler(Greeting(text: text))
          }
        }
        .bind(unixDomainSocketPath: path)
        .get()
      try await body(path)
      try await channel.close()
    } catch {
      try await group.shutdownGracefully()
      throw error
    }
    try await group.shutdownGracefully()
  }

  private final class Greeting: ChannelInboundHandler {
    typealias InboundIn = ByteBuffer
    typealias OutboundOut = ByteBuffer

    private let text: String

    init(text: String) { self.text = text }

    func channelActive(context: ChannelHandlerContext) {
      context.writeAndFlush(wrapOutboundOut(ByteBuffer(string: text)), promise: nil)
    }
  }
}
