// SPDX-License-Identifier: Apache-2.0

internal import RestorationWire

/// Whether there is saved state that can be given back (R20).
public enum StateAvailability: String, CaseIterable, Hashable, Sendable {
  /// There is none.
  case none
  /// There is some.
  case available
  /// It is there and cannot be read now; nothing is touched.
  case unreadable
  /// It is there and withheld, because giving it out ended in crashes.
  case quarantined

  init(_ wire: RestorationState) {
    self =
      switch wire {
      case .none: .none
      case .available: .available
      case .unreadable: .unreadable
      case .quarantined: .quarantined
      }
  }
}
