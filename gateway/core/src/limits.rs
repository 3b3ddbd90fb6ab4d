//! Every maximum of the core, with its reason.

/// Closed utterances that wait for their text. A wearer cannot produce more within the time that
/// a decode may take; the oldest is given up.
pub const UTTERANCES_PENDING_MAX: usize = 4;
/// Characters of one utterance that go on to a model: a minute of fast speech is about 1,200.
pub const UTTERANCE_CHARS_MAX: usize = 4_000;
/// Tool calls in one turn. More is a model that runs in circles.
pub const CALLS_PER_TURN_MAX: usize = 16;
/// Pieces of thinking that are kept of one answer: a provider sends one before each call at most.
pub const THINKING_PARTS_MAX: usize = 32;
/// Models that are asked one after another; each may keep the wearer waiting.
pub const MODELS_MAX: usize = 8;
/// Times that a turn begins anew with other tools; then they count in the next request.
pub const RESTARTS_MAX: u8 = 4;
/// Sentences that a turn's tools may suggest; a display has room for one or two.
pub const FOLLOW_UPS_MAX: usize = 3;
/// Characters of such a sentence.
pub const FOLLOW_UP_CHARS_MAX: usize = 60;
/// Pictures that a model is shown in one turn.
pub const IMAGES_PER_TURN_MAX: usize = 4;
/// Bytes of a picture in base64 that a model is shown: providers take 5 MB at most.
pub const IMAGE_BYTES_MAX: usize = 4_000_000;
/// Interrupted turns that still wait for results of cancelled calls.
pub const SETTLING_TURNS_MAX: usize = 4;
/// Characters that a model may answer in one turn: about ten minutes of speech.
pub const ANSWER_CHARS_MAX: usize = 10_000;
/// Characters of a clause, so that synthesis of one clause stays short.
pub const CLAUSE_CHARS_MAX: usize = 220;
/// Clauses handed to synthesis that were not played yet: one plays while the next is made.
pub const CLAUSES_AHEAD_MAX: usize = 2;
/// Announcements that wait for the floor; the schedule keeps the rest.
pub const NOTICES_QUEUED_MAX: usize = 16;
/// Questions that stand at once; calls run in parallel, but a wearer is asked one after another.
pub const QUESTIONS_MAX: usize = 4;
/// Milliseconds from when a question is put in which a press or a typed word is no answer to it: it was begun before
/// anybody could have read the question.
pub const QUESTION_READ_MS_MIN: u32 = 500;
/// A clause's length as the shell reports it, in microseconds: bounds the wait for its end.
pub const CLAUSE_US_MAX: u64 = 60_000_000;
/// Milliseconds of a recorded sound that are handed out as one clause: what is ahead of the ear stays short.
pub const SOUND_PIECE_MS: u32 = 10_000;
/// Milliseconds of a recorded sound that an app plays: a song and no more, since nobody else is heard meanwhile.
pub const SOUND_MS_MAX: u32 = 300_000;
/// Messages of a user that are kept in memory; the store keeps the rest.
pub const HISTORY_MESSAGES_MAX: usize = 200;
/// Messages of the history that a model is given when it is beyond the budget and not summed up.
pub const HISTORY_FOR_MODEL_MAX: usize = 20;
/// Characters of what stands on the display that a model is told: a page.
pub const SHOWN_CHARS_MAX: usize = 600;
/// Texts that the house tells the model with every request, and characters of each: an index of skills is the longest.
pub const BRIEFING_BLOCKS_MAX: usize = 8;
/// Characters of one of them.
pub const BRIEFING_CHARS_MAX: usize = 8_000;
/// Characters of a summary: a tenth of what it stands for, at most.
pub const SUMMARY_CHARS_MAX: usize = 4_000;
/// Entries of a user's schedule.
pub const SCHEDULE_ENTRIES_MAX: usize = 200;
/// Characters of an entry's text.
pub const SCHEDULE_TEXT_CHARS_MAX: usize = 500;
/// Apps that run beside one another on one pair of glasses: more than a wearer can follow.
pub const APPS_MAX: usize = 16;
/// Characters of an app's name on its boot screen: two lines of most displays.
pub const APP_NAME_CHARS_MAX: usize = 40;
/// Characters of each text that an app draws: ten times what the largest display holds.
pub const APP_TEXT_CHARS_MAX: usize = 2_000;
/// Bytes of a picture, one bit a pixel: 640 by 200, the most that the device protocol carries.
pub const BITMAP_BYTES_MAX: usize = 16_000;
/// Characters of an app's line on the dashboard.
pub const DASHBOARD_LINE_CHARS_MAX: usize = 120;
/// Devices of one user that are connected at once.
pub const DEVICES_MAX: usize = 16;
