// SPDX-License-Identifier: Apache-2.0

internal import RestorationBroker
internal import SystemdSupport

/// The user's systemd manager, as the broker needs it.
struct UserServiceManager: ServiceManager {
  private let manager = UserManager()

  nonisolated(nonsending) func unitFiles(of unit: String) async throws(ServiceManagerError) -> [String]? {
    do throws(UserManagerError) {
      return try await manager.unitFiles(of: unit)
    } catch {
      throw ServiceManagerError(error)
    }
  }

  nonisolated(nonsending) func startUnit(_ unit: String) async throws(ServiceManagerError) {
    do throws(UserManagerError) {
      try await manager.startUnit(unit)
    } catch {
      throw ServiceManagerError(error)
    }
  }

  func unit(ofProcess pid: Int32) -> String? { manager.unit(ofProcess: pid) }

  nonisolated(nonsending) func result(
    ofUnit unit: String
  ) async throws(ServiceManagerError) -> RestorationBroker.UnitResult {
    do throws(UserManagerError) {
      return RestorationBroker.UnitResult(try await manager.result(ofUnit: unit))
    } catch {
      throw ServiceManagerError(error)
    }
  }

  nonisolated(nonsending) func isStopping() async -> Bool {
    await manager.isStopping()
  }
}

extension ServiceManagerError {
  fileprivate init(_ error: UserManagerError) { self.init(error.message) }
}

extension RestorationBroker.UnitResult {
  fileprivate init(_ unit: SystemdSupport.UnitResult) {
    self.init()
    (result, activeState) = (unit.result, unit.activeState)
    (mainProcess, mainCode, mainStatus) = (unit.lastProcess ?? unit.mainProcess ?? 0, unit.lastCode, unit.lastStatus)
    (wasStopped, wasCollected) = (unit.wasStopped, unit.wasCollected)
  }
}
