//! What the kernel keeps from a process that runs programs: files, network, other processes.
//!
//! JavaScript reaches none of them anyway. The fences are for the day when a program breaks out of the engine.

#![allow(unsafe_code, reason = "no safe call closes descriptors by their number")]

use std::{collections::BTreeMap, io};

use landlock::{ABI, Access as _, AccessFs, AccessNet, Ruleset, RulesetAttr as _, RulesetError, RulesetStatus, Scope};
use rustix::{
    param::page_size,
    process::{DumpableBehavior, Resource, Rlimit, nice, set_dumpable_behavior, setrlimit},
    thread::set_no_new_privs,
};
use seccompiler::{
    BackendError, BpfProgram, SeccompAction, SeccompCmpArgLen, SeccompCmpOp, SeccompCondition, SeccompFilter,
    SeccompRule, apply_filter,
};

use crate::protocol::Fence;

/// Address space besides what the process occupies when it starts: a program's 16 MiB, its text in both languages,
/// its syntax tree, and messages.
pub const ADDRESS_BYTES_MAX: u64 = 96 * 1024 * 1024;
/// Processor time of a process, whatever its program may have. The engine's own limit is far lower.
pub const CPU_SECONDS_MAX: u64 = 60;
/// A program must not disturb speech: this much nicer than the gateway.
const NICE: i32 = 5;

/// Which fences are up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fences {
    /// Files, TCP, signals.
    pub landlock: Fence,
    /// System calls.
    pub seccomp: Fence,
}

/// Puts up all fences that the kernel has, for the rest of this process. It must have one thread, and keeps one
/// descriptor: its standard input.
pub fn put_up() -> io::Result<Fences> {
    let occupied = occupied_bytes()?;
    close_descriptors()?;
    set_no_new_privs(true)?;
    set_dumpable_behavior(DumpableBehavior::NotDumpable)?;
    nice(NICE)?;
    let landlock = landlock().map_err(io::Error::other)?;
    limit_resources(occupied)?;
    // The last one: nothing above is allowed afterwards.
    let seccomp = seccomp()?;
    Ok(Fences { landlock, seccomp })
}

/// Address space of this process.
fn occupied_bytes() -> io::Result<u64> {
    let text = std::fs::read_to_string("/proc/self/statm")?;
    let pages: Option<u64> = text.split(' ').next().and_then(|pages| pages.parse().ok());
    let pages = pages.ok_or_else(|| io::Error::other("/proc/self/statm has no size"))?;
    Ok(pages.saturating_mul(page_size() as u64))
}

