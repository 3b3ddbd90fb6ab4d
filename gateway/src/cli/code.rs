//! `lorgnette code`: programs of models, and routines.

use std::time::Duration;

use anyhow::{Result, anyhow, bail};
use clap::Subcommand;
use serde_json::Value;
use tools::programs::{CallOutcome, Run, RunCall, RunError};

use crate::{
    config::Config,
    control::{Answer, Request, client, programs::ProgramsRequest},
    ports::routines::Stored,
    text::in_one_line,
    units::number_of,
};

/// How long a program may take: its own time, and ten questions to the wearer.
const RUN_WAIT: Duration = Duration::from_secs(620);

/// Show the programs that models ran, run them again, and keep them as routines.
#[derive(clap::Args)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// Show the runs of the last seven days, newest first.
    Runs {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show a run: the program with its calls, output and error.
    Show {
        /// Number of the run, as `code runs` shows it.
        id: u64,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// As JSON.
        #[arg(long)]
        json: bool,
    },
    /// Run the program of a run again as its user: with permissions and questions as at first.
    #[command(alias = "again")]
    Run {
        /// Number of the run.
        id: u64,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// The new run as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Keep the program of a run as a routine, which the wearer runs by saying a phrase. It may call only the tools that
    /// it has called in this run, as long as they do not change.
    Keep {
        /// Number of the run.
        id: u64,
        /// Name of the routine: small letters, digits and hyphens. One that is in use gets a new version.
        #[arg(long)]
        name: String,
        /// What the wearer says; may be given several times. Default: as in the version before.
        #[arg(long = "phrase")]
        phrases: Vec<String>,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Show the routines.
    Routines {
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Show, remove or restore a routine.
    Routine {
        #[command(subcommand)]
        command: OfRoutine,
    },
}

#[derive(Subcommand)]
enum OfRoutine {
    /// Show a routine: its program, phrases, tools and versions.
    Show {
        /// Its name, as `code routines` shows it.
        name: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
        /// With all versions as JSON.
        #[arg(long)]
        json: bool,
    },
    /// Remove a routine with all of its versions.
    Remove {
        /// Its name, as `code routines` shows it.
        name: String,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
    /// Make an earlier version the present one again, as a new version.
    Restore {
        /// Its name, as `code routines` shows it.
        name: String,
        /// Number of the earlier version.
        version: u32,
        /// Name of the user.
        #[arg(long, default_value = "wearer")]
        user: String,
    },
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    match arguments.command {
        Command::Runs { user, json } => runs(&records(config, ProgramsRequest::Runs { user })?, json),
        Command::Show { id, user, json } => show(config, ProgramsRequest::Show { user, id }, json),
        Command::Run { id, user, json } => show(config, ProgramsRequest::Run { user, id }, json),
        Command::Keep { id, name, phrases, user } => tell(config, ProgramsRequest::Keep { user, id, name, phrases }),
        Command::Routines { user, json } => routines(&records(config, ProgramsRequest::Routines { user })?, json),
        Command::Routine { command: OfRoutine::Show { name, user, json } } => {
            for one in records(config, ProgramsRequest::Routine { user, name })? {
                if json {
                    println!("{one}");
                } else {
                    routine(&serde_json::from_value(one)?)?;
                }
            }
            Ok(())
        }
        Command::Routine { command: OfRoutine::Remove { name, user } } => {
            tell(config, ProgramsRequest::RemoveRoutine { user, name })
        }
        Command::Routine { command: OfRoutine::Restore { name, version, user } } => {
            tell(config, ProgramsRequest::RestoreRoutine { user, name, version })
        }
    }
}

fn ask(config: &Config, request: ProgramsRequest) -> Result<Answer> {
    client::ask_within(&config.data_dir, &Request::Programs { request }, RUN_WAIT)
}

fn records(config: &Config, request: ProgramsRequest) -> Result<Vec<Value>> {
    match ask(config, request)? {
        Answer::Records { records } => Ok(records),
        answer => bail!("unexpected answer: {answer:?}"),
    }
}

fn tell(config: &Config, request: ProgramsRequest) -> Result<()> {
    match ask(config, request)? {
        Answer::Done { message } => println!("{message}"),
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

fn runs(runs: &[Value], json: bool) -> Result<()> {
    for run in runs {
        if json {
            println!("{run}");
            continue;
        }
        let number = |key: &str| run[key].as_u64().unwrap_or_default();
        let cut_off = run["cut_off"] == true;
        let error = if cut_off { "cut off" } else { run["error"].as_str().unwrap_or("ok") };
        println!(
            "{:>6}  {}  {:>7} ms  {:>3} lines  {:>2} calls  {error}{}",
            number("id"),
            time(run["wall_ms"].as_i64()),
            duration(number("took_ms"), cut_off),
            number("lines"),
            number("calls"),
            origin(run)
        );
    }
    if !json {
        println!("{}: number, time, duration, program, calls, outcome", number_of(runs.len(), "run"));
    }
    Ok(())
}

/// Where a program comes from, unless a model has just written it.
fn origin(run: &Value) -> String {
    let routine = run["routine"]["name"].as_str().map(|name| format!("  routine {name}"));
    let again = run["again_of"].as_u64().map(|first| format!("  run {first} again"));
    format!("{}{}", routine.unwrap_or_default(), again.unwrap_or_default())
}

fn time(wall_ms: Option<i64>) -> String {
    let moment = wall_ms.and_then(|ms| jiff::Timestamp::from_millisecond(ms).ok());
    moment.map_or_else(|| "?".to_owned(), |moment| format!("{moment:.0}"))
}

fn show(config: &Config, request: ProgramsRequest, json: bool) -> Result<()> {
    let one = records(config, request)?.into_iter().next().ok_or_else(|| anyhow!("the gateway sent no run"))?;
    if json {
        println!("{one}");
        return Ok(());
    }
    print!("{}", readable(&one, &serde_json::from_value(one.clone())?));
    Ok(())
}

/// A run in lines. Whatever it holds stays in its place: each of its lines has a prefix.
fn readable(value: &Value, run: &Run) -> String {
    let number = value["id"].as_u64().unwrap_or_default();
    let device = run.device.as_deref().map(|device| format!(", glasses {}", in_one_line(device)));
    let mut out = format!(
        "run {number}{}, {}, {} ms, call {}{}\n",
        origin(value),
        time(Some(run.wall_ms)),
        duration(run.took_ms, run.cut_off),
        in_one_line(&run.call),
        device.unwrap_or_default()
    );
    out.push_str(&source(&run.source, run.error.as_ref()));
    if !run.calls.is_empty() {
        out.push_str("calls\n");
        run.calls.iter().for_each(|made| out.push_str(&call(made, run.cut_off)));
    }
    let result = run.result.as_ref().map(|result| format!("result {result}"));
    if !run.output.is_empty() || result.is_some() || run.left_out.is_some() {
        out.push_str("output\n");
        for line in run.output.iter().flat_map(|text| text.split('\n')) {
            out.push_str(&format!("  | {}\n", in_one_line(line)));
        }
        out.extend(result.map(|result| format!("  {}\n", in_one_line(&result))));
        out.extend(run.left_out.iter().map(|what| format!("  left out: {}\n", in_one_line(what))));
    }
    if let Some(error) = &run.error {
        let at = error.line.map_or_else(String::new, |line| format!(" in line {line}"));
        out.push_str(&format!("error{at}: {}\n", in_one_line(&error.message)));
    }
    out
}

/// The program with the numbers of its lines; the one with the error is marked.
fn source(source: &str, error: Option<&RunError>) -> String {
    let marked = error.and_then(|error| error.line);
    let mut out = String::new();
    for (number, line) in (1_u32..).zip(source.lines()) {
        let mark = if marked == Some(number) { '>' } else { ' ' };
        out.push_str(&format!("{mark}{number:>4}  {}\n", in_one_line(line)));
        if let Some(error) = error.filter(|_| marked == Some(number)) {
            let column = error.column.map_or(0, |column| column.saturating_sub(1).min(200));
            let place = " ".repeat(usize::try_from(column).unwrap_or_default());
            out.push_str(&format!("       {place}^ {}\n", in_one_line(&error.message)));
        }
    }
    out
}

/// Milliseconds, which are not known of what a stop of the gateway has cut off.
fn duration(ms: u64, cut_off: bool) -> String {
    if cut_off { "?".to_owned() } else { ms.to_string() }
}

fn call(call: &RunCall, cut_off: bool) -> String {
    let outcome = match call.outcome {
        CallOutcome::Done => "done",
        CallOutcome::Failed => "failed",
        CallOutcome::NotBegun => "not begun",
        CallOutcome::Unknown => "unknown",
    };
    let error = call.error.as_deref().map(|error| format!(": {}", in_one_line(error))).unwrap_or_default();
    let (tool, arguments) = (in_one_line(&call.tool), in_one_line(&call.arguments));
    format!("  {outcome:<9}  {:>6} ms  {tool} {arguments}{error}\n", duration(call.ms, cut_off))
}

fn routines(all: &[Value], json: bool) -> Result<()> {
    for one in all {
        if json {
            println!("{one}");
            continue;
        }
        let texts = |key: &str| {
            let all = one[key].as_array().map(Vec::as_slice).unwrap_or_default();
            all.iter().filter_map(Value::as_str).collect::<Vec<_>>()
        };
        println!("{}  version {}", one["name"].as_str().unwrap_or_default(), one["version"]);
        println!("    said as: {}", texts("phrases").join("; "));
        println!("    may call: {}", texts("may_call").join(", "));
    }
    if !json {
        println!("{}", number_of(all.len(), "routine"));
    }
    Ok(())
}

fn routine(routine: &Stored) -> Result<()> {
    let Some((last, earlier)) = routine.versions.split_last() else { bail!("the routine has no version") };
    println!("{}, version {}, kept {} of run {}", routine.name, last.number, time(Some(last.kept_wall_ms)), last.run);
    println!("said as: {}", last.phrases.join("; "));
    println!("may call: {}", last.tools.keys().cloned().collect::<Vec<_>>().join(", "));
    print!("{}", source(&last.source, None));
    for version in earlier.iter().rev() {
        let (number, kept) = (version.number, time(Some(version.kept_wall_ms)));
        println!("version {number}, kept {kept}: `lorgnette code routine restore {} {number}`", routine.name);
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::text::shown;

    #[test]
    fn a_run_is_shown_with_its_error_at_its_line_and_nothing_in_it_acts_on_a_terminal() {
        let value = json!({
            "id": 7, "wall_ms": 0, "call": "c\u{1b}[2J", "took_ms": 12, "again_of": 3,
            "source": "one();\n  two();\u{1b}[31m\nthree();",
            "calls": [{"tool": "note.add", "arguments": "{\"text\":\"a\u{9b}\"}", "outcome": "done", "ms": 4}],
            "output": ["first\nerror in line 9: forged", "\u{202e}x"], "result": {"a": 1},
            "error": {"code": "EXECUTION_ERROR", "message": "no\nway", "line": 2, "column": 3},
        });
        let out = readable(&value, &serde_json::from_value(value.clone()).unwrap());
        assert_eq!(out, shown(&out), "nothing is left to be hidden");
        let lines: Vec<&str> = out.lines().collect();
        assert_eq!(
            lines,
            [
                "run 7  run 3 again, 1970-01-01T00:00:00Z, 12 ms, call c\\u001b[2J",
                "    1  one();",
                ">   2    two();\\u001b[31m",
                "         ^ no\\u000away",
                "    3  three();",
                "calls",
                "  done            4 ms  note.add {\"text\":\"a\\u009b\"}",
                "output",
                "  | first",
                "  | error in line 9: forged",
                "  | \\u202ex",
                "  result {\"a\":1}",
                "error in line 2: no\\u000away",
            ]
        );
    }
}
