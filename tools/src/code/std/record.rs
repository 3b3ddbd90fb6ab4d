//! The ledger's entries about functions with effects.

use std::sync::Arc;

use gateway_core::vocab::{ClientClass, ErrorCode};

use crate::{
    ledger::{Ledger, OfProgram, Record},
    ports::Clock,
    source::Source,
};

/// Who calls: the user of a program, and what the ledger says of the call.
#[derive(Clone, Debug, Default)]
pub struct StdCaller {
    /// For whom the program runs.
    pub user: String,
    /// The device on which the program was requested, if any.
    pub device: Option<String>,
    /// Class of the client that has called the program.
    pub client: ClientClass,
    /// Number of the turn, if it belongs to one.
    pub turn: Option<u32>,
    /// The program, if one calls.
    pub program: Option<OfProgram>,
}

/// A call that runs. It is recorded when it ends; one that is given up, as cancelled.
pub(super) struct Recording {
    ledger: Option<Arc<dyn Ledger>>,
    clock: Arc<dyn Clock>,
    began_us: u64,
    record: Option<Record>,
}

impl Recording {
    pub(super) fn begin(
        ledger: Option<Arc<dyn Ledger>>,
        clock: Arc<dyn Clock>,
        caller: &StdCaller,
        function: &str,
        bytes_in: u64,
    ) -> Self {
        let now = clock.now();
        let record = Record {
            wall_ms: now.wall_ms,
            user: caller.user.clone(),
            device: caller.device.clone(),
            client: caller.client,
            turn: caller.turn,
            tool: format!("std.{function}"),
            source: Source::BuiltIn.to_string(),
            took_ms: 0,
            error: None,
            asked: false,
            approval: None,
            program: caller.program.clone(),
            bytes_in,
            bytes_out: 0,
        };
        Self { ledger, clock, began_us: now.mono_us, record: Some(record) }
    }

    pub(super) fn end(mut self, error: Option<ErrorCode>, bytes_out: u64) {
        self.write(error, bytes_out);
    }

    fn write(&mut self, error: Option<ErrorCode>, bytes_out: u64) {
        let (Some(record), Some(ledger)) = (self.record.take(), &self.ledger) else { return };
        let took_ms = self.clock.now().mono_us.saturating_sub(self.began_us) / 1_000;
        ledger.record(Record { took_ms, error, bytes_out, ..record });
    }
}

impl Drop for Recording {
    fn drop(&mut self) {
        self.write(Some(ErrorCode::Cancelled), 0);
    }
}
