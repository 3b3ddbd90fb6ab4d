//! Volume of what is sent: a factor that moves to its new value within one packet, so that it does not click.

/// The factor of the sound that is sent.
#[derive(Debug, Clone, Copy)]
pub(super) struct Gain {
    wanted: f32,
    /// The factor at the end of the last packet.
    now: f32,
}

impl Gain {
    /// Sound as it is.
    pub(super) fn new() -> Self {
        Self { wanted: 1.0, now: 1.0 }
    }

    /// `factor` is from 0 to 1; other values are clamped, and one that is no number counts as 1.
    pub(super) fn set(&mut self, factor: f32) {
        self.wanted = if factor.is_nan() { 1.0 } else { factor.clamp(0.0, 1.0) };
    }

    pub(super) fn apply(&mut self, pcm: &mut [i16]) {
        if self.now == 1.0 && self.wanted == 1.0 {
            return;
        }
        let step = (self.wanted - self.now) / pcm.len().max(1) as f32;
        for (n, sample) in pcm.iter_mut().enumerate() {
            // At most 1, so the product is in range.
            *sample = (f32::from(*sample) * (self.now + step * n as f32)).round() as i16;
        }
        self.now = self.wanted;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_moves_within_a_packet_and_stays() {
        let mut gain = Gain::new();
        let mut packet = |factor: Option<f32>| {
            let mut pcm = [i16::MIN; 320];
            if let Some(factor) = factor {
                gain.set(factor);
            }
            gain.apply(&mut pcm);
            pcm
        };
        assert_eq!(packet(None), [i16::MIN; 320]);
        let ramp = packet(Some(0.5));
        assert!(ramp.windows(2).all(|pair| (0..=60).contains(&(pair[1] - pair[0]))), "{ramp:?}");
        assert_eq!(packet(None), [-16_384; 320]);
        assert_eq!(packet(Some(-3.0))[319], -51);
        assert_eq!(packet(None), [0; 320]);
        packet(Some(f32::NAN));
        assert_eq!(packet(None), [i16::MIN; 320]);
    }
}
