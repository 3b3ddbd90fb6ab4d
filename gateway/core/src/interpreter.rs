//! "Translate what they say": what is said near the glasses and is not meant for the assistant, in English.
//!
//! While it is on, the floor has each utterance translated as soon as it is over, whether or not its own words are known:
//! a recogniser of one language understands nothing of another. What comes back waits here until it is known that the
//! utterance was not meant for the assistant; then it is shown, page by page, and read out if the wearer wants that.
//! Nothing of it is kept.

use alloc::{collections::VecDeque, format, string::String};

use crate::{
    agent::phrases,
    context::Context,
    floor::commands,
    output::Output,
    reply,
    timers::Timer,
    vocab::{Content, Priority, Translation},
};

/// Without a translation for this long it ends.
const IDLE_MS: u32 = 600_000;
/// How long a translation stands after it could be read, if no other one follows.
const STANDS_MS: u32 = 5_000;
/// Utterances that are remembered as done, and translations that wait for their words: more than wait for a transcript.
const UTTERANCES_MAX: usize = 8;
/// Pages that wait to be read: half a minute behind those who speak is enough.
const PAGES_MAX: usize = 8;
/// Sentences that wait to be read out.
const UNSAID_MAX: usize = 3;

/// Translates talk while it is on.
#[derive(Debug, Default)]
pub(crate) struct Interpreter {
    /// `None`: it is off.
    on: Option<On>,
    /// The last utterances that are shown already, or were meant for the assistant.
    done: VecDeque<u32>,
    /// Translations of utterances whose words are still awaited.
    held: VecDeque<(u32, Option<Translation>)>,
}

#[derive(Debug)]
struct On {
    aloud: bool,
    pages: VecDeque<Content>,
    /// Whether the page that is shown may not have been read yet.
    reading: bool,
    /// How long what is shown stands, in milliseconds; `None`: until a translation comes.
    stands_ms: Option<u32>,
    /// Whether something else is shown in front, or the link is lost: pages wait until they can be seen.
    covered: bool,
    unsaid: VecDeque<String>,
}

impl Interpreter {
    pub(crate) fn is_on(&self) -> bool {
        self.on.is_some()
    }

    /// Begins, or begins anew. `aloud`: what is not English is read out.
    pub(crate) fn begin(&mut self, cx: &mut Context, aloud: bool) {
        self.on = Some(On {
            aloud,
            pages: VecDeque::new(),
            reading: false,
            stands_ms: None,
            covered: false,
            unsaid: VecDeque::new(),
        });
        cx.translating = true;
        cx.disarm(Timer::TranslationPage);
        cx.arm(Timer::TranslationIdle, IDLE_MS);
        self.show_sign(cx);
    }

    /// Ends; whether it was on.
    pub(crate) fn end(&mut self, cx: &mut Context) -> bool {
        self.held.clear();
        cx.translating = false;
        cx.disarm(Timer::TranslationIdle);
        cx.disarm(Timer::TranslationPage);
        let was_on = self.on.take().is_some();
        if was_on {
            cx.release(Priority::Caption);
        }
        was_on
    }

    /// An utterance was meant for the assistant.
    pub(crate) fn note_addressed(&mut self, utterance: u32) {
        if self.is_on() {
            self.note_done(utterance);
        }
    }

    fn note_done(&mut self, utterance: u32) {
        if self.done.len() >= UTTERANCES_MAX {
            self.done.pop_front();
        }
        self.done.push_back(utterance);
    }

    /// A translation has come, or failed.
    pub(crate) fn handle_translated(&mut self, utterance: u32, translation: Option<Translation>) {
        if self.is_on() {
            if self.held.len() >= UTTERANCES_MAX {
                self.held.pop_front();
            }
            self.held.push_back((utterance, translation));
        }
    }

    /// Shows what is known not to be meant for the assistant. `is_awaited`: whether the words of an utterance are still
    /// to come.
    pub(crate) fn settle(&mut self, cx: &mut Context, is_awaited: impl Fn(u32) -> bool) {
        let (waits, known): (VecDeque<_>, VecDeque<_>) =
            core::mem::take(&mut self.held).into_iter().partition(|(utterance, _)| is_awaited(*utterance));
        self.held = waits;
        self.note_cover(cx);
        for (utterance, translation) in known {
            if !self.done.contains(&utterance) {
                self.note_done(utterance);
                self.tell(cx, translation);
            }
        }
    }

