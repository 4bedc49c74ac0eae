// SPDX-License-Identifier: Apache-2.0

/// Whether there is a state, and if not why not.
public enum DecodingStatus: String, WireWord {
  /// There is one, and it is given.
  case available
  /// There is none.
  case none
  /// There is one, of a class that the object is not (R25).
  case classMismatch
  /// It is withheld, because giving it out ended in crashes (R35).
  case quarantined
  /// It is damaged (R32).
  case unreadable
}
