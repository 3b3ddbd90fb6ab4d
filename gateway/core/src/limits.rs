//! Every maximum of the core, with its reason.

/// Closed utterances that wait for their transcript. A wearer cannot produce more within the time that a decode may
/// take; the oldest is dropped.
pub const UTTERANCES_PENDING_MAX: usize = 4;
/// Characters of one utterance that are passed to a model: a minute of fast speech is about 1,200.
pub const UTTERANCE_CHARS_MAX: usize = 4_000;
/// Milliseconds of silence that end any utterance: after a longer one the wearer says something else.
pub const SILENCE_MS_MAX: u32 = 2_500;
/// Tool calls in one turn. More means that the model loops.
pub const CALLS_PER_TURN_MAX: usize = 16;
/// Milliseconds that a tool may take that declares no time-out of its own.
pub const TOOL_MS_DEFAULT: u32 = 30_000;
/// Milliseconds that any tool may take: after that the wearer no longer waits for it.
pub const TOOL_MS_MAX: u32 = 120_000;
/// Milliseconds that a result may come later than the tool's time-out: the executor records the call, waits for a
/// server that has just started, and notifies one that is late.
pub const TOOL_MARGIN_MS: u32 = 5_000;
/// Reasoning parts kept of one answer: a provider sends at most one before each call.
pub const THINKING_PARTS_MAX: usize = 32;
/// Models asked one after another; each may keep the wearer waiting.
pub const MODELS_MAX: usize = 8;
/// Restarts of a turn because of changed tools; after that, changes take effect with the next request.
pub const RESTARTS_MAX: u8 = 4;
/// Sentences that a turn's tools may suggest; a display has room for one or two.
pub const FOLLOW_UPS_MAX: usize = 3;
/// Characters of such a sentence.
pub const FOLLOW_UP_CHARS_MAX: usize = 60;
/// Between two lines about what a turn's calls are doing, in milliseconds: faster ones cannot be read.
pub const PROGRESS_MS_MIN: u32 = 300;
/// Characters of such a line: one line of a wide display.
pub const PROGRESS_CHARS_MAX: usize = 80;
/// Pictures sent to a model in one turn.
pub const IMAGES_PER_TURN_MAX: usize = 4;
/// Bytes in base64 of a picture sent to a model: providers accept 5 MB at most.
pub const IMAGE_BYTES_MAX: usize = 4_000_000;
/// Bytes of a tool's result from which on it is left out of requests once it is stale: about 250 tokens.
pub const STALE_RESULT_BYTES_MIN: usize = 1_000;
/// Turns after which a result is old: "and the second one?" refers to the last answers.
pub const STALE_TURNS_MIN: usize = 4;
/// Events of a model's answer that are kept while the wearer goes on with the request. A longer answer is no use before
/// the request is complete.
pub const HELD_EVENTS_MAX: usize = 4_096;
/// Interrupted turns that still wait for results of cancelled calls.
pub const SETTLING_TURNS_MAX: usize = 4;
/// Characters of a model's answer in one turn: about ten minutes of speech.
pub const ANSWER_CHARS_MAX: usize = 10_000;
/// Turns of speech that captions keep: a display has hardly more room, and a frame of 2 KiB none.
pub const CAPTION_TURNS_MAX: usize = 4;
/// Bytes of captions, so that a frame of 2 KiB holds them.
pub const CAPTION_BYTES_MAX: usize = 1_900;
/// Length of a clause in spoken letters, so that its synthesis stays short. At half the usual pace it is some 27 s of sound:
/// a device's queue of 60 s holds two.
pub const CLAUSE_LETTERS_MAX: u32 = 220;
/// Clauses passed to synthesis but not yet played: one plays while the next is synthesised.
pub const CLAUSES_AHEAD_MAX: usize = 2;
/// Announcements that wait for the floor; the schedule keeps the rest.
pub const NOTICES_QUEUED_MAX: usize = 16;
/// Questions open at once: calls run in parallel, but a wearer is asked one after another.
pub const QUESTIONS_MAX: usize = 4;
/// Milliseconds after a question is put in which a press or typed text is no answer to it: the wearer began it before
/// the question could be read.
pub const QUESTION_READ_MS_MIN: u32 = 500;
/// A clause's length as reported by the shell, in microseconds: bounds the wait for its end.
pub const CLAUSE_US_MAX: u64 = 60_000_000;
/// Microseconds beyond the clauses' own length after which a device that acknowledges nothing has stalled.
pub const STALL_SLACK_US: u64 = 8_000_000;
/// The same while the sound of a clause is still being made: whatever makes it has to end, or to fail, in less.
pub const SYNTHESIS_US_MAX: u64 = 30_000_000;
/// Milliseconds of a recorded sound sent as one clause: keeps the buffered audio short.
pub const SOUND_PIECE_MS: u32 = 10_000;
/// Milliseconds of a recorded sound that an app plays: no more than a song, since it blocks all other speech.
pub const SOUND_MS_MAX: u32 = 300_000;
/// Messages of a user held in memory; the store keeps the rest.
pub const HISTORY_MESSAGES_MAX: usize = 200;
/// Messages of the history sent to a model if it exceeds the budget and is not summarised.
pub const HISTORY_FOR_MODEL_MAX: usize = 20;
/// Characters of the displayed text included in a model request: a page.
pub const SHOWN_CHARS_MAX: usize = 600;
/// Texts that the gateway adds to every model request: an index of skills is the longest.
pub const BRIEFING_BLOCKS_MAX: usize = 8;
/// Characters of one of them.
pub const BRIEFING_CHARS_MAX: usize = 8_000;
/// Characters of a summary: at most a tenth of what it covers.
pub const SUMMARY_CHARS_MAX: usize = 4_000;
/// Days of spending that are known at once: more than a clock is set to before it is right.
pub const SPENDING_DAYS_MAX: usize = 8;
/// Entries of a user's schedule.
pub const SCHEDULE_ENTRIES_MAX: usize = 200;
/// Characters of an entry's text.
pub const SCHEDULE_TEXT_CHARS_MAX: usize = 500;
/// Apps that run concurrently on one pair of glasses: more than a wearer can follow.
pub const APPS_MAX: usize = 16;
/// Characters of an app's name on its boot screen: two lines of most displays.
pub const APP_NAME_CHARS_MAX: usize = 40;
/// Characters of each text that an app draws: ten times the capacity of the largest display.
pub const APP_TEXT_CHARS_MAX: usize = 2_000;
/// Bytes of a picture of one bit per pixel: 640 by 200, the most that the device protocol carries.
pub const BITMAP_BYTES_MAX: usize = 16_000;
/// Characters of an app's line on the dashboard.
pub const DASHBOARD_LINE_CHARS_MAX: usize = 120;
/// Packets that one report about sound may count: more than come in a minute.
pub const SOUND_REPORT_PACKETS_MAX: u32 = 10_000;
/// Microseconds below which a talk button was pressed, not held: nobody says anything in that time.
pub const PRESS_US_MAX: u64 = 400_000;
/// Devices of one user connected at once.
pub const DEVICES_MAX: usize = 16;
