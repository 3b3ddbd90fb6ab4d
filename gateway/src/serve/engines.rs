//! Loads the models of recognition, synthesis and tool selection.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::{Context as _, Result};
use audio::{
    asr::{self, Scheduler, SchedulerConfig},
    end_of_turn,
    meter::Meter,
    models::catalogue,
    tts::Voice,
    vad::silero,
};

use crate::{
    config::Config,
    device_task::services::Engines,
    models::{metered::Meters, settings::RouterBy, tool_selection::BySentences},
    runtime::{compute::Compute, on_own_thread},
    speech::{
        ear::PauseJudge,
        elsewhere::{
            Elsewhere,
            recogniser::{Recogniser, RemoteRecogniser},
            settings::{Order, Speaker},
            voice::OtherVoice,
        },
        settings::Hearing,
        wake::WakeWords,
    },
};

/// Meters of the recognisers: of the first passes, and of the second ones.
pub(super) const FIRST_WHISPER: &str = "whisper.first";
pub(super) const SECOND_WHISPER: &str = "whisper.second";
/// Meters of the engines outside of the gateway.
pub(super) const REMOTE_RECOGNISER: &str = "recognition.remote";
pub(super) const OTHER_VOICE: &str = "voice.other";
/// Jobs that may wait for synthesis: a clause takes about 10 ms.
const SYNTHESIS_WAITING_MAX: usize = 64;
/// Synthesis threads: with two, a first clause seldom waits for another's. More would take cores from recognition.
const SYNTHESIS_THREADS: usize = 2;
/// Files that may wait to be read or written: a sound may take a second.
const FILES_WAITING_MAX: usize = 32;
/// Pauses that may wait to be judged: with more, a score would come after the decision.
const PAUSES_WAITING_MAX: usize = 8;
/// Threads for wake words: a step takes some two milliseconds of the 80 that it covers.
const WAKE_THREADS: usize = 2;
/// Decodes that may wait per thread. At 150 to 500 ms each, a longer queue would delay too much. A shorter one would drop
/// utterances that happen to coincide, though the machine has time for them a few seconds later: 20 wearers who speak at
/// once on two cores.
const RECOGNITION_WAITING_PER_WORKER: usize = 12;

/// Loads all models concurrently, outside the runtime's threads. Those whose engines do not tell their meters are counted in
/// `meters`.
pub(super) async fn load(config: &Config, meters: &Meters) -> Result<(Engines, Option<Arc<BySentences>>)> {
    let missing = "run `lorgnette models fetch`, or set `models_dir`";
    config.hearing.check_language()?;
    let Hearing { workers, end_of_turn: judged, wake: heads, model: whisper, second_model, .. } =
        config.hearing.clone();
    let mut elsewhere = elsewhere(config, meters)?;
    let remote = elsewhere.recogniser.clone();
    let models_dir = config.models_dir.clone();
    let asr = on_own_thread(move || {
        let load = |path: &Path| {
            let own = "name another file in the section [hearing], or none and run `lorgnette models fetch`";
            let remedy = if path.starts_with(&models_dir) { missing } else { own };
            asr::Engine::load(path, asr::Config::default())
                .with_context(|| format!("loading {}; {remedy}", path.display()))
        };
        let both = || Ok((load(&whisper)?, second_model.as_deref().map(load).transpose()?));
        let pool = SchedulerConfig { workers, queue_max: workers * RECOGNITION_WAITING_PER_WORKER };
        recognition(both(), remote, pool)
    });
    let path = config.models_dir.join(silero::FILE_NAME);
    let vad = on_own_thread(move || {
        silero::Model::load(&path).with_context(|| format!("loading {}; {missing}", path.display()))
    });
    let path = config.models_dir.join("hibari");
    let voice =
        on_own_thread(move || Voice::load(&path).with_context(|| format!("loading {}; {missing}", path.display())));
    let path = config.models_dir.join(end_of_turn::FILE_NAME);
    let judge = on_own_thread(move || -> Result<Option<PauseJudge>> {
        if !judged {
            return Ok(None);
        }
        let model = match end_of_turn::Model::load(&path) {
            Ok(model) => model,
            Err(error) => {
                // Turns then end by silence and text, as without the score.
                tracing::warn!(%error, "the end-of-turn score stays off");
                return Ok(None);
            }
        };
        let compute = Compute::start("turn", 1, PAUSES_WAITING_MAX).context("starting the end-of-turn thread")?;
        Ok(Some(PauseJudge { model, compute }))
    });
    let (phrases, models_dir) = (config.conversation.wake_phrases.clone(), config.models_dir.clone());
    let devices = config.limits.sessions_max;
    let wake = on_own_thread(move || {
        let words = WakeWords::load(&heads?, &models_dir, &phrases, (WAKE_THREADS, devices));
        // As without heads: an operator must not lose the assistant for one.
        words.inspect_err(|error| tracing::warn!(error = format!("{error:#}"), "wake phrases are known by text")).ok()
    });
    let sentences = match config.models.tools.by {
        RouterBy::Sentences { wait_ms } => {
            let wait = Duration::from_millis(wait_ms.into());
            let (sentences, meter) = BySentences::load(&config.models_dir, wait).await?;
            meters.put(catalogue::MINILM, meter);
            Some(Arc::new(sentences))
        }
        RouterBy::Words | RouterBy::Model(_) => None,
    };
    let compute =
        Compute::start("tts", SYNTHESIS_THREADS, SYNTHESIS_WAITING_MAX).context("starting the synthesis threads")?;
    let files = Compute::start_in_background("files", 1, FILES_WAITING_MAX).context("starting the thread for files")?;
    let (asr, counted) = asr.await??;
    elsewhere.local = counted.as_ref().and_then(|[first, _]| first.clone());
    for (name, meter) in [FIRST_WHISPER, SECOND_WHISPER].into_iter().zip(counted.into_iter().flatten()) {
        meter.into_iter().for_each(|meter| meters.put(name, meter));
    }
    let engines = Engines {
        asr: Arc::new(asr),
        languages: config.hearing.understood(),
        silero: vad.await??,
        judge: judge.await??,
        wake: wake.await?,
        wake_counts: Arc::default(),
        voice: Arc::new(voice.await??),
        compute,
        phrases: Arc::default(),
        elsewhere,
        files,
    };
    Ok((engines, sentences))
}

