//! What training never hears: voices, sentences and noises, chosen before the first head was trained. Recall is stated
//! on these.

/// Voices of flite, and voices of espeak-ng with their variants.
pub const VOICES: [&str; 6] = [
    "flite-awb",
    "espeak-en-gb-scotland+m3",
    "espeak-en-gb-x-rp+f3",
    "espeak-en-029+f4",
    "espeak-en-us+steph",
    "espeak-en-gb+john",
];

/// Voices of festival, of whose kinds of synthesis training hears none.
pub const FAMILIES: [&str; 2] = ["festival-ked_diphone", "festival-cmu_us_slt_arctic_hts"];

/// Requests behind the phrase.
pub const REQUESTS: [&str; 4] = [
    "what is on my calendar",
    "turn down the volume please",
    "how far is the station",
    "remember that I parked on level three",
];

/// Kinds of noise.
pub const NOISES: [super::noise::Kind; 2] = [super::noise::Kind::Pink, super::noise::Kind::Street];
