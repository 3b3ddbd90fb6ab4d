//! One speech in the speaker: buffered, played, counted.

use super::*;

impl Speech {
    pub(super) fn add(&mut self, sequence: u32, position_us: u64, chunk: Chunk) {
        self.highest_sequence = self.highest_sequence.max(sequence);
        // Sound at positions already played or concealed is late; what is buffered is a duplicate.
        if position_us + SLACK_US >= self.head_us && self.chunks.len() < CHUNKS_MAX && self.fade.is_none() {
            self.chunks.entry(position_us).or_insert(chunk);
        }
    }

    /// True if no more chunks can come.
    pub(super) fn is_whole(&self, now_us: u64) -> bool {
        self.end.is_some_and(|(at, end)| {
            self.highest_sequence >= end.last_audio_sequence
                || now_us >= at + u64::from(limits::LAST_SOUND_WAIT_MS_MAX) * 1_000
        })
    }

    pub(super) fn poll_timeout(&self) -> Option<u64> {
        if let Some((_, ends)) = self.fade {
            return Some(ends);
        }
        let whole = self.end.map(|(at, _)| at + u64::from(limits::LAST_SOUND_WAIT_MS_MAX) * 1_000);
        match &self.sounding {
            Some(sounding) => {
                let ends_us = sounding.from_us + sounding.duration_us;
                let report_us = self.reported_us + REPORT_EVERY_US;
                Some(ends_us.min(report_us.max(sounding.from_us + 1)))
            }
            // Queued after another speech, nothing is due; while starved, only the end is.
            None if self.starved_since.is_some() || self.began_us.is_none() => whole,
            None => Some(self.next_us),
        }
    }

    /// Plays up to `now_us`. Once the speech is over, returns whether it was complete.
    pub(super) fn play(&mut self, now_us: u64, out: &mut Out, reports: &mut VecDeque<Report>) -> Option<bool> {
        loop {
            // Packets under a fade are still played, up to its end.
            let fades_at = self.fade.map(|(_, ends)| ends).filter(|ends| *ends <= now_us);
            let sounds_until = self.sounding.as_ref().map(|sounding| sounding.from_us + sounding.duration_us);
            if let Some(fades_at) = fades_at
                && sounds_until.map_or(self.next_us >= fades_at || self.chunks.is_empty(), |until| until >= fades_at)
            {
                self.cut(fades_at, out);
                return Some(false);
            }
            if let Some(until) = sounds_until {
                if until > now_us {
                    self.emit(now_us, out);
                    self.report_progress(now_us, reports);
                    return None;
                }
                self.complete_packet(out);
                continue;
            }
            if self.began_us.is_none() && !self.may_begin(now_us) {
                // A speech whose end is known and that has no sound is over at once.
                return (self.is_whole(now_us) && self.chunks.is_empty()).then_some(true);
            }
            match self.fetch(now_us, reports) {
                Fetched::Packet => {}
                Fetched::NotYet => return None,
                Fetched::Over => return Some(true),
            }
        }
    }

    pub(super) fn may_begin(&self, now_us: u64) -> bool {
        let buffered: u64 = self.chunks.values().map(|chunk| chunk.duration_us).sum();
        buffered >= PREBUFFER_US || (self.is_whole(now_us) && !self.chunks.is_empty())
    }

