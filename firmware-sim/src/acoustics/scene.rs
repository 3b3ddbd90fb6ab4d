//! What the microphone hears, packet by packet.

use crate::speaker::Output;

use super::convolution::Convolver;
use super::half_duplex::Gate;
use super::noise::Source;
use super::{Ambience, Change, Fault, echo, room, samples};

/// The acoustic world of one microphone.
pub struct Scene {
    rate_hz: u32,
    echo: Option<echo::Path>,
    room: Option<Convolver>,
    noise: Option<Source>,
    gate: Option<Gate>,
    fault: Option<Fault>,
}

impl Scene {
    /// A silent room without echo, for a microphone of this rate.
    pub fn new(rate_hz: u32) -> Self {
        Self { rate_hz, echo: None, room: None, noise: None, gate: None, fault: None }
    }

    /// Changes one part. A noise needs its sound.
    ///
    /// # Errors
    /// The noise lacks its sound, or cannot be converted to the microphone's rate.
    pub fn apply(&mut self, change: Change, ambience: Option<&Ambience>) -> Result<(), String> {
        match change {
            Change::Echo(echo) => self.echo = echo.map(|echo| echo::Path::new(&echo, self.rate_hz)),
            Change::Room(room) => self.room = room.map(|room| room::reverberation(room, self.rate_hz)),
            Change::Noise(None) => self.noise = None,
            Change::Noise(Some(noise)) => {
                let ambience = ambience.ok_or("a noise without its sound")?;
                self.noise = Some(Source::new(&noise, ambience, self.rate_hz)?);
            }
            Change::HalfDuplex(half_duplex) => self.gate = half_duplex.map(Gate::new),
            Change::Fault(fault) => self.fault = fault,
        }
        Ok(())
    }

    /// The speaker has played this; in the order of time.
    pub fn play(&mut self, output: &Output) {
        if let Some(echo) = &mut self.echo {
            echo.play(output);
        }
        if let Some(gate) = &mut self.gate {
            gate.play(output);
        }
    }

    /// All that the speaker has played up to `now_us` is known.
    pub fn played_until(&mut self, now_us: u64) {
        if let Some(echo) = &mut self.echo {
            echo.played_until(now_us);
        }
    }

    /// This clip begins, at the rate of the microphone.
    pub fn begin(&mut self, clip: &[i16]) {
        if let Some(noise) = &mut self.noise {
            noise.begin(clip, self.rate_hz);
        }
    }

    /// Makes the sound at the microphone of the wearer's voice: the voice and the echo in the room, and the noise. The
    /// first sample is captured at `capture_us`.
    pub fn mix(&mut self, capture_us: u64, pcm: &mut [i16]) {
        if self.echo.is_none() && self.room.is_none() && self.noise.is_none() {
            return;
        }
        let mut sound: Vec<f32> = pcm.iter().map(|sample| f32::from(*sample)).collect();
        if let Some(echo) = &mut self.echo {
            echo.add(samples(capture_us, self.rate_hz), &mut sound);
        }
        if let Some(room) = &mut self.room {
            room.add(&mut sound);
        }
        if let Some(noise) = &mut self.noise {
            noise.add(&mut sound);
        }
        for (sample, sound) in pcm.iter_mut().zip(sound) {
            // The cast saturates, as the converter of a microphone does.
            *sample = sound.round() as i16;
        }
    }

    /// Silences what is captured while the speaker plays, on half-duplex hardware.
    pub fn close(&mut self, capture_us: u64, pcm: &mut [i16]) {
        if let Some(gate) = &mut self.gate {
            gate.close(capture_us, self.rate_hz, pcm);
        }
    }

    /// Makes of the sound what a faulty converter makes of it.
    pub fn convert(&self, pcm: &mut [i16]) {
        if let Some(fault) = self.fault {
            fault.convert(pcm);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acoustics::Acoustics;

    fn scene(acoustics: &Acoustics) -> Scene {
        let mut scene = Scene::new(16_000);
        let ambience = acoustics.noise.map(|noise| Ambience::render(&noise).unwrap());
        for part in acoustics.parts() {
            scene.apply(part, ambience.as_ref()).unwrap();
        }
        scene
    }

    #[test]
    fn a_silent_room_changes_nothing() {
        let mut pcm: Vec<i16> = (0..320).collect();
        let before = pcm.clone();
        let mut scene = scene(&Acoustics::default());
        scene.mix(0, &mut pcm);
        scene.close(0, &mut pcm);
        assert_eq!(pcm, before);
    }

    #[test]
    fn the_room_has_voice_and_echo_but_not_the_noise() {
        let room = Some("hall".parse().unwrap());
        let click = |n: usize| {
            let mut pcm = vec![0; 320];
            pcm[n] = 30_000;
            pcm
        };
        // A click of the voice, then one of the speaker.
        let mut voice = scene(&Acoustics { room, ..Acoustics::default() });
        let mut heard = click(0);
        voice.mix(0, &mut heard);
        assert!(heard[0] > 29_000 && heard[160..].iter().any(|sample| *sample != 0));
        let mut echo = scene(&Acoustics { room, echo: Some("20,0".parse().unwrap()), ..Acoustics::default() });
        echo.play(&Output { from_us: 0, until_us: 20_000, rate_hz: 16_000, pcm: click(0) });
        echo.played_until(20_000);
        let mut packets = [vec![0; 320], vec![0; 320]];
        for (n, packet) in packets.iter_mut().enumerate() {
            echo.mix(n as u64 * 20_000, packet);
        }
        assert!(packets[0].iter().all(|sample| *sample == 0));
        assert_eq!(packets[1], heard);
        // Noise is as it is.
        let noise = Some("white,0".parse().unwrap());
        let hear = |room| {
            let mut pcm = vec![0; 960];
            scene(&Acoustics { noise, room, ..Acoustics::default() }).mix(0, &mut pcm);
            pcm
        };
        assert_eq!(hear(room), hear(None));
    }
}
