// SPDX-License-Identifier: Apache-2.0

internal import Glibc

enum DetachedThread {
  /// False if the system has no thread left.
  @discardableResult
  static func start(_ body: @escaping @Sendable () -> Void) -> Bool {
    let argument = Unmanaged.passRetained(Body(run: body))
    var thread = pthread_t()
    guard pthread_create(&thread, nil, run, argument.toOpaque()) == 0 else {
      argument.release()
      return false
    }
    pthread_detach(thread)
    return true
  }

  private static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { argument in
    if let argument { Unmanaged<Body>.fromOpaque(argument).takeRetainedValue().run() }
    return nil
  }

  private final class Body: Sendable {
    let run: @Sendable () -> Void

    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}
