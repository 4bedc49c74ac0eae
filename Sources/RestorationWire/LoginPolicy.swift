// SPDX-License-Identifier: Apache-2.0

internal import JSONRPC

/// What becomes of an application when its user logs in.
package enum LoginPolicy: String, CaseIterable, Sendable, JSONWritable {
  case never, ask, always
}
