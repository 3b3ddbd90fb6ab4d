//! The lines of a scenario that set the initial conditions.

use gateway_core::{
    conversation::{BargeIn, Earcons},
    user::{self, Price},
    vocab::{DisplaySize, QuietHours},
};

use super::{Run, actions::Words};
use crate::world::World;

/// Handles a setting, before anything else.
pub(super) fn given(run: &mut Run, words: &Words) -> Result<(), String> {
    match words.get(1) {
        "glasses" | "phone" => {
            let name = words.get(1).to_string();
            let (columns, rows) = (words.number_after("columns")?, words.number_after("rows")?);
            let whole = |number: Option<u64>, usual: u16| number.map_or(usual, |number| (number / 1_000) as u16);
            let size = DisplaySize::new(whole(columns, 40), whole(rows, 4));
            let display = (!words.has("blind")).then_some(size);
            let (config, user, start) = (run.config.clone(), run.user.clone(), run.start);
            let world = run.world.get_or_insert_with(|| World::with(config.clone(), user, start));
            world.config = config;
            let device = world.add_device(&name, display, !words.has("deaf"), !words.has("echo"));
            world.devices[device].info.captions = words.has("captions");
            if !words.has("away") {
                world.connect(device, false);
            } else {
                world.devices[device].connected = false;
            }
            return Ok(());
        }
        "translation" => run.config.translates = true,
        "acoustic" => run.config.acoustic_wake = true,
        "always" => run.config.always_listening = true,
        "conversation" => run.config.conversational = true,
        "second" if words.has("model") => run.config.second_model = true,
        "no" if words.has("follow-up") => run.config.follow_up = false,
        "no" if words.has("partials") => {
            run.world()?.partials = false;
        }
        "barge-in" if words.has("words") => run.config.barge_in = BargeIn::Words,
        "barge-in" if words.has("voice") => run.config.barge_in = BargeIn::Voice,
        "quiet" => {
            let hour =
                |at: usize| words.get(at).parse::<u16>().map(|hour| hour * 60).map_err(|_| "from which hour to which?");
            run.config.quiet_hours = Some(QuietHours { from_minute: hour(2)?, to_minute: hour(3)? });
        }
        "earcons" => run.config.earcons = if words.has("all") { Earcons::All } else { Earcons::None },
        "no" if words.has("timers") => run.config.display.timers = false,
        "captions" => run.config.display.captions = true,
        "display" => {
            run.config.display_interval_ms =
                words.number_after("every")?.and_then(|ms| ms.try_into().ok()).ok_or("how often?")?;
        }
        // One word per model: `paid` costs 10 per million output tokens and 2.5 per million input tokens.
        "models" => {
            let price = Price { input: 2_500_000, cached: 0, output: 10_000_000 };
            run.user.models = words
                .words
                .iter()
                .skip(2)
                .map(|(word, _)| user::Model {
                    on_box: word == "box",
                    images: word == "seeing",
                    price: if word == "paid" { price } else { Price::default() },
                })
                .collect();
        }
        "money" => run.user.nano_per_day = words.number_after("money")?.map(|thousandths| thousandths * 1_000_000),
        "tokens" => run.config.turn_tokens_max = Some(words.get(2).parse().map_err(|_| "how many?")?),
        "history" => {
            let tokens_max = words.get(2).parse().map_err(|_| "how many tokens?")?;
            run.user.compaction =
                user::Compaction { tokens_max, summarise: !words.has("trimmed"), ..user::Compaction::default() };
        }
        "place" => run.config.place = words.quoted().map(Into::into),
        "instructions" => run.config.instructions = words.quoted().map(Into::into),
        _ => return Err("given what?".into()),
    }
    Ok(())
}
