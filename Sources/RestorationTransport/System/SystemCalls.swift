// SPDX-License-Identifier: Apache-2.0

internal import CLinux
internal import Glibc

struct SystemCallError: Error, Hashable, Sendable {
  let call: String
  let number: Int32

  var reason: String {
    guard let text = strerror(number) else { return "error \(number)" }
    return String(cString: text)
  }

  /// Whether the system had no descriptor or memory left.
  var isExhaustion: Bool { [EMFILE, ENFILE, ENOMEM, ENOBUFS].contains(number) }

  static let notFound = ENOENT
  static let exists = EEXIST
  static let notPermitted = EPERM
  static let accessDenied = EACCES
  static let connectionRefused = ECONNREFUSED
  static let wouldBlock = EWOULDBLOCK
  static let noProtocolOption = ENOPROTOOPT
}

/// One Swift function for each C call of this module; the only file that imports Glibc.
///
/// The functions repeat a call after EINTR if that is safe. All descriptors close on exec.
enum SystemCalls {
  /// Repeats `body` while a signal interrupts it. A negative value is an error.
  private static func checked<Value: BinaryInteger>(
    _ call: String,
    _ body: () -> Value
  ) throws(SystemCallError) -> Value {
    while true {
      let value = body()
      if value >= 0 { return value }
      let number = errno
      if number != EINTR { throw SystemCallError(call: call, number: number) }
    }
  }

  // MARK: Files

  static var userID: UInt32 { geteuid() }
  static var processID: Int32 { getpid() }