    /// A page that was covered is read from its beginning once it can be seen again.
    fn note_cover(&mut self, cx: &mut Context) {
        let Some(on) = &mut self.on else { return };
        let in_front = [Priority::Approval, Priority::Notice, Priority::Assistant];
        let is_covered = !cx.linked || in_front.into_iter().any(|priority| cx.is_claimed(priority));
        if core::mem::replace(&mut on.covered, is_covered) != is_covered {
            watch_page(cx, on);
        }
    }

    fn tell(&mut self, cx: &mut Context, translation: Option<Translation>) {
        let Some(on) = &mut self.on else { return };
        let (title, text) = match &translation {
            // Recognisers make words of noises.
            Some(translation) if !commands::has_words(&translation.text) => return,
            Some(Translation { text, from: Some(from) }) => {
                (format!("{}{from}", phrases::TRANSLATED_FROM), text.as_str())
            }
            Some(Translation { text, from: None }) => (String::from(phrases::ENGLISH), text.as_str()),
            None => (String::from(phrases::TRANSLATING_SIGN), phrases::MISSED_A_SENTENCE),
        };
        cx.arm(Timer::TranslationIdle, IDLE_MS);
        if cx.display.is_some() {
            on.pages.extend(reply::cards(&title, text, cx.display));
        }
        if let Some(Translation { text, from: Some(_) }) = translation.filter(|_| on.aloud) {
            if on.unsaid.len() >= UNSAID_MAX {
                on.unsaid.pop_front();
            }
            on.unsaid.push_back(text);
        }
        if !on.reading {
            self.next_page(cx);
        }
        self.leave_out(cx);
    }

    /// Leaves out the oldest of too many pages that wait, and has that told in their place.
    fn leave_out(&mut self, cx: &Context) {
        let Some(on) = self.on.as_mut().filter(|on| on.pages.len() > PAGES_MAX) else { return };
        let mut pages: VecDeque<_> =
            reply::cards(phrases::TRANSLATING_SIGN, phrases::MISSED_A_SENTENCE, cx.display).into();
        let excess = on.pages.len().saturating_sub(PAGES_MAX.saturating_sub(pages.len()));
        pages.extend(on.pages.drain(..).skip(excess));
        on.pages = pages;
    }

    /// The page that is shown was read, or has stood long enough, unless something has come in front of it meanwhile.
    pub(crate) fn handle_page_due(&mut self, cx: &mut Context) {
        self.note_cover(cx);
        if self.on.as_ref().is_some_and(|on| !on.covered) {
            self.next_page(cx);
        }
    }

    fn next_page(&mut self, cx: &mut Context) {
        let Some(on) = &mut self.on else { return };
        if let Some(page) = on.pages.pop_front() {
            on.reading = true;
            on.stands_ms = Some(reply::reading_ms(&page));
            cx.claim(Priority::Caption, page, None);
        } else if core::mem::take(&mut on.reading) {
            on.stands_ms = Some(STANDS_MS);
        } else {
            on.stands_ms = None;
            self.show_sign(cx);
        }
        if let Some(on) = &self.on {
            watch_page(cx, on);
        }
    }

    /// Shows that it is on.
    fn show_sign(&self, cx: &mut Context) {
        if cx.display.is_some() {
            let (title, text) = (String::from(phrases::TRANSLATING_SIGN), String::from(phrases::HOW_TO_STOP));
            cx.claim(Priority::Caption, Content::Card { title, text }, None);
        }
    }

    /// The next sentence to be read out. `is_heard`: somebody speaks; glasses that hear their own speaker wait for
    /// silence, because they could not tell the two apart.
    pub(crate) fn take_unsaid(&mut self, cx: &Context, is_heard: bool) -> Option<String> {
        let on = self.on.as_mut().filter(|_| cx.echo_cancelled || !is_heard)?;
        on.unsaid.pop_front()
    }

    /// Whether sentences wait to be read out.
    pub(crate) fn has_unsaid(&self) -> bool {
        self.on.as_ref().is_some_and(|on| !on.unsaid.is_empty())
    }

    /// Nothing that waits is read out any more.
    pub(crate) fn hush(&mut self) {
        self.on.iter_mut().for_each(|on| on.unsaid.clear());
    }
}

/// Arms the timer for the page that is shown, while it can be seen.
fn watch_page(cx: &mut Context, on: &On) {
    match on.stands_ms.filter(|_| !on.covered) {
        Some(stands_ms) => cx.arm(Timer::TranslationPage, stands_ms),
        None => cx.disarm(Timer::TranslationPage),
    }
}

impl Context {
    /// Has an utterance that is over translated.
    pub(crate) fn translate(&mut self, utterance: u32) {
        self.push(Output::Translate { utterance });
    }
}