/// Meters of the weights on this machine: of the first and of the second ones.
type Counted = [Option<Arc<Meter>>; 2];

/// Starts recognition: by the weights on this machine, or by a server and those, if they are there. `None`: they are not.
fn recognition(
    local: Result<(asr::Engine, Option<asr::Engine>)>,
    remote: Option<Arc<RemoteRecogniser>>,
    pool: SchedulerConfig,
) -> Result<(Scheduler, Option<Counted>)> {
    let counted = |(first, second): &(asr::Engine, Option<asr::Engine>)| {
        [Some(first.meter()), second.as_ref().map(asr::Engine::meter)]
    };
    let Some(remote) = remote else {
        let local = local?;
        let meters = counted(&local);
        return Ok((Scheduler::start_with(pool, move || asr::Pair::new(&local.0, local.1.as_ref()))?, Some(meters)));
    };
    let unusable = |error: &anyhow::Error| {
        tracing::warn!(error = format!("{error:#}"), "nothing is recognised on this machine, all of it elsewhere");
    };
    let local = local.inspect_err(unusable).ok();
    let meters = local.as_ref().map(counted);
    let make = move || {
        let pair = local.as_ref().map(|(first, second)| asr::Pair::new(first, second.as_ref()));
        Ok(Recogniser::new(pair.transpose()?, remote.clone()))
    };
    Ok((Scheduler::start_with(pool, make)?, meters))
}

/// Sets up what is configured outside of the gateway, and says what leaves this machine.
fn elsewhere(config: &Config, meters: &Meters) -> Result<Elsewhere> {
    let recogniser = config.hearing.remote.as_ref().map(|remote| {
        let (place, order) = (remote.server.to_string(), remote.order);
        match order {
            Order::Instead => {
                tracing::warn!(place, "sound leaves this machine: all speech near the glasses is recognised there")
            }
            Order::Fallback => tracing::warn!(place, "sound leaves this machine whenever its own recogniser fails, and all of it in languages that its weights do not know"),
        }
        RemoteRecogniser::new(remote, meters.of(REMOTE_RECOGNISER))
    });
    let voice = config.other_voice.as_ref().map(|other| {
        if let Speaker::Server { server, .. } = &other.speaker {
            tracing::warn!(place = %server, "what is to be said leaves this machine: it is spoken there");
        }
        OtherVoice::new(other, meters.of(OTHER_VOICE))
    });
    Ok(Elsewhere {
        recogniser: recogniser.transpose()?.map(Arc::new),
        voice: voice.transpose()?.map(Arc::new),
        local: None,
    })
}
