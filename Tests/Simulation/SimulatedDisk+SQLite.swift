// SPDX-License-Identifier: Apache-2.0

internal import CSQLite
internal import Glibc
internal import SeededRandom

/// One file as SQLite has it open.
private final class Handle {
  let content: SimulatedDisk.Content
  let path: String
  let disk: SimulatedDisk
  let process: Int
  /// Like the system's layer, the first sync of a log makes its name durable as well.
  var isNew: Bool
  var systemError: Int32 = 0

  init(_ content: SimulatedDisk.Content, _ path: String, of disk: SimulatedDisk, isNew: Bool) {
    (self.content, self.path, self.disk, process, self.isNew) = (content, path, disk, disk.process, isNew)
  }

  func fail(_ call: SimulatedDisk.Call) -> Bool {
    guard let code = disk.fail(call, of: process) else { return false }
    systemError = code
    return true
  }
}

/// What SQLite allocates for a file: its own part first.
private struct FileSlot {
  var base: sqlite3_file
  var handle: Unmanaged<Handle>?
}

private func handle(_ file: UnsafeMutablePointer<sqlite3_file>?) -> Handle? {
  guard let file else { return nil }
  return UnsafeMutableRawPointer(file).assumingMemoryBound(to: FileSlot.self).pointee.handle?.takeUnretainedValue()
}

private func disk(_ layer: UnsafeMutablePointer<sqlite3_vfs>?) -> SimulatedDisk? {
  guard let data = layer?.pointee.pAppData else { return nil }
  return Unmanaged<SimulatedDisk>.fromOpaque(data).takeUnretainedValue()
}

/// The extended codes are cast macros, which are not imported.
private enum ResultCode {
  static let read = SQLITE_IOERR | 1 << 8
  static let shortRead = SQLITE_IOERR | 2 << 8
  static let write = SQLITE_IOERR | 3 << 8
  static let sync = SQLITE_IOERR | 4 << 8
  static let truncate = SQLITE_IOERR | 6 << 8
  static let status = SQLITE_IOERR | 7 << 8
  static let delete = SQLITE_IOERR | 10 << 8
  static let access = SQLITE_IOERR | 13 << 8
}

extension SimulatedDisk {
  /// Makes the disk known to SQLite under its name.
  func register() {
    let layer = UnsafeMutablePointer<sqlite3_vfs>.allocate(capacity: 1)
    layer.initialize(to: sqlite3_vfs())
    layer.pointee.iVersion = 1
    layer.pointee.szOsFile = Int32(MemoryLayout<FileSlot>.size)
    layer.pointee.mxPathname = 512
    layer.pointee.zName = UnsafePointer(strdup(sqliteNameText))
    layer.pointee.pAppData = Unmanaged.passUnretained(self).toOpaque()
    layer.pointee.xOpen = { layer, name, file, flags, outFlags in
      guard let disk = disk(layer), let file else { return SQLITE_ERROR }
      return disk.open(name.map { String(cString: $0) }, file, flags, outFlags)
    }
    layer.pointee.xDelete = { layer, name, isSynced in
      guard let disk = disk(layer), let name else { return SQLITE_ERROR }
      if disk.fail(.other, of: disk.process) != nil { return ResultCode.delete }
      guard disk.content(String(cString: name)) != nil else { return SQLITE_IOERR | 23 << 8 }
      disk.setName(String(cString: name), nil)
      if isSynced != 0 {
        if disk.fail(.sync, of: disk.process) != nil { return SQLITE_IOERR | 5 << 8 }
        disk.syncNames()
      }
      return SQLITE_OK
    }
    layer.pointee.xAccess = { layer, name, _, result in
      guard let disk = disk(layer), let name, let result else { return SQLITE_ERROR }
      if disk.fail(.other, of: disk.process) != nil { return ResultCode.access }
      result.pointee = disk.content(String(cString: name)) != nil ? 1 : 0
      return SQLITE_OK
    }
    layer.pointee.xFullPathname = { _, name, size, result in
      guard let name, let result, strlen(name) < Int(size) else { return SQLITE_CANTOPEN }
      strcpy(result, name)
      return SQLITE_OK
    }
    layer.pointee.xRandomness = { layer, count, bytes in
      guard let disk = disk(layer), let bytes else { return 0 }
      for index in 0..<Int(count) { bytes[index] = CChar(truncatingIfNeeded: disk.chance.next()) }
      return count
    }
    layer.pointee.xSleep = { _, microseconds in microseconds }
    layer.pointee.xCurrentTime = { _, days in
      days?.pointee = 2_460_000
      return SQLITE_OK
    }
    layer.pointee.xGetLastError = { _, _, _ in 0 }
    self.layer = layer
    sqlite3_vfs_register(layer, 0)
  }

  func unregister() {
    guard let layer else { return }
    sqlite3_vfs_unregister(layer)
    free(UnsafeMutableRawPointer(mutating: layer.pointee.zName))
    layer.deallocate()
  }

