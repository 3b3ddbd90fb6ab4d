//! Every maximum of the tools, each with its reason.

/// Bytes of a tool's local name: MCP's own limit.
pub const LOCAL_NAME_BYTES_MAX: usize = 128;
/// Bytes of a tool's full name: a package or server's name, a dot, and the local one. What model
/// providers accept is less, and made of this in `gateway/chat`.
pub const NAME_BYTES_MAX: usize = LOCAL_NAME_BYTES_MAX + 1 + 64;
/// Bytes of a whole definition as JSON: two schemas and the texts.
pub const DEFINITION_BYTES_MAX: usize = 128 * 1024;
/// Nesting of a definition: its schemas stand two levels below it.
pub const DEFINITION_DEPTH_MAX: usize = DEPTH_MAX + 4;
/// Notes of a report: nobody reads more.
pub const NOTES_MAX: usize = 32;
/// Bytes of a category.
pub const CATEGORY_BYTES_MAX: usize = 64;
/// Characters of a title: one line of most displays has 30.
pub const TITLE_CHARS_MAX: usize = 60;
/// Bytes of a description: a model reads all of them on every turn.
pub const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a schema as JSON: the largest published tools have about 10 KiB.
pub const SCHEMA_BYTES_MAX: usize = 32 * 1024;
/// Nesting of a schema or of arguments: keeps every recursive walk far from the end of the stack.
pub const DEPTH_MAX: usize = 32;
/// Properties of the arguments' object: nobody speaks more.
pub const PROPERTIES_MAX: usize = 64;
/// Bytes of a compiled regular expression in a schema.
pub const PATTERN_BYTES_MAX: usize = 256 * 1024;
/// Languages of a tool's phrases.
pub const LANGUAGES_MAX: usize = 16;
/// Bytes of a language tag: RFC 5646 section 4.4.1 asks for 35.
pub const LANGUAGE_BYTES_MAX: usize = 35;
/// Sentence templates per language.
pub const TEMPLATES_MAX: usize = 64;
/// Bytes of one template: longer sentences are not commands.
pub const TEMPLATE_BYTES_MAX: usize = 256;
/// Brackets within brackets in a template.
pub const TEMPLATE_DEPTH_MAX: usize = 6;
/// Bytes of a reply template.
pub const REPLY_BYTES_MAX: usize = 512;
/// Bytes of guidance: it is added to every request.
pub const GUIDANCE_BYTES_MAX: usize = 1024;
/// Tools of one registration.
pub const TOOLS_PER_SOURCE_MAX: usize = 10_000;
/// Tools that one device offers: a model reads all of them on every turn.
pub const TOOLS_PER_DEVICE_MAX: usize = 32;
/// Tools in all: bounds the memory of the registry.
pub const TOOLS_MAX: usize = 20_000;
/// Snapshots kept for readers: more than there are devices connected to one box. Of equal ones most is shared.
pub const SNAPSHOTS_MAX: usize = 1_024;

/// Bytes of a call's arguments as JSON: a long dictated note has a tenth of it.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a result's content: about 8,000 tokens of a model's context.
pub const CONTENT_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a result's data as JSON: twice the content, since keys are repeated.
pub const DATA_BYTES_MAX: usize = 64 * 1024;
/// Bytes that are spoken: about two minutes.
pub const SAY_BYTES_MAX: usize = 2 * 1024;
/// Bytes of one text that is shown: no display of today has more characters.
pub const SHOW_BYTES_MAX: usize = 4 * 1024;
/// Follow-ups of a result: a display has no more lines.
pub const FOLLOW_UPS_MAX: usize = 5;
/// Bytes of one follow-up.
pub const FOLLOW_UP_BYTES_MAX: usize = 128;
/// Bytes of an error's message.
pub const MESSAGE_BYTES_MAX: usize = 512;
/// Milliseconds that any call may take: a wearer has turned to something else by then.
pub const CALL_MS_MAX: u64 = 120_000;
/// Milliseconds after which a question to the wearer counts as expired even if nobody settles it.
pub const CONSENT_MS_MAX: u64 = 180_000;

