//! What the link and the microphone do to sound is reported to the core, which decides how sound is coded and what the wearer is
//! told.

use std::sync::PoisonError;

use device_protocol::up;
use gateway_core::{
    input::Input,
    vocab::{MicrophoneFault, SoundCoding},
};

use super::session::Session;
use crate::{clock, speech::ear::Ear};

impl Session {
    /// A packet with sound has come.
    pub(super) fn sound_heard(&mut self, capture_us: u64) {
        if let Some(ear) = &self.ear {
            self.link.quality.heard(ear.transit_us(), ear.to_gateway_us(capture_us), clock::mono_us());
        }
    }

    /// Reports to the core how sound has come since the last report.
    pub(super) fn report_sound(&mut self) {
        let counts = self.ear.as_ref().map(Ear::stats);
        if let Some(report) = counts.and_then(|counts| self.link.quality.take_up(counts)) {
            self.input(Input::Sound(report));
        }
    }

    /// A fault of the microphone was found, or is gone.
    pub(super) fn microphone_fault(&mut self, fault: MicrophoneFault, present: bool) {
        let device = &self.id;
        match present {
            true => tracing::warn!(device, fault = fault.name(), "the microphone has a fault"),
            false => tracing::info!(device, fault = fault.name(), "the microphone has this fault no longer"),
        }
        let mut status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        if present {
            status.microphone_faults.insert(fault);
        } else {
            status.microphone_faults.remove(&fault);
        }
        drop(status);
        self.input(Input::Microphone { fault, present });
    }

    pub(super) fn acknowledged(&mut self, ack: &up::Ack) {
        let was_measured = self.link.quality.is_measured();
        if let Some(report) = self.link.acknowledged(ack) {
            self.input(Input::Sound(report));
        }
        if self.link.quality.is_measured() && !was_measured {
            self.code_speech();
        }
    }

    /// From now on sound is coded like this.
    pub(super) fn code_sound(&mut self, coding: SoundCoding) {
        let SoundCoding { bitrate, packet_ms, loss_percent } = coding;
        tracing::debug!(device = self.id, bitrate, packet_ms, loss_percent, "the coding of sound changes");
        self.link.quality.coding = Some(coding);
        if self.link.quality.is_measured() {
            self.code_speech();
        }
    }

    fn code_speech(&mut self) {
        if let Some(coding) = self.link.quality.coding {
            self.speech.set_coding(coding);
        }
    }
}
