// SPDX-License-Identifier: Apache-2.0

internal import CSystemd
internal import Glibc

package enum BackgroundThread {
  /// The thread takes no signals and is never joined. False if the system has no thread left.
  package static func start(_ name: StaticString, _ body: @escaping @Sendable () -> Void) -> Bool {
    // Signals are for the thread that waits for them; the new one inherits this mask.
    var all = sigset_t()
    var former = sigset_t()
    sigfillset(&all)
    pthread_sigmask(SIG_SETMASK, &all, &former)
    let argument = Unmanaged.passRetained(Body(name: name, run: body)).toOpaque()
    var thread = pthread_t()
    let result = pthread_create(&thread, nil, run, argument)
    pthread_sigmask(SIG_SETMASK, &former, nil)
    if result == 0 {
      pthread_detach(thread)
    } else {
      Unmanaged<Body>.fromOpaque(argument).release()
    }
    return result == 0
  }

  private static let run: @convention(c) (UnsafeMutableRawPointer?) -> UnsafeMutableRawPointer? = { argument in
    guard let argument else { return nil }
    let body = Unmanaged<Body>.fromOpaque(argument).takeRetainedValue()
    nameThread(body.name)
    body.run()
    return nil
  }

  private final class Body: Sendable {
    let name: StaticString
    let run: @Sendable () -> Void

    init(name: StaticString, run: @escaping @Sendable () -> Void) { (self.name, self.run) = (name, run) }
  }

  /// For `ps -L` and debuggers.
  private static func nameThread(_ name: StaticString) {
    let descriptor = open("/proc/thread-self/comm", O_WRONLY | O_CLOEXEC)
    guard descriptor >= 0 else { return }
    _ = write(descriptor, name.utf8Start, name.utf8CodeUnitCount)
    close(descriptor)
  }
}

/// Wakes up a thread that waits; a signal before the wait is not lost.
package final class WakeUp: Sendable {
  let descriptor: Int32

  /// `nil` if no descriptor is left.
  package init?() {
    descriptor = eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK))
    guard descriptor >= 0 else { return nil }
  }

  deinit {
    if descriptor >= 0 { close(descriptor) }
  }

  package func signal() { eventfd_write(descriptor, 1) }

  /// Waits for a signal and takes it. After an interruption the result is true as well.
  ///
  /// - Parameter milliseconds: the longest wait; without end if negative.
  /// - Returns: false if this time has passed.
  @discardableResult
  package func wait(milliseconds: Int32 = -1) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    let count = poll(&entry, 1, milliseconds)
    clear()
    return count != 0
  }

  func clear() {
    var count: eventfd_t = 0
    eventfd_read(descriptor, &count)
  }
}
