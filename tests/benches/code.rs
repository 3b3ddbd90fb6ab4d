//! Programs of models: what they cost in time and memory, and the tokens that they save.
//!
//! `cargo xtask bench code [--runs N]`
//!
//! A real gateway in this process; the child that runs programs is this program once more, as it is the gateway's own
//! elsewhere. It ends with an error where a limit is broken; aims are told only. Tokens are counted with `o200k_base`,
//! in the bodies of requests in the form of chat completions. The tools are the built-in ones and those of GitHub's MCP
//! server (tests/data/mcp_tools.json), under as many names of servers as are needed.

#[path = "code/test_gateway.rs"]
mod test_gateway;
#[path = "code/tokens.rs"]
mod tokens;

use std::{
    process::ExitCode,
    sync::{Mutex, atomic::Ordering},
    time::{Duration, Instant},
};

use anyhow::{Context as _, Result, bail, ensure};
use async_trait::async_trait;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;
use tools::code::{Host, HostError, Limits, Program, Sandbox};

use self::test_gateway::{REPORT_BYTES, TestGateway};

/// Runs that are measured one after another.
const RUNS: usize = 100;
/// Programs that are started at once.
const AT_ONCE: usize = 50;
/// Calls of the program by which one call is measured.
const CALLS: usize = 50;
/// The next child is ready by then.
const SETTLE: Duration = Duration::from_millis(150);

const WARM_MAX: Duration = Duration::from_millis(15);
const COLD_MAX: Duration = Duration::from_millis(60);
const CALL_MAX: Duration = Duration::from_micros(500);

const PLAIN: &str = "const numbers: number[] = Array.from({ length: 100 }, (_, n) => n * n);\n\
    export default numbers.reduce((sum, n) => sum + n, 0);\n";