  /// Opens a name with O_PATH, without following a link; for `status` and `changeMode`.
  static func openName(_ path: String) throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("open") { open(path, clinux_o_path | O_NOFOLLOW | O_CLOEXEC) })
  }

  static func openForReading(_ path: String) throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("open") { open(path, O_RDONLY | O_CLOEXEC) })
  }

  /// Opens a file for reading and writing. A missing file is created with mode 0600; a symbolic link is an error.
  static func openOrCreate(_ path: String) throws(SystemCallError) -> Descriptor {
    Descriptor(
      try checked("open") { open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY, 0o600) }
    )
  }

  /// Never repeated: Linux has freed the number even after EINTR.
  static func close(_ descriptor: Int32) { _ = Glibc.close(descriptor) }

  static func read(_ descriptor: Int32, count: Int) throws(SystemCallError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    let length = try checked("read") { Glibc.read(descriptor, &bytes, count) }
    bytes.removeLast(count - length)
    return bytes
  }

  /// The first `bytesMax` bytes of a regular file; reading anything else could block.
  static func contents(
    of path: String,
    bytesMax: Int,
    followsLink: Bool = true
  ) throws(SystemCallError) -> [UInt8] {
    let flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | (followsLink ? 0 : O_NOFOLLOW)
    let file = Descriptor(try checked("open") { open(path, flags) })
    var status = stat()
    _ = try checked("fstat") { fstat(file.number, &status) }
    switch status.st_mode & S_IFMT {
    case S_IFREG: break
    case S_IFDIR: throw SystemCallError(call: "open", number: EISDIR)
    default: throw SystemCallError(call: "open (not a regular file)", number: EINVAL)
    }
    var bytes: [UInt8] = []
    while bytes.count < bytesMax {
      let next = try read(file.number, count: min(1 << 16, bytesMax - bytes.count))
      if next.isEmpty { break }
      bytes += next
    }
    return bytes
  }

  /// Replaces a small file's contents in place by one write, then truncates the file.
  static func overwrite(_ descriptor: Int32, with bytes: [UInt8]) throws(SystemCallError) {
    let count = try checked("pwrite") { pwrite(descriptor, bytes, bytes.count, 0) }
    // Only a full disk takes part of so little.
    if count < bytes.count { throw SystemCallError(call: "pwrite", number: ENOSPC) }
    _ = try checked("ftruncate") { ftruncate(descriptor, off_t(bytes.count)) }
  }

  /// Makes a file or directory durable. Never repeated: a second call would report success for lost data.
  static func sync(_ descriptor: Int32) throws(SystemCallError) {
    if fsync(descriptor) != 0 { throw SystemCallError(call: "fsync", number: errno) }
  }

  static func status(of descriptor: Int32) throws(SystemCallError) -> FileStatus {
    var status = stat()
    _ = try checked("fstat") { fstat(descriptor, &status) }
    return FileStatus(status)
  }

  /// Does not follow a symbolic link.
  static func status(of path: String) throws(SystemCallError) -> FileStatus {
    var status = stat()
    _ = try checked("lstat") { lstat(path, &status) }
    return FileStatus(status)
  }

  /// Follows a symbolic link.
  static func status(ofTarget path: String) throws(SystemCallError) -> FileStatus {
    var status = stat()
    _ = try checked("stat") { stat(path, &status) }
    return FileStatus(status)
  }

  /// The mode is 0700 less the umask.
  static func createDirectory(_ path: String) throws(SystemCallError) {
    _ = try checked("mkdir") { mkdir(path, 0o700) }
  }

  static func changeMode(of descriptor: Int32, to mode: UInt32) throws(SystemCallError) {
    _ = try checked("fchmod") { fchmod(descriptor, mode) }
  }

  /// Follows a symbolic link.
  static func changeMode(of path: String, to mode: UInt32) throws(SystemCallError) {
    _ = try checked("chmod") { chmod(path, mode) }
  }

  static func unlink(_ path: String) throws(SystemCallError) { _ = try checked("unlink") { Glibc.unlink(path) } }

  /// Takes the exclusive lock of an open file without waiting; false if another descriptor holds it.
  static func tryLock(_ descriptor: Int32) throws(SystemCallError) -> Bool {
    do throws(SystemCallError) {
      _ = try checked("flock") { flock(descriptor, LOCK_EX | LOCK_NB) }
      return true
    } catch {
      if error.number == EWOULDBLOCK { return false }
      throw error
    }
  }

  /// Releases the lock of an open file, even if a forked process shares the descriptor.
  static func unlock(_ descriptor: Int32) { _ = flock(descriptor, LOCK_UN) }

  static func setCloseOnExec(_ descriptor: Int32) throws(SystemCallError) {
    _ = try checked("fcntl") { fcntl(descriptor, F_SETFD, FD_CLOEXEC) }
  }

  // MARK: Sockets

  private static let streamType = Int32(SOCK_STREAM.rawValue)
  private static let creationFlags = Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)

  /// A non-blocking Unix stream socket.
  static func unixSocket() throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("socket") { socket(AF_UNIX, streamType | creationFlags, 0) })
  }

  /// The path has at most 107 bytes (`SocketPath`).
  static func bind(_ descriptor: Int32, to path: String) throws(SystemCallError) {
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try checked("bind") { Glibc.bind(descriptor, address, length) }
    }
  }

  /// Does not wait for room in the listener's queue.
  static func connect(_ descriptor: Int32, to path: String) throws(SystemCallError) {
    try withAddress(path) { (address, length) throws(SystemCallError) in
      _ = try checked("connect") { Glibc.connect(descriptor, address, length) }
    }
  }

  /// Sends what the kernel takes now; 0 also after an error. Never raises SIGPIPE.
  static func send(_ descriptor: Int32, _ bytes: UnsafeRawBufferPointer) -> Int {
    let flags = Int32(MSG_NOSIGNAL) | Int32(MSG_DONTWAIT)
    let count = try? checked("send") { Glibc.send(descriptor, bytes.baseAddress, bytes.count, flags) }
    return count ?? 0
  }

  /// Ends a connection for the peer, even if other processes hold the socket.
  static func shutDown(_ descriptor: Int32) { _ = Glibc.shutdown(descriptor, Int32(SHUT_RDWR)) }

  /// - Parameter backlog: how many connections may wait.
  static func listen(_ descriptor: Int32, backlog: Int32) throws(SystemCallError) {
    _ = try checked("listen") { Glibc.listen(descriptor, backlog) }
  }

  static func isUnixStream(_ descriptor: Int32, listening: Bool) throws(SystemCallError) -> Bool {
    let domain = try intOption(SO_DOMAIN, of: descriptor)
    let type = try intOption(SO_TYPE, of: descriptor)
    let isListening = try intOption(SO_ACCEPTCONN, of: descriptor) != 0
    return domain == AF_UNIX && type == streamType && isListening == listening
  }

  /// Makes the kernel refuse descriptors that are sent with data (since 6.16). Older kernels drop them at each read.
  static func refuseDescriptors(_ descriptor: Int32) {
    var value: Int32 = 0
    _ = setsockopt(descriptor, SOL_SOCKET, clinux_so_passrights, &value, socklen_t(MemoryLayout<Int32>.size))
  }

  /// The process that called `connect` (for an accepted socket) or `listen` (for a connected one), at that moment.
  static func peer(of descriptor: Int32) throws(SystemCallError) -> (pid: Int32, uid: UInt32, gid: UInt32) {
    var value = clinux_ucred()
    var length = socklen_t(MemoryLayout<clinux_ucred>.size)
    _ = try checked("getsockopt") { getsockopt(descriptor, SOL_SOCKET, SO_PEERCRED, &value, &length) }
    return (value.pid, value.uid, value.gid)
  }

  static func peerProcess(of descriptor: Int32) throws(SystemCallError) -> Descriptor {
    Descriptor(try intOption(clinux_so_peerpidfd, of: descriptor))
  }

  private static func intOption(_ name: Int32, of descriptor: Int32) throws(SystemCallError) -> Int32 {
    var value: Int32 = 0
    var length = socklen_t(MemoryLayout<Int32>.size)
    _ = try checked("getsockopt") { getsockopt(descriptor, SOL_SOCKET, name, &value, &length) }
    return value
  }

  private static func withAddress(
    _ path: String,
    _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemCallError) -> Void
  ) throws(SystemCallError) {
    var address = sockaddr_un()
    address.sun_family = sa_family_t(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { field in
      // The last byte of the field stays NUL.
      for (offset, byte) in path.utf8.prefix(field.count - 1).enumerated() { field[offset] = byte }
    }
    let length = socklen_t(MemoryLayout<sockaddr_un>.size)
    try withUnsafePointer(to: &address) { (pointer) throws(SystemCallError) in
      try pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (pointer) throws(SystemCallError) in
        try body(pointer, length)
      }
    }
  }

  // MARK: Processes

  /// A pidfd, which becomes readable when the process ends.
  static func openProcess(_ pid: Int32) throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("pidfd_open") { clinux_pidfd_open(pid) })
  }

  /// The wait status of a process whose parent has waited for it. Throws if the kernel does not know it.
  static func exitStatus(_ process: Int32) throws(SystemCallError) -> Int32 {
    var status: Int32 = 0
    _ = try checked("ioctl") { clinux_pidfd_exit_status(process, &status) }
    return status
  }

  /// Does not wait.
  static func isReadable(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
    return ((try? checked("poll") { poll(&entry, 1, 0) }) ?? 0) > 0 && entry.revents & Int16(POLLIN) != 0
  }

  /// Whether the other end of a connected socket is closed in both directions.
  static func isHungUp(_ descriptor: Int32) -> Bool {
    var entry = pollfd(fd: descriptor, events: 0, revents: 0)
    return ((try? checked("poll") { poll(&entry, 1, 0) }) ?? 0) > 0 && entry.revents & Int16(POLLHUP) != 0
  }

  // MARK: Surroundings

  /// Milliseconds since 1970, UTC, by a clock that people may set.
  static var wallMilliseconds: Int64 { milliseconds(of: CLOCK_REALTIME) }

  /// Milliseconds of clocks that never go back, without and with the machine's sleep.
  static var monotonicMilliseconds: Int64 { milliseconds(of: CLOCK_MONOTONIC) }
  static var bootMilliseconds: Int64 { milliseconds(of: CLOCK_BOOTTIME) }

  static var threadNanoseconds: Int64 { nanoseconds(of: CLOCK_THREAD_CPUTIME_ID) }

  private static func milliseconds(of clock: clockid_t) -> Int64 { nanoseconds(of: clock) / 1_000_000 }

  private static func nanoseconds(of clock: clockid_t) -> Int64 {
    var time = timespec()
    clock_gettime(clock, &time)
    return Int64(time.tv_sec) * 1_000_000_000 + Int64(time.tv_nsec)
  }

  /// `nil` if the variable is not set.
  static func environment(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

  /// Lets this process open at least `count` descriptors, within the hard limit. Returns how many it may open now.
  static func raiseDescriptorLimit(to count: Int) throws(SystemCallError) -> Int {
    let resource = __rlimit_resource_t(RLIMIT_NOFILE.rawValue)
    var limit = rlimit()
    _ = try checked("getrlimit") { getrlimit(resource, &limit) }
    let wanted = min(max(limit.rlim_cur, rlim_t(max(0, count))), limit.rlim_max)
    if wanted > limit.rlim_cur {
      limit.rlim_cur = wanted
      _ = try checked("setrlimit") { setrlimit(resource, &limit) }
    }
    return Int(clamping: wanted)
  }

  // MARK: Waiting

  static func epoll() throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("epoll_create1") { epoll_create1(Int32(EPOLL_CLOEXEC)) })
  }

  /// The set reports the descriptor while it is readable.
  static func epollAdd(_ set: Int32, _ descriptor: Int32) throws(SystemCallError) {
    var event = epoll_event()
    event.events = EPOLLIN.rawValue
    event.data.fd = descriptor
    _ = try checked("epoll_ctl") { epoll_ctl(set, EPOLL_CTL_ADD, descriptor, &event) }
  }

  static func epollRemove(_ set: Int32, _ descriptor: Int32) throws(SystemCallError) {
    _ = try checked("epoll_ctl") { epoll_ctl(set, EPOLL_CTL_DEL, descriptor, nil) }
  }

  /// Waits without a limit, and returns the readable descriptors of the set.
  static func epollWait(_ set: Int32) throws(SystemCallError) -> [Int32] {
    var events = [epoll_event](repeating: epoll_event(), count: 64)
    let count = try checked("epoll_wait") { epoll_wait(set, &events, Int32(events.count), -1) }
    return events.prefix(Int(count)).map(\.data.fd)
  }

  static func eventCounter() throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("eventfd") { eventfd(0, Int32(EFD_CLOEXEC) | Int32(EFD_NONBLOCK)) })
  }

  /// Makes an event counter readable.
  static func signal(_ counter: Int32) {
    // EAGAIN means that the counter is full, so it is readable already.
    _ = eventfd_write(counter, 1)
  }

  // MARK: Memory

  /// Memory with a descriptor; `name` is only for debugging.
  static func memoryFile(_ name: String) throws(SystemCallError) -> Descriptor {
    Descriptor(try checked("memfd_create") { clinux_memfd_create(name) })
  }

  static func size(of file: Int32) throws(SystemCallError) -> Int {
    var status = stat()
    _ = try checked("fstat") { fstat(file, &status) }
    return Int(status.st_size)
  }

  static func resize(_ file: Int32, to bytes: Int) throws(SystemCallError) {
    _ = try checked("ftruncate") { ftruncate(file, off_t(bytes)) }
  }

  /// Maps the first bytes of a file as shared memory.
  static func map(_ file: Int32, bytes: Int) throws(SystemCallError) -> UnsafeMutableRawPointer {
    let address = mmap(nil, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0)
    guard let address, address != MAP_FAILED else { throw SystemCallError(call: "mmap", number: errno) }
    return address
  }

  static func unmap(_ address: UnsafeMutableRawPointer, bytes: Int) { munmap(address, bytes) }

  static func write(_ file: Int32, _ bytes: [UInt8], at offset: Int) throws(SystemCallError) {
    var done = 0
    while done < bytes.count {
      done += try checked("pwrite") {
        bytes.withUnsafeBytes { bytes in
          let rest = UnsafeRawBufferPointer(rebasing: bytes[done...])
          return pwrite(file, rest.baseAddress, rest.count, off_t(offset + done))
        }
      }
    }
  }

  /// Reads `count` bytes, fewer at the end of the file.
  static func read(_ file: Int32, count: Int, at offset: Int) throws(SystemCallError) -> [UInt8] {
    var bytes = [UInt8](repeating: 0, count: count)
    var done = 0
    while done < count {
      let length = try checked("pread") {
        bytes.withUnsafeMutableBytes { bytes in
          let rest = UnsafeMutableRawBufferPointer(rebasing: bytes[done...])
          return pread(file, rest.baseAddress, rest.count, off_t(offset + done))
        }
      }
      if length == 0 { break }
      done += length
    }
    bytes.removeLast(count - done)
    return bytes
  }

  // MARK: Threads

  /// Starts a thread that blocks all signals. It must be joined.
  static func startThread(_ body: @escaping @Sendable () -> Void) throws(SystemCallError) -> Thread {
    let argument = Unmanaged.passRetained(ThreadBody(run: body))
    var thread = pthread_t()
    let result = pthread_create(
      &thread,
      nil,
      { argument in
        guard let argument else { return nil }
        var signals = sigset_t()
        sigfillset(&signals)
        pthread_sigmask(SIG_BLOCK, &signals, nil)
        Unmanaged<ThreadBody>.fromOpaque(argument).takeRetainedValue().run()
        return nil
      },
      argument.toOpaque()
    )
    guard result == 0 else {
      argument.release()
      throw SystemCallError(call: "pthread_create", number: result)
    }
    return Thread(id: thread)
  }

  /// Waits for the thread's end. On the thread itself, detaches it instead.
  static func join(_ thread: Thread) {
    if pthread_equal(thread.id, pthread_self()) != 0 {
      pthread_detach(thread.id)
    } else {
      pthread_join(thread.id, nil)
    }
  }

  /// A started thread; join it once.
  struct Thread: Sendable {
    fileprivate let id: pthread_t
  }

  private final class ThreadBody: Sendable {
    let run: @Sendable () -> Void

    init(run: @escaping @Sendable () -> Void) { self.run = run }
  }
}