/// Closes every descriptor but standard input. The gateway's own are not inherited; this is for those of the
/// process that started the gateway.
fn close_descriptors() -> io::Result<()> {
    // SAFETY: nothing in this process owns a descriptor above 0: it has done nothing before, and what writes to
    // standard output or error afterwards gets an error.
    let closed = unsafe { libc::syscall(libc::SYS_close_range, 1, libc::c_uint::MAX, 0) };
    if closed == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

fn limit_resources(occupied: u64) -> io::Result<()> {
    let fixed = |resource, value| setrlimit(resource, Rlimit { current: Some(value), maximum: Some(value) });
    fixed(Resource::As, occupied.saturating_add(ADDRESS_BYTES_MAX))?;
    fixed(Resource::Cpu, CPU_SECONDS_MAX)?;
    fixed(Resource::Nproc, 0)?;
    fixed(Resource::Fsize, 0)?;
    fixed(Resource::Core, 0)?;
    fixed(Resource::Nofile, 1)?;
    Ok(())
}

/// Denies all access to files, TCP, abstract sockets, and signals to others.
fn landlock() -> Result<Fence, RulesetError> {
    let abi = ABI::V6;
    let rules = Ruleset::default()
        .handle_access(AccessFs::from_all(abi))?
        .handle_access(AccessNet::from_all(abi))?
        .scope(Scope::from_all(abi))?;
    Ok(match rules.create()?.restrict_self()?.ruleset {
        RulesetStatus::FullyEnforced => Fence::Full,
        RulesetStatus::PartiallyEnforced => Fence::Partial,
        RulesetStatus::NotEnforced => Fence::Absent,
    })
}

/// Filters system calls: what no program needs gets an error, and what only an attacker tries ends the process.
fn seccomp() -> io::Result<Fence> {
    let programs = filters().map_err(io::Error::other)?;
    for program in &programs {
        match apply_filter(program) {
            Ok(()) => {}
            Err(seccompiler::Error::Seccomp(error))
                if matches!(error.raw_os_error(), Some(libc::ENOSYS | libc::EINVAL)) =>
            {
                return Ok(Fence::Absent);
            }
            Err(error) => return Err(io::Error::other(error)),
        }
    }
    Ok(Fence::Full)
}

/// The kernel takes the strictest answer of all filters.
fn filters() -> Result<[BpfProgram; 2], BackendError> {
    let architecture = std::env::consts::ARCH;
    let deadly = deadly().into_iter().map(|call| (call, Vec::new())).collect();
    let kills = SeccompFilter::new(deadly, SeccompAction::Allow, SeccompAction::KillProcess, architecture.try_into()?)?;
    let denied = SeccompAction::Errno(libc::EPERM.unsigned_abs());
    let allows = SeccompFilter::new(allowed()?, denied, SeccompAction::Allow, architecture.try_into()?)?;
    // In this order: the second one denies to install another.
    Ok([kills.try_into()?, allows.try_into()?])
}

/// What an engine does while it runs: memory, its one descriptor, clocks, and its end.
fn allowed() -> Result<BTreeMap<i64, Vec<SeccompRule>>, BackendError> {
    let argument = |index, operator, value: libc::c_int| {
        SeccompCondition::new(index, SeccompCmpArgLen::Dword, operator, u64::from(value.unsigned_abs()))
    };
    let not_executable = || argument(2, SeccompCmpOp::MaskedEq(libc::PROT_EXEC.unsigned_abs().into()), 0);
    let anonymous = libc::MAP_ANONYMOUS;
    let own_memory = argument(3, SeccompCmpOp::MaskedEq(anonymous.unsigned_abs().into()), anonymous)?;
    let standard_input = || SeccompRule::new(vec![argument(0, SeccompCmpOp::Eq, 0)?]);
    let mut calls: BTreeMap<i64, Vec<SeccompRule>> = [
        libc::SYS_brk,
        libc::SYS_munmap,
        libc::SYS_mremap,
        libc::SYS_madvise,
        libc::SYS_futex,
        libc::SYS_clock_gettime,
        libc::SYS_gettimeofday,
        libc::SYS_getrandom,
        libc::SYS_rt_sigaction,
        libc::SYS_rt_sigprocmask,
        libc::SYS_rt_sigreturn,
        libc::SYS_sigaltstack,
        libc::SYS_restart_syscall,
        libc::SYS_exit,
        libc::SYS_exit_group,
    ]
    .into_iter()
    .map(|call| (call, Vec::new()))
    .collect();
    calls.insert(libc::SYS_read, vec![standard_input()?]);
    calls.insert(libc::SYS_write, vec![standard_input()?]);
    calls.insert(libc::SYS_mmap, vec![SeccompRule::new(vec![not_executable()?, own_memory])?]);
    calls.insert(libc::SYS_mprotect, vec![SeccompRule::new(vec![not_executable()?])?]);
    Ok(calls)
}

/// What ends the process: other programs and processes, sockets, and ways around these fences.
fn deadly() -> Vec<i64> {
    let mut calls = vec![
        libc::SYS_execve,
        libc::SYS_execveat,
        libc::SYS_clone,
        libc::SYS_clone3,
        libc::SYS_ptrace,
        libc::SYS_process_vm_readv,
        libc::SYS_process_vm_writev,
        libc::SYS_kill,
        libc::SYS_pidfd_open,
        libc::SYS_pidfd_getfd,
        libc::SYS_pidfd_send_signal,
        libc::SYS_socket,
        libc::SYS_socketpair,
        libc::SYS_connect,
        libc::SYS_bind,
        libc::SYS_sendmsg,
        libc::SYS_recvmsg,
        libc::SYS_unshare,
        libc::SYS_setns,
        libc::SYS_mount,
        libc::SYS_bpf,
        libc::SYS_io_uring_setup,
        libc::SYS_perf_event_open,
        libc::SYS_userfaultfd,
        libc::SYS_keyctl,
    ];
    #[cfg(target_arch = "x86_64")]
    calls.extend([libc::SYS_fork, libc::SYS_vfork]);
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_both_allowed_and_deadly() {
        let allowed = allowed().unwrap();
        assert!(deadly().iter().all(|call| !allowed.contains_key(call)));
        assert!(filters().unwrap().iter().all(|program| program.len() > 20));
    }
}
