//! Checks before loading whether this machine can run the programs.

use crate::CocoonError;
use libbpf_rs::btf::{Btf, types};
use rustix::fs::statfs;
use std::path::Path;

const VMLINUX: &str = "/sys/kernel/btf/vmlinux";
const BPF_FS_MAGIC: u64 = 0xcafe_4a11;
const CAP_SYS_ADMIN: u64 = 1 << 21;
const CAP_PERFMON: u64 = 1 << 38;
const CAP_BPF: u64 = 1 << 39;

/// Kernel functions that the programs call.
const FUNCTIONS: [&str; 2] = ["tcp_reno_cong_avoid", "tcp_reno_undo_cwnd"];

/// Checks the kernel, the privileges and the BPF file system, in this order.
///
/// # Errors
/// Returns the first unmet condition.
pub fn preflight(bpffs: &Path) -> Result<(), CocoonError> {
    if std::fs::File::open(VMLINUX).is_err() {
        return Err(CocoonError::NoBtf);
    }
    let btf = Btf::from_vmlinux().map_err(|_| CocoonError::NoBtf)?;
    if btf.type_by_name::<types::Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
        return Err(CocoonError::NoStructOps);
    }
    if let Some(missing) = FUNCTIONS.iter().find(|name| btf.type_by_name::<types::Func<'_>>(name).is_none()) {
        return Err(CocoonError::NoFunction(missing));
    }
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    if !may_load(&status) {
        return Err(CocoonError::NoCapability);
    }
    match is_bpffs(bpffs) {
        true => Ok(()),
        false => Err(CocoonError::NoBpffs(bpffs.to_path_buf())),
    }
}

/// Returns whether a BPF file system is mounted at this path.
pub(crate) fn is_bpffs(path: &Path) -> bool {
    statfs(path).is_ok_and(|found| found.f_type as u64 == BPF_FS_MAGIC)
}

/// Returns whether a process with this `/proc/PID/status` may load programs.
fn may_load(status: &str) -> bool {
    let effective = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let Some(effective) = effective.and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok()) else {
        return false;
    };
    let has = |capability| effective & capability != 0;
    has(CAP_SYS_ADMIN) || (has(CAP_BPF) && has(CAP_PERFMON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loading_needs_cap_bpf_and_cap_perfmon_or_cap_sys_admin() {
        assert!(may_load("Name:\tx\nCapEff:\t000000c000000000\n"));
        assert!(may_load("CapEff:\t0000000000200000\n"));
        assert!(!may_load("CapEff:\t0000008000000000\n"));
        assert!(!may_load("CapEff:\t0000000000000000\n"));
        assert!(!may_load(""));
    }
}