extension FileStatus {
  fileprivate init(_ status: stat) {
    let kind: Kind =
      switch status.st_mode & S_IFMT {
      case S_IFDIR: .directory
      case S_IFREG: .regular
      case S_IFSOCK: .socket
      case S_IFLNK: .symbolicLink
      default: .other
      }
    self.init(
      kind: kind,
      owner: status.st_uid,
      mode: status.st_mode & 0o7777,
      device: UInt64(status.st_dev),
      inode: UInt64(status.st_ino)
    )
  }
}

extension SystemCalls {
  /// Makes the event loop's epoll set close on exec; NIO creates it without the flag, so that child programs would
  /// inherit it. The set is found by a descriptor that the loop watches.
  static func closeEventLoopOnExec(watching descriptor: Int32) { clinux_close_epolls_on_exec(descriptor) }

  /// Returns the allocator's free memory to the kernel.
  static func trimMemory() { _ = malloc_trim(0) }

  /// Limits the free memory at the end of each thread's heap, which `trimMemory` does not reach, to a mebibyte. By
  /// default the allocator keeps more after each longer block. Threads share two heaps, because free memory in a
  /// separate heap is of no use to others.
  static func keepLittleMemory() {
    _ = mallopt(M_ARENA_MAX, 2)
    _ = mallopt(M_TRIM_THRESHOLD, 1 << 20)
    _ = mallopt(M_MMAP_THRESHOLD, 4 << 20)
  }
}