    /// Makes the next packet the playing one.
    pub(super) fn fetch(&mut self, now_us: u64, reports: &mut VecDeque<Report>) -> Fetched {
        let Some((&position, _)) = self.chunks.first_key_value() else {
            return self.run_dry(now_us, reports);
        };
        self.go_on(now_us);
        if self.began_us.is_none() {
            self.next_us = self.next_us.max(now_us);
        }
        if position > self.head_us + SLACK_US {
            self.conceal(position - self.head_us);
            return Fetched::Packet;
        }
        let Some((_, chunk)) = self.chunks.pop_first() else {
            return Fetched::NotYet;
        };
        let mut pcm = Vec::new();
        if let Some(decoder) = &mut self.decoder
            && decoder.decode(&chunk.payload, &mut pcm).is_err()
        {
            decoder.conceal(&mut pcm);
        }
        let duration_us = if pcm.is_empty() {
            chunk.duration_us.max(1)
        } else {
            pcm.len() as u64 * 1_000_000 / u64::from(self.rate_hz.max(1))
        };
        let from_us = self.next_us;
        if self.began_us.is_none() {
            self.began_us = Some(from_us);
            reports.push_back(Report::FirstSound { speech: self.id, turn: self.turn, at_us: from_us });
        }
        self.sounding = Some(Sounding::new(from_us, duration_us, pcm));
        self.head_us = position + duration_us;
        if self.clause != Some(chunk.clause) {
            self.clause = Some(chunk.clause);
            self.report(from_us, self.played_us, PlayState::Playing, reports);
        }
        Fetched::Packet
    }

    /// What comes next is played now, where there was nothing to play.
    fn go_on(&mut self, now_us: u64) {
        if let Some(since) = self.starved_since.take() {
            self.next_us = now_us;
            self.silence(since, now_us);
        }
    }

    /// Nothing is buffered: the speech is over, but for packets at its end that did not come, or starves.
    pub(super) fn run_dry(&mut self, now_us: u64, reports: &mut VecDeque<Report>) -> Fetched {
        if self.is_whole(now_us) {
            let left_us = self.end.map_or(0, |(_, end)| end.duration_us.saturating_sub(self.head_us));
            if self.fade.is_some() || self.began_us.is_none() || !(SLACK_US + 1..=TAIL_US_MAX).contains(&left_us) {
                return Fetched::Over;
            }
            self.go_on(now_us);
            self.conceal(left_us);
            return Fetched::Packet;
        }
        if self.fade.is_some() {
            return Fetched::NotYet;
        }
        if self.starved_since.is_none() {
            self.starved_since = Some(self.next_us);
            self.report(self.next_us, self.played_us, PlayState::Starved, reports);
        }
        Fetched::NotYet
    }

    /// Fills a gap of `gap_us` with the copy that the next packet carries, where one packet is missing, else with the
    /// decoder's concealment.
    pub(super) fn conceal(&mut self, gap_us: u64) {
        let mut pcm = Vec::new();
        let next = self.chunks.values().next().filter(|next| gap_us.abs_diff(next.duration_us) <= SLACK_US);
        if let Some(decoder) = &mut self.decoder {
            if let Some(next) = next {
                decoder.recover(&next.payload, &mut pcm);
            }
            let wanted =
                (gap_us.min(limits::PACKET_DURATION_US_MAX.into()) * u64::from(self.rate_hz) / 1_000_000) as usize;
            while pcm.len() < wanted && decoder.conceal(&mut pcm) > 0 {}
            pcm.truncate(wanted);
        }
        let duration_us = gap_us.min(limits::PACKET_DURATION_US_MAX.into());
        self.sounding = Some(Sounding::new(self.next_us, duration_us, pcm));
        self.head_us += duration_us;
        self.concealed_us += duration_us;
    }

    pub(super) fn complete_packet(&mut self, out: &mut Out) {
        let Some(until_us) = self.sounding.as_ref().map(|sounding| sounding.from_us + sounding.duration_us) else {
            return;
        };
        self.emit(until_us, out);
        if let Some(sounding) = self.sounding.take() {
            self.played_us += sounding.duration_us;
            self.next_us = until_us;
        }
    }

    /// Stops inside a packet.
    pub(super) fn cut(&mut self, at_us: u64, out: &mut Out) {
        self.emit(at_us, out);
        if let Some(sounding) = self.sounding.take() {
            self.played_us += at_us.saturating_sub(sounding.from_us).min(sounding.duration_us);
        }
        self.next_us = at_us;
        self.chunks.clear();
    }

