//! Where programs run: processes that are ready, as many at a time as there may be.

use std::{
    io,
    path::{Path, PathBuf},
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use code_sandbox::protocol::{
    Fence, Hello, JAVASCRIPT_BYTES_MAX, Language, MODULES_BYTES_MAX, MODULES_MAX, Module, Run, SOURCE_BYTES_MAX,
    TYPESCRIPT_BYTES_MAX,
};
use futures_util::future::join;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use super::{COMPUTE_MAX, Ended, Host, Limits, Outcome, Program, WALL_MAX, process::Process, run};

/// Programs that run at a time: each may keep a core busy.
const PROGRAMS_MAX: usize = 4;
/// This executable, also after it was replaced on disk.
const OWN_EXECUTABLE: &str = "/proc/self/exe";

/// Runs programs. A process is kept ready, since its start takes longer than most programs; each runs one program.
pub struct Sandbox {
    executable: PathBuf,
    ready: Mutex<Option<Process>>,
    places: Semaphore,
    has_told: AtomicBool,
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new(Path::new(OWN_EXECUTABLE))
    }
}

impl Sandbox {
    /// A sandbox whose processes run this executable; it has to begin with [`code_sandbox::child_main`] if its first
    /// argument is [`code_sandbox::ARGUMENT`]. [`Sandbox::default`] runs the executable of this process.
    pub fn new(executable: &Path) -> Self {
        Self {
            executable: executable.to_owned(),
            ready: Mutex::default(),
            places: Semaphore::new(PROGRAMS_MAX),
            has_told: AtomicBool::default(),
        }
    }

    /// Starts a process for the next program, if none is ready. Needs tokio's runtime.
    pub fn warm_up(&self) -> io::Result<()> {
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        if ready.is_none() {
            *ready = Some(Process::start(&self.executable)?);
        }
        Ok(())
    }

    /// Runs a program to its end. If this future is dropped, the program is killed.
    pub async fn run(&self, program: Program, host: &dyn Host, limits: Limits, cancel: &CancellationToken) -> Outcome {
        if let Err(message) = check(&program) {
            return Outcome::early(Ended::Failed, message);
        }
        let limits = Limits { compute: limits.compute.min(COMPUTE_MAX), wall: limits.wall.min(WALL_MAX) };
        let modules = program.modules.into_iter().map(|(specifier, source)| Module { specifier, source });
        let compute_ms = u64::try_from(limits.compute.as_millis()).unwrap_or(u64::MAX);
        let program = Run { source: program.source, modules: modules.collect(), compute_ms, task: program.task };
        let start = async {
            let place = self.places.acquire().await;
            (place, self.process().await)
        };
        let cancelled = || Outcome::early(Ended::Cancelled, "the program was cancelled before it began");
        let (_place, process) = tokio::select! {
            biased;
            () = cancel.cancelled() => return cancelled(),
            started = start => started,
        };
        match process {
            Ok(process) => {
                // The program goes first.
                let run = run::run(process, program, host, limits, cancel);
                join(run, async { self.prepare() }).await.0
            }
            Err(error) => {
                tracing::error!(%error, "no process could be started for a program");
                Outcome::early(Ended::Unavailable, format!("programs cannot run now: {error}"))
            }
        }
    }

    /// A process for a program.
    async fn process(&self) -> Result<Process, String> {
        let ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner).take();
        let waited = match ready {
            // It may have been killed while it waited, with its greeting sent.
            Some(mut process) => match process.greeting().await {
                Ok(hello) if process.is_alive() => Some((process, hello)),
                _ => None,
            },
            None => None,
        };
        let (process, hello) = match waited {
            Some(waited) => waited,
            None => {
                let mut process = Process::start(&self.executable).map_err(|error| error.to_string())?;
                let hello = process.greeting().await?;
                (process, hello)
            }
        };
        self.tell(&hello);
        Ok(process)
    }

    fn prepare(&self) {
        if let Err(error) = self.warm_up() {
            tracing::warn!(%error, "no process could be started for the next program");
        }
    }

    /// Says once what the kernel lacks.
    fn tell(&self, hello: &Hello) {
        let all = hello.landlock == Fence::Full && hello.seccomp == Fence::Full;
        if !all && !self.has_told.swap(true, Ordering::Relaxed) {
            let (landlock, seccomp) = (hello.landlock, hello.seccomp);
            tracing::warn!(?landlock, ?seccomp, "this kernel lacks a part of the fences around programs");
        }
    }
}

fn check(program: &Program) -> Result<(), String> {
    let within = |what: &str, count: usize, max: usize| {
        if count <= max { Ok(()) } else { Err(format!("{what}: {count}, {max} are the maximum")) }
    };
    let bytes_max = match program.task.as_ref().map(|task| task.language) {
        None => SOURCE_BYTES_MAX,
        Some(Language::TypeScript) => TYPESCRIPT_BYTES_MAX,
        Some(Language::JavaScript) => JAVASCRIPT_BYTES_MAX,
    };
    within("bytes of the program", program.source.len(), bytes_max)?;
    within("modules of the program", program.modules.len(), MODULES_MAX)?;
    let bytes = program.modules.iter().map(|(specifier, source)| specifier.len() + source.len()).sum();
    within("bytes of the program's modules", bytes, MODULES_BYTES_MAX)
}