/// Milliseconds that an interrupted or late tool has to tell its server so.
pub const CANCEL_MS_MAX: u64 = 200;
/// Times that a call is tried again where nothing was done: a server that is being restarted is
/// back within a second, one that is gone is not.
pub const RETRIES_MAX: usize = 2;
/// Milliseconds before the first of them; the second waits twice as long.
pub const RETRY_MS_MIN: u64 = 150;
/// Milliseconds that a call waits for a source that has not answered since the start.
pub const SOURCE_WAIT_MS_MAX: u64 = 2_000;
/// Tools with a limit of their own whose counts are kept.
pub const RATED_TOOLS_MAX: usize = TOOLS_MAX;
/// Characters of one argument's value in a question that its tool has worded: more is not heard out.
pub const QUESTION_VALUE_CHARS_MAX: usize = 120;
/// Arguments that are said in a question; all are shown.
pub const QUESTION_SAID_MAX: usize = 4;
/// Characters of a tool's own description in a question.
pub const QUESTION_WHAT_CHARS_MAX: usize = 120;
/// Bytes of what is shown with a question: what the glasses' protocol carries.
pub const QUESTION_BYTES_MAX: usize = 4 * 1024;
/// Characters of one argument that are shown before a yes; how many more there are is told.
pub const READ_VALUE_CHARS_MAX: usize = 400;
/// Characters of a result that is told in words: some 20 seconds of speech.
pub const SAID_CHARS_MAX: usize = 300;
/// Characters of one text in it.
pub const SAID_TEXT_CHARS_MAX: usize = 120;
/// Characters of one word in it: longer ones are hashes and addresses.
pub const SAID_WORD_CHARS_MAX: usize = 40;
/// Items of a list that are told, the others are counted.
pub const SAID_ITEMS_MAX: usize = 5;
/// Properties of an object that are told, the others are counted.
pub const SAID_PAIRS_MAX: usize = 6;
/// Attachments of a result: more is not looked at.
pub const ATTACHMENTS_MAX: usize = 16;
/// Bytes of all attachments of a result: a photo of the glasses in base64 has half of it.
pub const ATTACHMENTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Characters of base64 in a row that count as something that is not text.
pub const BINARY_CHARS_MIN: usize = 256;
/// Secrets that are blotted out of results.
pub const SECRETS_MAX: usize = 256;
/// Bytes of the shortest secret that is blotted out: a shorter one stands in ordinary words.
pub const SECRET_BYTES_MIN: usize = 6;

/// Entries of one user's schedule: more cannot be told apart by ear.
pub const ENTRIES_MAX: usize = 100;
/// Seconds of a timer: a day; beyond that a reminder survives clock changes better.
pub const TIMER_SECONDS_MAX: i64 = 24 * 3600;
/// Seconds that a reminder may lie ahead: five years.
pub const REMINDER_SECONDS_MAX: i64 = 5 * 366 * 24 * 3600;
/// Characters of a timer's name.
pub const TIMER_NAME_CHARS_MAX: usize = 60;
/// Characters of what to be reminded of.
pub const REMINDER_CHARS_MAX: usize = 500;
/// Characters of a note: five minutes of dictation.
pub const NOTE_CHARS_MAX: usize = 4_000;
/// Characters of a search.
pub const QUERY_CHARS_MAX: usize = 200;
/// Notes that a model is given; it can search for more.
pub const NOTES_LISTED_MAX: usize = 20;
/// Things that are read out at once: nobody remembers more.
pub const SPOKEN_ITEMS_MAX: usize = 5;
/// Characters of one item when several are read out or shown.
pub const ITEM_CHARS_MAX: usize = 80;
/// Characters of a sum.
pub const EXPRESSION_CHARS_MAX: usize = 200;
/// Characters of a sum's outcome that is worth saying.
pub const OUTCOME_CHARS_MAX: usize = 120;
