//! Sound that is kept and seldom read: packed without loss, as the differences between neighbours in as few bits as the
//! largest of them needs (the fixed predictors of FLAC, RFC 9639, section 9.2.5, without its entropy coding).

use crate::samples::SoundBuffer;

/// Samples at the beginning that are stored as they are: as many as the predictor of highest order looks back.
const HISTORY: usize = 2;
/// Predictors: the value itself, the difference to the sample before, and the difference of the differences.
const ORDERS: [u8; 3] = [0, 1, 2];

/// A piece of sound.
pub struct Packed {
    samples: usize,
    order: u8,
    /// Bits of each difference, at most 16.
    width: u32,
    /// The first samples, little endian, and the differences, from the lowest bit of each byte on.
    bytes: SoundBuffer<u8>,
}

impl Packed {
    /// Packs these samples.
    pub fn new(pcm: &[i16]) -> Self {
        let first = &pcm[..pcm.len().min(HISTORY)];
        let (width, order) = ORDERS.map(|order| (width(pcm, order), order)).into_iter().min().unwrap_or((16, 0));
        let bits = (pcm.len() - first.len()) * width as usize;
        // At once: what grows leaves copies behind.
        let mut bytes = Vec::with_capacity(size_of_val(first) + bits.div_ceil(8));
        bytes.extend(first.iter().flat_map(|sample| sample.to_le_bytes()));
        let (mut waiting, mut count) = (0_u64, 0);
        for difference in differences(pcm, order) {
            waiting |= u64::from(difference) << count;
            count += width;
            while count >= 8 {
                bytes.push(waiting as u8);
                waiting >>= 8;
                count -= 8;
            }
        }
        if count > 0 {
            bytes.push(waiting as u8);
        }
        Self { samples: pcm.len(), order, width, bytes: bytes.into() }
    }

    /// How many samples it has.
    pub fn length(&self) -> usize {
        self.samples
    }

    /// Its samples, one after the other.
    pub fn samples(&self) -> impl Iterator<Item = i16> {
        let (first, rest) = self.bytes.split_at(2 * self.samples.min(HISTORY));
        let first = first.as_chunks().0.iter().map(|sample| i16::from_le_bytes(*sample));
        let mut before = [0; HISTORY];
        before.iter_mut().zip(first.clone()).for_each(|(before, sample)| *before = i32::from(sample));
        let (mut bytes, mut waiting, mut count) = (rest.iter(), 0_u64, 0);
        let mask = (1_u64 << self.width) - 1;
        let rest = (HISTORY..self.samples).map(move |_| {
            while count < self.width {
                waiting |= u64::from(bytes.next().copied().unwrap_or(0)) << count;
                count += 8;
            }
            let difference = unfolded((waiting & mask) as u32);
            waiting >>= self.width;
            count -= self.width;
            let sample = difference + predicted(before, self.order);
            before = [before[1], sample];
            sample as i16
        });
        first.chain(rest)
    }
}

/// What follows these two samples, if the predictor of this order is right.
fn predicted([last_but_one, last]: [i32; HISTORY], order: u8) -> i32 {
    match order {
        0 => 0,
        1 => last,
        _ => 2 * last - last_but_one,
    }
}

/// By how much the predictor is wrong at each sample behind the first ones.
fn differences(pcm: &[i16], order: u8) -> impl Iterator<Item = u32> {
    pcm.array_windows().map(move |window: &[i16; HISTORY + 1]| {
        let [last_but_one, last, sample] = window.map(i32::from);
        folded(sample - predicted([last_but_one, last], order))
    })
}

/// Bits that the largest of them needs.
fn width(pcm: &[i16], order: u8) -> u32 {
    let all = differences(pcm, order).fold(0, |all, difference| all | difference);
    u32::BITS - all.leading_zeros()
}

/// Small numbers of either sign as small numbers.
fn folded(difference: i32) -> u32 {
    ((difference << 1) ^ (difference >> 31)) as u32
}

fn unfolded(folded: u32) -> i32 {
    (folded >> 1) as i32 ^ -((folded & 1) as i32)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn bytes(pcm: &[i16]) -> usize {
        let packed = Packed::new(pcm);
        assert_eq!(packed.samples().collect::<Vec<_>>(), pcm);
        assert_eq!(packed.length(), pcm.len());
        packed.bytes.len() - 2 * pcm.len().min(HISTORY)
    }

    #[test]
    fn it_takes_as_much_as_there_is_in_it() {
        assert_eq!(bytes(&[]), 0);
        assert_eq!(bytes(&[7]), 0);
        assert_eq!(bytes(&[7, -7]), 0);
        assert_eq!(bytes(&[0; 320]), 0, "silence");
        assert_eq!(bytes(&[-3; 320]), 0, "an offset");
        let ramp: Vec<i16> = (0..320).map(|sample| 100 * sample as i16).collect();
        assert_eq!(bytes(&ramp), 0, "a slope");
        let noise: Vec<i16> = (0..322).map(|sample| (sample * 7919 % 8) as i16 - 4).collect();
        assert_eq!(bytes(&noise), 320 * 3 / 8, "three bits each");
        let extremes: Vec<i16> = (0..322).map(|sample| if sample % 2 == 0 { i16::MIN } else { i16::MAX }).collect();
        assert_eq!(bytes(&extremes), 640, "no more than it was");
    }

    proptest! {
        #[test]
        fn any_sound_comes_out_as_it_was(
            pcm in proptest::collection::vec(any::<i16>(), 0..400), loudness in 0_u32..16, drift in any::<i16>()
        ) {
            let pcm: Vec<i16> = pcm.iter().map(|sample| (sample >> loudness).wrapping_add(drift)).collect();
            bytes(&pcm);
        }
    }
}