    /// Outputs what of the playing packet has not come out by `until_us`.
    fn emit(&mut self, until_us: u64, out: &mut Out) {
        let Some(sounding) = &mut self.sounding else { return };
        let rate_hz = self.rate_hz.max(1);
        let part_us = until_us.saturating_sub(sounding.from_us).min(sounding.duration_us);
        let ends = ((part_us * u64::from(rate_hz)).div_ceil(1_000_000) as usize).min(sounding.pcm.len());
        let begins = sounding.out_samples.min(ends);
        let mut pcm = Vec::with_capacity(ends - begins);
        for (n, sample) in sounding.pcm.iter().enumerate().take(ends).skip(begins) {
            let mut gain = f64::from(out.volume_percent) / 100.0;
            if let Some((from, to)) = self.fade {
                let at = sounding.from_us as f64 + n as f64 * 1e6 / f64::from(rate_hz);
                let left = (to as f64 - at) / (to.saturating_sub(from).max(1)) as f64;
                gain *= left.clamp(0.0, 1.0);
            }
            pcm.push((f64::from(*sample) * gain) as i16);
        }
        self.pcm.extend_from_slice(&pcm);
        if out.is_tapped && part_us > sounding.out_us {
            // Samples and time begin together, but for the part of a sample.
            let at_us = begins as u64 * 1_000_000 / u64::from(rate_hz);
            let from_us = sounding.from_us + if pcm.is_empty() { sounding.out_us } else { at_us };
            if out.outputs.len() == OUTPUTS_MAX {
                out.outputs.pop_front();
            }
            out.outputs.push_back(Output { from_us, until_us: sounding.from_us + part_us, rate_hz, pcm });
        }
        sounding.out_us = sounding.out_us.max(part_us);
        sounding.out_samples = ends.max(sounding.out_samples);
    }

    pub(super) fn silence(&mut self, from_us: u64, to_us: u64) {
        if self.decoder.is_some() {
            let us = to_us.saturating_sub(from_us).min(STARVED_US_MAX);
            let samples = (us * u64::from(self.rate_hz) / 1_000_000) as usize;
            self.pcm.resize(self.pcm.len() + samples, 0);
        }
    }

    pub(super) fn report_progress(&mut self, now_us: u64, reports: &mut VecDeque<Report>) {
        let Some(sounding) = &self.sounding else {
            return;
        };
        if now_us >= self.reported_us + REPORT_EVERY_US {
            let played_us = self.played_us + now_us.saturating_sub(sounding.from_us).min(sounding.duration_us);
            self.report(now_us, played_us, PlayState::Playing, reports);
        }
    }

    pub(super) fn report(&mut self, at_us: u64, played_us: u64, state: PlayState, reports: &mut VecDeque<Report>) {
        self.reported_us = at_us;
        let clause = self.clause.unwrap_or(0);
        reports.push_back(Report::Played { speech: self.id, turn: self.turn, clause, played_us, at_us, state });
    }

    /// The last report and the record of the speech.
    pub(super) fn finish(self, at_us: u64, complete: bool) -> [Report; 2] {
        let state = if complete { PlayState::Finished } else { PlayState::Stopped };
        let (speech, turn, clause, played_us) = (self.id, self.turn, self.clause.unwrap_or(0), self.played_us);
        // Of a speech that was stopped, later clauses were announced and not heard.
        let begun = if complete { u16::MAX } else { clause };
        let texts = self.texts.range(..=begun).map(|(_, text)| text.as_str()).filter(|text| !text.is_empty());
        let texts: Vec<&str> = texts.collect();
        [
            Report::Played { speech, turn, clause, played_us, at_us, state },
            Report::Over(Heard {
                speech,
                turn,
                text: texts.join(" "),
                began_us: self.began_us,
                ended_us: at_us,
                played_us,
                concealed_us: self.concealed_us,
                complete,
                arrived_us: self.arrived_us,
                pcm: self.pcm,
                rate_hz: self.rate_hz,
            }),
        ]
    }
}