fn main() -> ExitCode {
    // Where this process was started to run a program.
    if std::env::args().nth(1).is_some_and(|first| first == "code-sandbox") {
        return code_sandbox::child_main();
    }
    let measured =
        gateway::runtime::build().map_err(anyhow::Error::from).and_then(|runtime| runtime.block_on(measure()));
    match measured {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn measure() -> Result<()> {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let profile = if cfg!(debug_assertions) { "dev" } else { "optimised" };
    println!("load {}, {profile} profile", load.split_whitespace().take(3).collect::<Vec<_>>().join(" "));
    let mut broken = Vec::new();
    let gateway = TestGateway::start().await?;
    times(&gateway, &mut broken).await?;
    memory(&mut broken).await?;
    at_once(&gateway).await?;
    report(&gateway).await?;
    tokens::print(&gateway)?;
    gateway.stop().await;
    if !broken.is_empty() {
        bail!("limits are broken: {}", broken.join("; "));
    }
    Ok(())
}

/// Prints the median and the 95th percentile; returns the median.
fn row(what: &str, mut spans: Vec<Duration>) -> Duration {
    spans.sort();
    let at = |share: f64| spans.get((spans.len() as f64 * share) as usize).copied().unwrap_or_default();
    println!("{what:<62} median {:>9.2?}   p95 {:>9.2?}   n {}", at(0.5), at(0.95), spans.len());
    at(0.5)
}

fn judge(what: &str, is: Duration, max: Duration, broken: &mut Vec<String>) {
    if is > max {
        broken.push(format!("{what}: {is:.2?}, {max:.2?} at most"));
    }
}

async fn times(gateway: &TestGateway, broken: &mut Vec<String>) -> Result<()> {
    let runs = argument("--runs").map_or(Ok(RUNS), |runs| runs.parse())?;
    let mut spans = Vec::new();
    for _ in 0..runs {
        tokio::time::sleep(SETTLE).await;
        let began = Instant::now();
        let result = gateway.run(PLAIN).await;
        spans.push(began.elapsed());
        ensure!(result.data.as_ref().is_some_and(|data| data["result"] == 328_350), "{result:?}");
    }
    let warm = row("a program without calls, a process is ready", spans);
    judge("a program without calls", warm, WARM_MAX, broken);

    let mut spans = Vec::new();
    for _ in 0..runs {
        let sandbox = Sandbox::default();
        let began = Instant::now();
        let outcome = sandbox.run(plain(), &Quiet::default(), Limits::default(), &CancellationToken::new()).await;
        spans.push(began.elapsed());
        ensure!(outcome.result == Some(json!(328_350)), "{outcome:?}");
    }
    let cold = row("the same, a process has to be started", spans);
    judge("a program without calls, cold", cold, COLD_MAX, broken);

    // Without anything between the calls.
    let program = |calls: usize| {
        format!(
            "import {{ bench }} from '@capabilities/mcp-bench';\n\
             for (let n = 0; n < {calls}; n += 1) await bench.look({{ n }});\nexport default {calls};\n"
        )
    };
    let (mut none, mut many, mut alone) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..runs.div_ceil(4) {
        for (calls, spans) in [(0, &mut none), (CALLS, &mut many)] {
            tokio::time::sleep(SETTLE).await;
            let began = Instant::now();
            let result = gateway.run(&program(calls)).await;
            spans.push(began.elapsed());
            ensure!(result.error.is_none(), "{result:?}");
        }
        for n in 0..CALLS {
            let began = Instant::now();
            let result = gateway.call("bench.look", json!({ "n": n })).await;
            alone.push(began.elapsed());
            ensure!(result.error.is_none(), "{result:?}");
        }
    }
    let none = row("a program that imports a module and makes no call", none);
    let many = row(&format!("the same with {CALLS} calls, one after another"), many);
    let alone = row("one such call through the executor, without a program", alone);
    let each = many.saturating_sub(none) / u32::try_from(CALLS)?;
    let above = each.saturating_sub(alone);
    println!("{:<62} {each:>16.2?}, {above:.2?} above the executor's own time", "  each call");
    judge("a call of a program, above the executor's own time", above, CALL_MAX, broken);
    Ok(())
}

fn plain() -> Program {
    Program { source: PLAIN.to_owned(), modules: Vec::new(), task: None }
}

/// A host whose function reads the memory of the process that calls it.
#[derive(Default)]
struct Quiet(Mutex<Vec<u64>>);

#[async_trait]
impl Host for Quiet {
    async fn call(&self, _module: &str, _function: &str, _arguments: Value) -> Result<Value, HostError> {
        // The other child waits for the next program and has less.
        let most = children().into_iter().filter_map(|pid| kib(&pid, "VmHWM:")).max();
        self.0.lock().expect("no thread panics").extend(most);
        Ok(Value::Null)
    }

    fn log(&self, _line: &str) {}
}

/// The processes that run programs, or wait for one.
fn children() -> Vec<String> {
    let own = format!("PPid:\t{}\n", std::process::id());
    let all = std::fs::read_dir("/proc").into_iter().flatten().flatten();
    let is_child =
        |pid: &String| std::fs::read_to_string(format!("/proc/{pid}/status")).is_ok_and(|status| status.contains(&own));
    all.filter_map(|entry| entry.file_name().into_string().ok()).filter(is_child).collect()
}

/// A value of a process's status, in KiB.
fn kib(pid: &str, key: &str) -> Option<u64> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    status.lines().find(|line| line.starts_with(key))?.split_whitespace().nth(1)?.parse().ok()
}

async fn memory(broken: &mut Vec<String>) -> Result<()> {
    let bridge =
        "import { call } from '@lorgnette/bridge';\nexport const look = () => call('@capabilities/m', 'look', {});\n";
    let source = "import { look } from '@capabilities/m';\n\
        const kept = Array.from({ length: 10_000 }, (_, n) => ({ n, text: `entry ${n}` }));\n\
        await look();\nexport default kept.length;\n";
    for (what, source) in [("a small program", source.replace("10_000", "10")), ("10,000 objects", source.to_owned())] {
        let (sandbox, host) = (Sandbox::default(), Quiet::default());
        let program = Program { source, modules: vec![("@capabilities/m".to_owned(), bridge.to_owned())], task: None };
        let outcome = sandbox.run(program, &host, Limits::default(), &CancellationToken::new()).await;
        ensure!(outcome.error.is_none(), "{outcome:?}");
        let most = host.0.into_inner()?.into_iter().max().context("the memory of a child")?;
        println!("{:<62} {most:>12} KiB", format!("most memory of the process of {what}"));
        // What the process has at its start, and the values of a program.
        if most > 96 * 1024 {
            broken.push(format!("the process of {what} has {most} KiB"));
        }
    }
    Ok(())
}

async fn at_once(gateway: &TestGateway) -> Result<()> {
    let resident = || kib("self", "VmRSS:").unwrap_or_default();
    let before = resident();
    let done = CancellationToken::new();
    let watch = {
        let done = done.clone();
        tokio::spawn(async move {
            let (mut own, mut of_children, mut most) = (0, 0, 0);
            while done.run_until_cancelled(tokio::time::sleep(Duration::from_millis(5))).await.is_some() {
                let pids = children();
                own = own.max(resident());
                of_children = of_children.max(pids.iter().filter_map(|pid| kib(pid, "VmRSS:")).sum::<u64>());
                most = most.max(pids.len());
            }
            (own, of_children, most)
        })
    };
    let began = Instant::now();
    let runs = (0..AT_ONCE).map(|number| {
        let program = format!(
            "import {{ bench }} from '@capabilities/mcp-bench';\n\
             const seen = await Promise.all([1, 2, 3].map((n) => bench.look({{ n: n * {number} }})));\n\
             export default seen.reduce((sum: number, one: any) => sum + one.n, 0);\n"
        );
        let gateway = gateway.clone();
        tokio::spawn(async move { (number, gateway.run(&program).await) })
    });
    for run in runs.collect::<Vec<_>>() {
        let (number, result) = run.await?;
        ensure!(result.data.as_ref().is_some_and(|data| data["result"] == 6 * number), "{number}: {result:?}");
    }
    let took = began.elapsed();
    done.cancel();
    let (own, of_children, most) = watch.await?;
    println!(
        "{:<62} {took:>16.2?}, all right; this process {} MiB more, {most} children with {} MiB at most",
        format!("{AT_ONCE} programs at once, with 3 calls each"),
        own.saturating_sub(before) / 1_024,
        of_children / 1_024,
    );
    Ok(())
}

async fn report(gateway: &TestGateway) -> Result<()> {
    let program = "import { bench } from '@capabilities/mcp-bench';\n\
        const report = (await bench.report()) as string;\n\
        export default report.split('\\n').find((line) => line.startsWith('TOTAL'));\n";
    let result = gateway.run(program).await;
    ensure!(result.content == "\"TOTAL: 4711 CHF\"", "{result:?}");
    let direct = gateway.call("bench.report", json!({})).await;
    let (read, whole) = (result.for_model().len(), REPORT_BYTES.load(Ordering::Relaxed));
    println!(
        "{:<62} {read:>12} of {whole} bytes: {:.3} % (aim: 1 %); called directly {}, of which the line is {}",
        "one line of a long output: what the model reads",
        100.0 * read as f64 / whole as f64,
        direct.for_model().len(),
        if direct.content.contains("TOTAL") { "one" } else { "none" },
    );
    Ok(())
}

/// The value behind this argument of the command line.
fn argument(name: &str) -> Option<String> {
    let mut arguments = std::env::args();
    arguments.find(|argument| argument == name)?;
    arguments.next()
}
