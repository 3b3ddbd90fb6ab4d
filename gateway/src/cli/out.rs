//! The one place from which the commands print. Names and texts come from glasses, apps, servers and models: none of
//! them may act on the operator's terminal, or forge a line of a list.
//!
//! Within this folder `println!`, `print!` and `eprintln!` are the ones below.

use std::{
    fmt::Arguments,
    io::{ErrorKind, Write as _, stderr, stdout},
};

use crate::text::shown;

/// Prints to standard output.
macro_rules! print {
    ($($text:tt)*) => { $crate::cli::out::print(format_args!($($text)*), "") };
}

/// Prints a line to standard output.
macro_rules! println {
    () => { $crate::cli::out::print(format_args!(""), "\n") };
    ($($text:tt)*) => { $crate::cli::out::print(format_args!($($text)*), "\n") };
}

/// Prints a line to standard error.
macro_rules! eprintln {
    ($($text:tt)*) => { $crate::cli::out::complain(format_args!($($text)*)) };
}

/// The reader of a list may close it early (`lorgnette tools list | head`): the command ends then. Where the text could not
/// be written, as on a full disk, it fails: what follows it may rely on the text, as an erasure does on an export.
pub(super) fn print(text: Arguments<'_>, end: &str) {
    let text = text.to_string();
    let mut out = stdout().lock();
    let printed = out.write_all(shown(&text).as_bytes()).and_then(|()| out.write_all(end.as_bytes()));
    if let Err(error) = printed.and_then(|()| out.flush()) {
        match error.kind() {
            ErrorKind::BrokenPipe => std::process::exit(0),
            _ => {
                complain(format_args!("lorgnette: printing failed: {error}"));
                std::process::exit(1);
            }
        }
    }
}

pub(super) fn complain(text: Arguments<'_>) {
    // There is nowhere left to report the failure.
    drop(writeln!(stderr().lock(), "{}", shown(&text.to_string())));
}
