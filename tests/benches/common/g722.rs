//! G.722 at 64 kbit/s to samples at 16 kHz, after ITU-T Recommendation G.722 (clause 5, fixed point).
//!
//! Test material comes in this form; the product does not speak it. Names are the Recommendation's.

const QM6: [i32; 64] = [
    -136, -136, -136, -136, -24808, -21904, -19008, -16704, -14984, -13512, -12280, -11192, -10232, -9360, -8576,
    -7856, -7192, -6576, -6000, -5456, -4944, -4464, -4008, -3576, -3168, -2776, -2400, -2032, -1688, -1360, -1040,
    -728, 24808, 21904, 19008, 16704, 14984, 13512, 12280, 11192, 10232, 9360, 8576, 7856, 7192, 6576, 6000, 5456,
    4944, 4464, 4008, 3576, 3168, 2776, 2400, 2032, 1688, 1360, 1040, 728, 432, 136, -432, -136,
];
const QM4: [i32; 16] =
    [0, -20456, -12896, -8968, -6288, -4240, -2584, -1200, 20456, 12896, 8968, 6288, 4240, 2584, 1200, 0];
const QM2: [i32; 4] = [-7408, -1616, 7408, 1616];
const WL: [i32; 8] = [-60, -30, 58, 172, 334, 538, 1198, 3042];
const RL42: [usize; 16] = [0, 7, 6, 5, 4, 3, 2, 1, 7, 6, 5, 4, 3, 2, 1, 0];
const WH: [i32; 3] = [0, -214, 798];
const RH2: [usize; 4] = [2, 1, 2, 1];
const ILB: [i32; 32] = [
    2048, 2093, 2139, 2186, 2233, 2282, 2332, 2383, 2435, 2489, 2543, 2599, 2656, 2714, 2774, 2834, 2896, 2960, 3025,
    3091, 3158, 3228, 3298, 3371, 3444, 3520, 3597, 3676, 3756, 3838, 3922, 4008,
];
const QMF: [i32; 12] = [3, -11, 12, 32, -210, 951, 3876, -805, 362, -156, 53, -11];

fn saturate(value: i32) -> i32 {
    value.clamp(-32_768, 32_767)
}

/// One of the two sub-bands: the adaptive predictor and the adaptive step.
struct Band {
    /// Predicted signal.
    s: i32,
    sz: i32,
    r: [i32; 3],
    p: [i32; 3],
    a: [i32; 3],
    b: [i32; 7],
    d: [i32; 7],
    nb: i32,
    det: i32,
}

impl Band {
    fn new(det: i32) -> Self {
        Self { s: 0, sz: 0, r: [0; 3], p: [0; 3], a: [0; 3], b: [0; 7], d: [0; 7], nb: 0, det }
    }

    /// LOGSCL and SCALEL, or their counterparts of the higher band.
    fn scale(&mut self, step: i32, nb_max: i32, shift: i32) {
        self.nb = (((self.nb * 127) >> 7) + step).clamp(0, nb_max);
        let mantissa = ILB[(self.nb >> 6) as usize & 31];
        let shift = shift - (self.nb >> 11);
        let scaled = if shift < 0 { mantissa << -shift } else { mantissa >> shift };
        self.det = scaled << 2;
    }

    /// Block 4: RECONS, PARREC, UPPOL2, UPPOL1, UPZERO, DELAYA, FILTEP, FILTEZ, PREDIC.
    fn adapt(&mut self, d: i32) {
        self.d[0] = d;
        self.r[0] = saturate(self.s + d);
        self.p[0] = saturate(self.sz + d);

        let negative = |value: i32| value < 0;
        let same_1 = negative(self.p[0]) == negative(self.p[1]);
        let same_2 = negative(self.p[0]) == negative(self.p[2]);
        let a1 = saturate(self.a[1] << 2);
        let turned = if same_1 { (-a1).min(32_767) } else { a1 };
        let sign = if same_2 { 128 } else { -128 };
        let a2 = ((turned >> 7) + sign + ((self.a[2] * 32_512) >> 15)).clamp(-12_288, 12_288);

        let step = if same_1 { 192 } else { -192 };
        let most = saturate(15_360 - a2);
        let a1 = saturate(step + ((self.a[1] * 32_640) >> 15)).clamp(-most, most);

        let step = if d == 0 { 0 } else { 128 };
        for i in 1..7 {
            let same = negative(self.d[i]) == negative(d);
            let moved = if same { step } else { -step };
            self.b[i] = saturate(moved + ((self.b[i] * 32_640) >> 15));
        }
        self.d.copy_within(0..6, 1);
        self.r.copy_within(0..2, 1);
        self.p.copy_within(0..2, 1);
        self.a[1] = a1;
        self.a[2] = a2;

        let pole = |a: i32, r: i32| (a * saturate(r + r)) >> 15;
        let sp = saturate(pole(self.a[1], self.r[1]) + pole(self.a[2], self.r[2]));
        let sz = (1..7).map(|i| (self.b[i] * saturate(self.d[i] * 2)) >> 15).sum();
        self.sz = saturate(sz);
        self.s = saturate(sp + self.sz);
    }
}

/// Decodes a whole file.
pub fn decode(bytes: &[u8]) -> Vec<i16> {
    let (mut low, mut high) = (Band::new(32), Band::new(8));
    let mut history = [0_i32; 24];
    let mut out = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let (code, upper) = (usize::from(byte & 63), usize::from(byte >> 6));
        let r_low = (low.s + ((low.det * QM6[code]) >> 15)).clamp(-16_384, 16_383);
        let d_low = (low.det * QM4[code >> 2]) >> 15;
        low.scale(WL[RL42[code >> 2]], 18_432, 8);
        low.adapt(d_low);

        let d_high = (high.det * QM2[upper]) >> 15;
        let r_high = (high.s + d_high).clamp(-16_384, 16_383);
        high.scale(WH[RH2[upper]], 22_528, 10);
        high.adapt(d_high);

        history.copy_within(2.., 0);
        history[22] = r_low + r_high;
        history[23] = r_low - r_high;
        let (mut first, mut second) = (0, 0);
        for i in 0..12 {
            second += history[2 * i] * QMF[i];
            first += history[2 * i + 1] * QMF[11 - i];
        }
        out.push(saturate(first >> 11) as i16);
        out.push(saturate(second >> 11) as i16);
    }
    out
}