  private func open(
    _ name: String?,
    _ file: UnsafeMutablePointer<sqlite3_file>,
    _ flags: Int32,
    _ outFlags: UnsafeMutablePointer<Int32>?
  ) -> Int32 {
    let slot = UnsafeMutableRawPointer(file).bindMemory(to: FileSlot.self, capacity: 1)
    slot.initialize(to: FileSlot(base: sqlite3_file(), handle: nil))
    if fail(.other, of: process) != nil { return SQLITE_CANTOPEN }
    var content = name.flatMap { self.content($0) }
    let isLog = flags & (SQLITE_OPEN_WAL | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_SUPER_JOURNAL) != 0
    if content == nil {
      guard name == nil || flags & SQLITE_OPEN_CREATE != 0 else { return SQLITE_CANTOPEN }
      content = Content()
      if let name { setName(name, content) }
    }
    guard let content else { return SQLITE_CANTOPEN }
    slot.pointee.handle = Unmanaged.passRetained(
      Handle(content, name ?? "", of: self, isNew: isLog && flags & SQLITE_OPEN_CREATE != 0)
    )
    slot.pointee.base.pMethods = UnsafePointer(Self.methods)
    outFlags?.pointee = flags
    return SQLITE_OK
  }

  private static nonisolated(unsafe) let methods: UnsafeMutablePointer<sqlite3_io_methods> = {
    let table = UnsafeMutablePointer<sqlite3_io_methods>.allocate(capacity: 1)
    table.initialize(to: sqlite3_io_methods())
    table.pointee.iVersion = 1
    table.pointee.xClose = { file in
      guard let file else { return SQLITE_OK }
      let slot = UnsafeMutableRawPointer(file).assumingMemoryBound(to: FileSlot.self)
      slot.pointee.handle?.release()
      slot.pointee.handle = nil
      return SQLITE_OK
    }
    table.pointee.xRead = { file, buffer, count, offset in
      guard let handle = handle(file), let buffer else { return ResultCode.read }
      if handle.fail(.read) { return ResultCode.read }
      let bytes = handle.content.bytes.dropFirst(Int(offset)).prefix(Int(count))
      let target = UnsafeMutableRawBufferPointer(start: buffer, count: Int(count))
      target.copyBytes(from: bytes)
      guard bytes.count < Int(count) else { return SQLITE_OK }
      memset(buffer + bytes.count, 0, Int(count) - bytes.count)
      return ResultCode.shortRead
    }
    table.pointee.xWrite = { file, buffer, count, offset in
      guard let handle = handle(file), let buffer else { return ResultCode.write }
      if handle.fail(.write) { return handle.systemError == ENOSPC ? SQLITE_FULL : ResultCode.write }
      let bytes = UnsafeRawBufferPointer(start: buffer, count: Int(count))
      guard let code = handle.disk.write(bytes, to: handle.content, at: Int(offset)) else { return SQLITE_OK }
      handle.systemError = code
      return SQLITE_FULL
    }
    table.pointee.xTruncate = { file, size in
      guard let handle = handle(file) else { return ResultCode.truncate }
      if handle.fail(.write) { return ResultCode.truncate }
      handle.disk.truncate(handle.content, to: Int(size))
      return SQLITE_OK
    }
    table.pointee.xSync = { file, _ in
      guard let handle = handle(file) else { return ResultCode.sync }
      if handle.fail(.sync) {
        if handle.disk.isAlive(handle.process) { handle.content.failSync() }
        return ResultCode.sync
      }
      handle.content.sync()
      if handle.isNew {
        handle.isNew = false
        handle.disk.syncNames()
      }
      return SQLITE_OK
    }
    table.pointee.xFileSize = { file, size in
      guard let handle = handle(file), let size else { return ResultCode.status }
      if handle.fail(.other) { return ResultCode.status }
      size.pointee = sqlite3_int64(handle.content.bytes.count)
      return SQLITE_OK
    }
    table.pointee.xLock = { _, _ in SQLITE_OK }
    table.pointee.xUnlock = { _, _ in SQLITE_OK }
    table.pointee.xCheckReservedLock = { _, result in
      result?.pointee = 0
      return SQLITE_OK
    }
    table.pointee.xFileControl = { file, operation, argument in
      guard let handle = handle(file), let number = argument?.assumingMemoryBound(to: Int32.self) else {
        return SQLITE_NOTFOUND
      }
      switch operation {
      case SQLITE_FCNTL_LAST_ERRNO: number.pointee = handle.systemError
      case SQLITE_FCNTL_HAS_MOVED: number.pointee = handle.disk.content(handle.path) === handle.content ? 0 : 1
      default: return SQLITE_NOTFOUND
      }
      return SQLITE_OK
    }
    table.pointee.xSectorSize = { _ in 4_096 }
    table.pointee.xDeviceCharacteristics = { _ in SQLITE_IOCAP_POWERSAFE_OVERWRITE }
    return table
  }()
}
