// SPDX-License-Identifier: Apache-2.0

/// The unanswered requests of a peer.
///
/// A slot is reused after its request is answered; the serial number in a `Call` distinguishes the two. Ids are
/// compared by fingerprint first, over a flat array: faster than hashing for the few that are in flight.
struct PendingCalls {
  struct Slot {
    var id: RequestID
    var serial: UInt32
    var batch: Batches.Key?
    var bytes: Int
    var isParked: Bool
    var expectedBytes = 0
  }

  private var slots: [Slot?] = []
  /// Of each slot; 0 for a free one, though a used one may have 0 as well.
  private var fingerprints: [UInt64] = []
  private var free: [UInt32] = []
  private var lastSerial: UInt32 = 0

  private(set) var inFlight = 0
  private(set) var parked = 0
  /// Bytes of the answers announced by `expect`.
  private(set) var expectedBytes = 0

  var isEmpty: Bool { inFlight + parked == 0 }

  /// `nil` if a request with this id exists already.
  ///
  /// - Parameter bytes: the memory of its frame, or its share of a batch's.
  mutating func add(_ id: RequestID, batch: Batches.Key?, bytes: Int) -> Conversation.Call? {
    let fingerprint = id.fingerprint
    guard isEmpty || find(id, fingerprint: fingerprint) == nil else { return nil }
    lastSerial &+= 1
    let slot = Slot(id: id, serial: lastSerial, batch: batch, bytes: bytes, isParked: false)
    inFlight += 1
    if let index = free.popLast() {
      slots[Int(index)] = slot
      fingerprints[Int(index)] = fingerprint
      return Conversation.Call(slot: index, serial: lastSerial)
    }
    slots.append(slot)
    fingerprints.append(fingerprint)
    return Conversation.Call(slot: UInt32(slots.count - 1), serial: lastSerial)
  }

  /// `nil` if the call was answered before.
  mutating func remove(_ call: Conversation.Call) -> Slot? {
    guard let slot = slot(of: call) else { return nil }
    if slot.isParked { parked -= 1 } else { inFlight -= 1 }
    expectedBytes -= slot.expectedBytes
    if isEmpty, slots.count > 16 {
      slots.removeAll()
      fingerprints.removeAll()
      free.removeAll()
    } else {
      slots[Int(call.slot)] = nil
      fingerprints[Int(call.slot)] = 0
      free.append(call.slot)
    }
    return slot
  }

  mutating func setParked(_ isParked: Bool, _ call: Conversation.Call) {
    guard let slot = slot(of: call), slot.isParked != isParked else { return }
    slots[Int(call.slot)]?.isParked = isParked
    parked += isParked ? 1 : -1
    inFlight += isParked ? -1 : 1
  }

  mutating func expect(_ bytes: Int, from call: Conversation.Call) {
    guard let slot = slot(of: call) else { return }
    expectedBytes += bytes - slot.expectedBytes
    slots[Int(call.slot)]?.expectedBytes = bytes
  }

  func batch(of call: Conversation.Call) -> Batches.Key? { slot(of: call)?.batch }

  func isParked(_ call: Conversation.Call) -> Bool { slot(of: call)?.isParked ?? false }

  func find(_ id: RequestID) -> Conversation.Call? { find(id, fingerprint: id.fingerprint) }

  private func find(_ id: RequestID, fingerprint: UInt64) -> Conversation.Call? {
    guard !id.isNull else { return nil }
    for index in fingerprints.indices where fingerprints[index] == fingerprint {
      if let slot = slots[index], slot.id == id { return Conversation.Call(slot: UInt32(index), serial: slot.serial) }
    }
    return nil
  }

  private func slot(of call: Conversation.Call) -> Slot? {
    guard Int(call.slot) < slots.count, let slot = slots[Int(call.slot)], slot.serial == call.serial else { return nil }
    return slot
  }
}
