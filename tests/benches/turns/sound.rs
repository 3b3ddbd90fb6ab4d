//! Turns as sound: pieces of voice, with pauses between them whose length is chosen.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use anyhow::{Context as _, Result};
use firmware_sim::random::Random;

use crate::common::clips::{self, CLIP_HZ, Clip};
use crate::common::voices::Speaker;

const TABLE: &str = include_str!("../data/turns.tsv");
/// Samples of a stretch that has voice or has none: 10 ms.
const STRETCH: usize = CLIP_HZ as usize / 100;
const STRETCH_US: u64 = 10_000;
/// What has voice: not more than this below the loudest stretch, and above the dither of a silent recording.
const BELOW_PEAK_DB: f64 = 35.0;
const RMS_MIN: f64 = 20.0;
/// Stretches of voice that are no click, and stretches without voice that are a pause.
const VOICE_MIN: usize = 3;
const PAUSE_MIN: usize = 20;
/// Samples that are kept around a piece: soft consonants are in them. They count as pause.
const MARGIN: usize = CLIP_HZ as usize / 20;
/// Silence in front of a turn.
const FRONT: usize = CLIP_HZ as usize / 2;
/// How much of a recording's first piece is left where it is cut off, and the least that is, in samples.
const CUT_PART: f64 = 0.55;
const CUT_MIN: usize = CLIP_HZ as usize / 2;
/// Longer clips are left out: each of their pauses is judged behind all that was said before.
const CLIP_S_MAX: f64 = 15.0;
/// How long people pause inside of a turn: milliseconds, and the share of the pauses that are longer. These are the pauses of
/// livekit's eot-bench in English, by what it publishes of plain silence; between two of them the logarithm is straight.
const LONGER: [(f64, f64); 6] =
    [(200.0, 1.0), (300.0, 0.556), (600.0, 0.217), (1_000.0, 0.1), (1_600.0, 0.05), (5_000.0, 0.0)];

/// What a turn is: a row of the table, or a recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A command that plainly goes on at each pause.
    Plain,
    /// What stands before the pause could be a whole one.
    Whole,
    /// A request to a language model that plainly goes on at each pause.
    Request,
    /// Without a pause inside.
    End,
    /// A recording of a person.
    Clip,
}

impl Kind {
    fn of(name: &str) -> Option<Self> {
        [Self::Plain, Self::Whole, Self::Request, Self::End].into_iter().find(|kind| kind.name() == name)
    }

    /// As the table has it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Whole => "whole",
            Self::Request => "request",
            Self::End => "end",
            Self::Clip => "clip",
        }
    }
}

/// What is said between two pauses, with a little silence around it.
pub struct Piece {
    pcm: Vec<i16>,
    /// Where its voice begins and ends, in samples.
    begins: usize,
    ends: usize,
}

/// A turn of somebody.
pub struct Turn {
    pub kind: Kind,
    /// What is said, and by whom.
    pub name: String,
    pub pieces: Vec<Piece>,
    /// The pauses between them, in microseconds.
    pub pauses_us: Vec<u64>,
}

/// The sound of a turn.
pub struct Said {
    pub pcm: Vec<i16>,
    /// Where the voice of each piece begins and ends, in microseconds from the first sample on.
    pub voices_us: Vec<(u64, u64)>,
}

impl Turn {
    /// The sound of its first pieces; `pause_us`: the pause behind the piece with this index.
    pub fn said(&self, pieces: usize, pause_us: impl Fn(usize) -> u64) -> Said {
        let (mut pcm, mut voices_us, mut behind) = (vec![0; FRONT], Vec::new(), 0_usize);
        for (index, piece) in self.pieces.iter().take(pieces).enumerate() {
            if let Some(before) = index.checked_sub(1) {
                // The silence around the pieces is part of the pause.
                let pause = samples(pause_us(before)).saturating_sub(behind + piece.begins);
                pcm.resize(pcm.len() + pause, 0);
            }
            voices_us.push((us(pcm.len() + piece.begins), us(pcm.len() + piece.ends)));
            pcm.extend_from_slice(&piece.pcm);
            behind = piece.pcm.len() - piece.ends;
        }
        Said { pcm, voices_us }
    }
}

/// The turns of a table, or of the one that judges, in these voices, at most so many rows of each kind. The seed draws the
/// pauses.
pub fn synthetic(table: Option<&Path>, speakers: &[Speaker], rows_max: usize, seed: u64) -> Result<Vec<Turn>> {
    let table = match table {
        Some(file) => fs::read_to_string(file).with_context(|| file.display().to_string())?,
        None => TABLE.to_owned(),
    };
    let (folder, mut random, mut turns) = (tempfile::tempdir()?, Random::new(seed), Vec::new());
    let mut rows = BTreeMap::<Kind, usize>::new();
    for line in table.lines().filter(|line| !line.starts_with('#')) {
        let (kind, text) = line.split_once('\t').context("a kind and a text")?;
        let kind = Kind::of(kind).with_context(|| format!("no kind is called {kind:?}"))?;
        let row = rows.entry(kind).or_default();
        *row += 1;
        if *row > rows_max {
            continue;
        }
        let parts: Vec<&str> = text.split(" | ").collect();
        for speaker in speakers {
            let mut said = Vec::new();
            for (index, part) in parts.iter().enumerate() {
                let pcm = speaker.say(&spoken(kind, part, index + 1 == parts.len()), folder.path())?;
                let piece = split(&pcm, usize::MAX).0.pop();
                said.push(piece.with_context(|| format!("{} says nothing for {part:?}", speaker.name()))?);
            }
            let pauses_us = (1..parts.len()).map(|_| drawn_us(&mut random)).collect();
            turns.push(Turn { kind, name: format!("{}: {text}", speaker.name()), pieces: said, pauses_us });
        }
    }
    Ok(turns)
}

