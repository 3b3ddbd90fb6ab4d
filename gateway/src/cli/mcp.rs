//! `lorgnette mcp`: carries MCP between standard input and output and the running gateway.

use std::{
    io::{Read, Write},
    net::Shutdown,
};

use anyhow::{Context as _, Result};
use clap::ValueEnum;
use gateway_core::vocab::ClientClass;

use crate::{
    config::Checked,
    control::{
        Request,
        client::{ANSWER_WAIT, converse},
    },
};

/// Bytes that are carried at once.
const CHUNK_BYTES: usize = 16 * 1024;

/// Speak MCP over standard input and output. Nothing else is ever written to standard output.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Whose tools.
    #[arg(long, default_value = "wearer")]
    user: String,
    /// What the client may see.
    #[arg(long, value_enum, default_value = "internal")]
    class: Class,
}

#[derive(Clone, Copy, ValueEnum)]
enum Class {
    Internal,
    Copilot,
    External,
}

pub(super) fn run(config: &Checked, arguments: &Arguments) -> Result<()> {
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

/// Carries bytes, and does not keep any back.
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
