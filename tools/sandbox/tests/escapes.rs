//! Native code behind the fences, as if a program had broken out of the engine. This executable starts itself again for
//! each attempt, puts the fences up, and tries.

#![allow(unsafe_code, reason = "attackers make system calls of their own")]

use std::{
    io::{self, Read as _},
    os::{fd::OwnedFd, unix::net::UnixStream, unix::process::ExitStatusExt as _},
    process::{Command, ExitCode, Stdio},
};

use code_sandbox::{fences, protocol::Fence};
use libc::{c_long, syscall};
use libtest_mimic::{Arguments, Failed, Trial};

const INSIDE: &str = "inside";

/// How an attempt has to end.
enum Expected {
    /// The call returns this error.
    Error(i32),
    /// The process is killed by this signal.
    Killed(i32),
}

use Expected::{Error, Killed};

type Attempt = (&'static str, Expected, fn() -> c_long);

const EPERM: Expected = Error(libc::EPERM);
const SIGSYS: Expected = Killed(libc::SIGSYS);

fn parent() -> c_long {
    // SAFETY: it takes nothing.
    c_long::from(unsafe { libc::getppid() })
}

/// A system call with any arguments.
macro_rules! attempt {
    ($call:ident $(, $argument:expr)*) => {
        // SAFETY: pointers are null or those of constants; the kernel refuses the call.
        || unsafe { syscall(libc::$call $(, $argument)*) }
    };
}

/// An attempt by the standard library.
fn outcome<T>(result: io::Result<T>) -> c_long {
    match result {
        Ok(_) => 0,
        Err(error) => {
            // SAFETY: errno belongs to this thread.
            unsafe { *libc::__errno_location() = error.raw_os_error().unwrap_or(0) };
            -1
        }
    }
}

const ATTEMPTS: &[Attempt] = &[
    ("reads_the_environment", EPERM, || outcome(std::fs::read("/proc/self/environ"))),
    ("reads_the_parents_environment", EPERM, || outcome(std::fs::read(format!("/proc/{}/environ", parent_id())))),
    ("reads_a_file", EPERM, || outcome(std::fs::read("/etc/passwd"))),
    ("lists_a_folder", EPERM, || outcome(std::fs::read_dir("/"))),
    ("writes_a_file", EPERM, || outcome(std::fs::write("/tmp/lorgnette-escaped", "x"))),
    ("makes_a_file_in_memory", EPERM, attempt!(SYS_memfd_create, c"x".as_ptr(), 0)),
    ("opens_tcp", SIGSYS, || outcome(std::net::TcpStream::connect("127.0.0.1:9"))),
    ("opens_udp", SIGSYS, || outcome(std::net::UdpSocket::bind("127.0.0.1:0"))),
    ("opens_a_unix_socket", SIGSYS, || outcome(UnixStream::connect("/run/dbus/system_bus_socket"))),
    ("makes_a_socket_pair", SIGSYS, || outcome(UnixStream::pair())),
    ("forks", SIGSYS, attempt!(SYS_clone, libc::SIGCHLD, 0, 0, 0, 0)),
    ("starts_a_thread", SIGSYS, || outcome(std::thread::Builder::new().spawn(|| {}))),
    ("starts_a_program", SIGSYS, attempt!(SYS_execve, c"/bin/true".as_ptr(), 0, 0)),
    ("traces_its_parent", SIGSYS, attempt!(SYS_ptrace, libc::PTRACE_ATTACH, parent_id(), 0, 0)),
    ("kills_its_parent", SIGSYS, attempt!(SYS_kill, parent_id(), libc::SIGKILL)),
    ("kills_a_thread_of_its_parent", EPERM, attempt!(SYS_tgkill, parent_id(), parent_id(), libc::SIGKILL)),
    ("reads_its_parents_memory", SIGSYS, attempt!(SYS_process_vm_readv, parent_id(), 0, 0, 0, 0, 0)),
    ("gets_a_descriptor_of_its_parent", SIGSYS, attempt!(SYS_pidfd_open, parent_id(), 0)),
    ("writes_to_standard_output", EPERM, attempt!(SYS_write, 1, c"x".as_ptr(), 1)),
    ("copies_its_descriptor", EPERM, attempt!(SYS_dup, 0)),
    (
        "makes_memory_executable",
        EPERM,
        attempt!(SYS_mmap, 0, 4096, libc::PROT_READ | libc::PROT_EXEC, libc::MAP_PRIVATE | libc::MAP_ANONYMOUS, -1, 0),
    ),
    ("maps_its_descriptor", EPERM, attempt!(SYS_mmap, 0, 4096, libc::PROT_READ, libc::MAP_PRIVATE, 0, 0)),
    ("takes_four_gibibytes", Error(libc::ENOMEM), || outcome(four_gibibytes())),
    ("raises_its_limits", EPERM, attempt!(SYS_prlimit64, 0, libc::RLIMIT_AS, 0, 0)),
    ("enters_a_namespace", SIGSYS, attempt!(SYS_unshare, libc::CLONE_NEWUSER)),
    ("uses_a_ring", SIGSYS, attempt!(SYS_io_uring_setup, 1, 0)),
    ("becomes_traceable", EPERM, attempt!(SYS_prctl, libc::PR_SET_DUMPABLE, 1, 0, 0, 0)),
];

fn parent_id() -> c_long {
    // The call for it is refused behind the fences.
    std::env::args().nth(3).and_then(|id| id.parse().ok()).unwrap_or_else(parent)
}

fn four_gibibytes() -> io::Result<Vec<u8>> {
    let mut memory = Vec::new();
    memory.try_reserve_exact(4 << 30).map_err(|_| io::Error::from_raw_os_error(libc::ENOMEM))?;
    Ok(memory)
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().collect();
    if arguments.get(1).is_some_and(|argument| argument == INSIDE) {
        return inside(&arguments[2]);
    }
    let arguments = Arguments::from_args();
    let mut trials: Vec<Trial> =
        ATTEMPTS.iter().map(|attempt| Trial::test(attempt.0, move || judge(attempt))).collect();
    trials.push(Trial::test("some_are_possible_without_fences", without_fences));
    libtest_mimic::run(&arguments, trials).exit_code()
}

/// Tries behind the fences, and tells the parent what came of it.
fn inside(name: &str) -> ExitCode {
    let Some((_, _, attempt)) = ATTEMPTS.iter().find(|attempt| attempt.0 == name) else { return ExitCode::FAILURE };
    let up = fences::put_up().expect("fences");
    assert_eq!(up.seccomp, Fence::Full);
    tell(&format!("landlock {:?}\n", up.landlock));
    let result = attempt();
    let error = io::Error::last_os_error().raw_os_error().unwrap_or(0);
    tell(&if result < 0 { format!("error {error}\n") } else { format!("succeeded {result}\n") });
    ExitCode::SUCCESS
}

fn tell(words: &str) {
    rustix::io::write(io::stdin(), words.as_bytes()).expect("the socket to the parent");
}

fn judge((name, expected, _): &Attempt) -> Result<(), Failed> {
    let (mut ours, theirs) = UnixStream::pair()?;
    let mut child = Command::new(std::env::current_exe()?)
        .args([INSIDE, name, &std::process::id().to_string()])
        .env_clear()
        .stdin(OwnedFd::from(theirs))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()?;
    let mut told = String::new();
    ours.read_to_string(&mut told)?;
    let status = child.wait()?;
    let (landlock, rest) = told.split_once('\n').ok_or("the fences are not up")?;
    let fine = match expected {
        Error(error) => rest == format!("error {error}\n"),
        Killed(signal) => rest.is_empty() && status.signal() == Some(*signal),
    };
    if std::path::Path::new("/tmp/lorgnette-escaped").exists() {
        return Err("a file was written".into());
    }
    if fine { Ok(()) } else { Err(format!("{landlock}, {rest:?}, {status}").into()) }
}

/// The attempts are real ones: what is refused behind the fences is possible in front of them.
fn without_fences() -> Result<(), Failed> {
    for name in [
        "reads_a_file",
        "lists_a_folder",
        "opens_udp",
        "makes_a_socket_pair",
        "starts_a_thread",
        "copies_its_descriptor",
        "makes_memory_executable",
    ] {
        let attempt = ATTEMPTS.iter().find(|attempt| attempt.0 == name).ok_or(name)?;
        if (attempt.2)() < 0 {
            return Err(format!("{name}: {}", io::Error::last_os_error()).into());
        }
    }
    Ok(())
}