/// Recordings of people that no setting was chosen on, with their own pauses; at most so many.
pub fn recorded(clips_max: usize) -> Result<Vec<Turn>> {
    let mut clips = clips::all()?;
    clips.retain(|clip| !clip.development && clip.seconds() <= CLIP_S_MAX);
    clips.truncate(clips_max);
    let turn = |Clip { name, pcm, .. }: Clip| {
        let (pieces, pauses_us) = split(&pcm, PAUSE_MIN);
        Turn { kind: Kind::Clip, name, pieces, pauses_us }
    };
    Ok(clips.into_iter().map(turn).filter(|turn| !turn.pieces.is_empty()).collect())
}

/// The same recordings, each cut off in the middle of what is said: there is more to come.
pub fn cut_off(clips_max: usize) -> Result<Vec<Turn>> {
    let mut turns = recorded(clips_max)?;
    for turn in &mut turns {
        let Some(Piece { pcm, ends, .. }) = turn.pieces.first_mut() else { continue };
        pcm.truncate((*ends as f64 * CUT_PART) as usize);
        *ends = pcm.len();
        turn.pieces.truncate(1);
        turn.pauses_us.clear();
    }
    turns.retain(|turn| turn.pieces.iter().all(|piece| piece.ends > piece.begins + CUT_MIN));
    Ok(turns)
}

/// As a voice is to say it: a voice that goes on does not fall as at a full stop.
fn spoken(kind: Kind, part: &str, last: bool) -> String {
    match kind {
        _ if last => part.to_owned(),
        Kind::Whole => format!("{part}."),
        _ => format!("{},", part.trim_end_matches(',')),
    }
}

/// The length of a pause inside of a turn, in microseconds.
fn drawn_us(random: &mut Random) -> u64 {
    let longer = random.unit();
    for pair in LONGER.windows(2) {
        if let [(from_ms, above), (to_ms, below)] = *pair
            && longer >= below
        {
            let part = (above - longer) / (above - below);
            return (1e3 * from_ms * (to_ms / from_ms).powf(part)) as u64;
        }
    }
    0
}

/// The pieces of a sound between pauses of at least so many stretches, and the pauses in microseconds.
fn split(pcm: &[i16], pause_min: usize) -> (Vec<Piece>, Vec<u64>) {
    let runs = runs(&voiced(pcm), pause_min);
    let pauses_us = runs.windows(2).map(|pair| (pair[1].0 - pair[0].1) as u64 * STRETCH_US).collect();
    let piece = |&(from, to): &(usize, usize)| {
        let (from, to) = (from * STRETCH, (to * STRETCH).min(pcm.len()));
        let (first, last) = (from.saturating_sub(MARGIN), (to + MARGIN).min(pcm.len()));
        Piece { pcm: pcm[first..last].to_vec(), begins: from - first, ends: to - first }
    };
    (runs.iter().map(piece).collect(), pauses_us)
}

/// Which stretches have voice.
fn voiced(pcm: &[i16]) -> Vec<bool> {
    let rms = |stretch: &[i16]| {
        let power: f64 = stretch.iter().map(|sample| f64::from(*sample).powi(2)).sum();
        (power / stretch.len() as f64).sqrt()
    };
    let loudness: Vec<f64> = pcm.chunks(STRETCH).map(rms).collect();
    let peak = loudness.iter().copied().fold(0.0, f64::max);
    let least = (peak * 10f64.powf(-BELOW_PEAK_DB / 20.0)).max(RMS_MIN);
    loudness.into_iter().map(|loudness| loudness >= least).collect()
}

/// From which stretch to which there is voice without a pause.
fn runs(voiced: &[bool], pause_min: usize) -> Vec<(usize, usize)> {
    let (mut runs, mut at) = (Vec::<(usize, usize)>::new(), 0);
    for same in voiced.chunk_by(|one, next| one == next) {
        let (from, to) = (at, at + same.len());
        at = to;
        if !same.contains(&true) || same.len() < VOICE_MIN {
            continue;
        }
        if let Some(last) = runs.last_mut().filter(|last| from - last.1 < pause_min) {
            last.1 = to;
        } else {
            runs.push((from, to));
        }
    }
    runs
}

fn samples(us: u64) -> usize {
    (us * u64::from(CLIP_HZ) / 1_000_000) as usize
}

fn us(samples: usize) -> u64 {
    samples as u64 * 1_000_000 / u64::from(CLIP_HZ)
}
