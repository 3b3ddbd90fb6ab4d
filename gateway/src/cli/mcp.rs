//! `lorgnette mcp`: carries MCP between standard input and output and the running gateway; its sub-commands look after
//! the servers behind the gateway.

use std::{
    io::{Read, Write},
    net::Shutdown,
    time::Duration,
};

use anyhow::{Context as _, Result, bail};
use clap::{Subcommand, ValueEnum};
use gateway_core::vocab::ClientClass;

use crate::{
    config::Config,
    control::{
        Answer, McpServer, Request,
        client::{ANSWER_WAIT, ask, ask_within, converse},
    },
    text::in_one_line,
    units::{ago, number_of},
};

/// How long a server may take to start: as long as the gateway waits for it, and a little more.
const RESTART_WAIT: Duration = Duration::from_secs(80);
/// Bytes copied at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Speak MCP over standard input and output, where no sub-command is named: nothing else is written to standard output
/// then.
#[derive(clap::Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(super) struct Arguments {
    #[command(subcommand)]
    command: Option<Command>,
    /// Name of the user.
    #[arg(long, default_value = "wearer")]
    user: String,
    /// What the client may see.
    #[arg(long, value_enum, default_value = "internal")]
    class: Class,
}

#[derive(Subcommand)]
enum Command {
    /// Show the MCP servers behind the gateway: state and its start, tools, last failures.
    List {
        /// One JSON object per line.
        #[arg(long)]
        json: bool,
    },
    /// Restart a server, for example after its program has changed, and wait until it answers.
    Restart {
        /// Name of the server.
        name: String,
    },
    /// Show a server's recent standard error and log messages.
    Logs {
        /// Name of the server.
        name: String,
    },
}

#[derive(Clone, Copy, ValueEnum)]
enum Class {
    Internal,
    Copilot,
    External,
}

pub(super) fn run(config: &Config, arguments: Arguments) -> Result<()> {
    let data_dir = &config.data_dir;
    let answer = match arguments.command {
        None => return speak(config, &arguments),
        Some(Command::List { json }) => match ask(data_dir, &Request::McpServers)? {
            Answer::McpServers { servers } => return list(&servers, json),
            answer => answer,
        },
        Some(Command::Restart { name }) => ask_within(data_dir, &Request::RestartMcpServer { name }, RESTART_WAIT)?,
        Some(Command::Logs { name }) => ask(data_dir, &Request::McpServerLogs { name })?,
    };
    match answer {
        Answer::Done { message } => println!("{message}"),
        Answer::Lines { lines } if lines.is_empty() => println!("it has said nothing since the gateway was started"),
        Answer::Lines { lines } => {
            lines.iter().for_each(|(at, line)| println!("{:>9} ago  {}", ago(*at), in_one_line(line)));
        }
        answer => bail!("unexpected answer: {answer:?}"),
    }
    Ok(())
}

fn list(servers: &[McpServer], json: bool) -> Result<()> {
    if servers.is_empty() && !json {
        println!("no MCP servers; the section [mcp.servers] of the configuration names them");
    }
    for server in servers {
        if json {
            println!("{}", serde_json::to_string(server)?);
            continue;
        }
        println!("{}", line(server));
        if let Some((why, at)) = server.last_down.as_ref().filter(|_| server.state == "up") {
            println!("    was down {} ago: {}", ago(*at), in_one_line(why));
        }
        if let Some((why, at)) = &server.last_failure {
            println!("    last failure, {} ago: {}", ago(*at), in_one_line(why));
        }
        server.last_words.iter().for_each(|line| println!("    | {}", in_one_line(line)));
    }
    Ok(())
}

/// A server as one line.
pub(super) fn line(server: &McpServer) -> String {
    let detail = match server.state.as_str() {
        "up" => format!("{}, MCP {}", number_of(server.tools, "tool"), server.detail),
        _ => in_one_line(&server.detail).into_owned(),
    };
    format!("{}  {} for {}: {detail}", server.name, server.state, ago(server.for_s))
}

/// Carries MCP until either side ends it.
fn speak(config: &Config, arguments: &Arguments) -> Result<()> {
    let class = match arguments.class {
        Class::Internal => ClientClass::Internal,
        Class::Copilot => ClientClass::Copilot,
        Class::External => ClientClass::External,
    };
    let request = Request::Mcp { user: arguments.user.clone(), class };
    let (_, stream) = converse(&config.data_dir, &request, ANSWER_WAIT)?;
    stream.set_read_timeout(None)?;
    let mut up = stream.try_clone().context("the control socket")?;
    // Ends with the process: reading standard input cannot be interrupted.
    std::thread::Builder::new().name("mcp-stdin".to_owned()).spawn(move || {
        drop(carry(&mut std::io::stdin().lock(), &mut up));
        drop(up.shutdown(Shutdown::Write));
    })?;
    let mut down = stream;
    carry(&mut down, &mut std::io::stdout().lock()).context("the gateway went away")
}

/// Copies bytes, flushing each read.
fn carry(from: &mut impl Read, to: &mut impl Write) -> std::io::Result<()> {
    let mut chunk = vec![0; CHUNK_BYTES];
    loop {
        let count = match from.read(&mut chunk) {
            Ok(0) => return Ok(()),
            Ok(count) => count,
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        };
        to.write_all(chunk.get(..count).unwrap_or_default())?;
        to.flush()?;
    }
}
