//! All limits of the tools, each with its reason.

/// Bytes of a tool's local name: MCP's own limit.
pub const LOCAL_NAME_BYTES_MAX: usize = 128;
/// Bytes of a tool's full name: the name of a package or server, a dot, and the local name. Model providers accept
/// less; their names are derived from this one in `gateway/chat`.
pub const NAME_BYTES_MAX: usize = LOCAL_NAME_BYTES_MAX + 1 + 64;
/// Bytes of a whole definition as JSON: two schemas and the texts.
pub const DEFINITION_BYTES_MAX: usize = 128 * 1024;
/// Nesting of a definition: its schemas are two levels below its root.
pub const DEFINITION_DEPTH_MAX: usize = DEPTH_MAX + 4;
/// Entries of a report: more would not be read.
pub const NOTES_MAX: usize = 32;
/// Bytes of a category: a heading of a few words.
pub const CATEGORY_BYTES_MAX: usize = 64;
/// Characters of a title: one line of most displays has 30.
pub const TITLE_CHARS_MAX: usize = 60;
/// Bytes of a description: a model reads all of them on every turn.
pub const DESCRIPTION_BYTES_MAX: usize = 4 * 1024;
/// Bytes of a schema as JSON: the largest published tools have about 10 KiB.
pub const SCHEMA_BYTES_MAX: usize = 32 * 1024;
/// Nesting of a schema or of arguments: keeps every recursive walk far from the end of the stack.
pub const DEPTH_MAX: usize = 32;
/// Properties of the arguments' object: more cannot be spoken in one command.
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
/// Bytes of the words for a call that runs: a line of a display.
pub const PROGRESS_BYTES_MAX: usize = 120;
/// Characters of that line with the arguments filled in, and with the tool's provider.
pub const PROGRESS_CHARS_MAX: usize = 80;
/// Bytes of a reply template.
pub const REPLY_BYTES_MAX: usize = 512;
/// Bytes of guidance: it is added to every request.
pub const GUIDANCE_BYTES_MAX: usize = 1024;
/// Bytes of a file that defines a capability: as many as eight of the largest definitions of tools.
pub const CAPABILITY_BYTES_MAX: usize = 1024 * 1024;
/// Functions of a capability, and definitions in one file: the largest published MCP servers have about 100 tools.
pub const CAPABILITY_FUNCTIONS_MAX: usize = 256;
/// Bytes of a capability's name: the first part of its functions' full names.
pub const CAPABILITY_NAME_BYTES_MAX: usize = 64;
/// Bytes of a version: semantic versions with a long pre-release have 40.
pub const VERSION_BYTES_MAX: usize = 64;
/// Bytes of a capability's address, and of one of its headers: what most HTTP servers accept in a line is twice that.
pub const URL_BYTES_MAX: usize = 4 * 1024;
/// Headers of a capability's address.
pub const HEADERS_MAX: usize = 16;
/// Bytes of a name in generated code; a longer one is cut and gets a suffix.
pub const MODULE_NAME_BYTES_MAX: usize = 64;
/// Bytes of the comment before a function: a model reads it with each request for the module.
pub const FUNCTION_DOC_BYTES_MAX: usize = 1024;
/// Bytes of the comment before a property.
pub const PROPERTY_DOC_BYTES_MAX: usize = 320;
/// Bytes of the first sentence about a module.
pub const SUMMARY_BYTES_MAX: usize = 120;
/// Bytes of the index of modules: about 4,000 tokens, which a model reads with each request.
pub const INDEX_BYTES_MAX: usize = 16 * 1024;
/// Bytes of the functions' names in a line of it.
pub const INDEX_NAMES_BYTES_MAX: usize = 512;
/// Choices of an enumeration that are written out; with more it is any text or number.
pub const ENUM_LITERALS_MAX: usize = 64;
/// Bytes of one of these choices.
pub const LITERAL_BYTES_MAX: usize = 128;
/// References within references of a schema that are followed in one place.
pub const REFERENCE_HOPS_MAX: usize = 16;
/// What the types of one schema may cost, about a byte of text each: four times the largest schema.
pub const TYPES_COST_MAX: usize = 4 * SCHEMA_BYTES_MAX;
/// Bytes that are compared to find equal types, for one schema: 30 types that all refer to each other, in the
/// largest published schemas, are 300 KiB.
pub const TYPES_COMPARED_MAX: usize = 512 * 1024;
/// Bytes of a user's name.
pub const USER_BYTES_MAX: usize = 64;
/// Users that a capability, an app or an MCP server is for, if not for all: each has a copy of the list of its tools.
pub const USERS_MAX: usize = 64;
/// Tools in one registration.
pub const TOOLS_PER_SOURCE_MAX: usize = 10_000;
/// Tools that one device offers: a model reads all of them on every turn.
pub const TOOLS_PER_DEVICE_MAX: usize = 32;
/// Tools in total: bounds the memory of the registry.
pub const TOOLS_MAX: usize = 20_000;
/// Snapshots cached for readers: more than the devices connected to one gateway. Equal ones share most of their data.
pub const SNAPSHOTS_MAX: usize = 1_024;

/// Bytes of a call's arguments as JSON: ten times a long dictated note.
pub const ARGUMENTS_BYTES_MAX: usize = 64 * 1024;
/// Bytes of a result's content: about 8,000 tokens of a model's context.
pub const CONTENT_BYTES_MAX: usize = 32 * 1024;
/// Bytes of a result's data as JSON: twice the content, since keys are repeated.
pub const DATA_BYTES_MAX: usize = 64 * 1024;
/// The same, and its text, for a program that made the call: it filters what a model need not read.
pub const PROGRAM_RESULT_BYTES_MAX: usize = 1024 * 1024;
/// Bytes of spoken text: about two minutes.
pub const SAY_BYTES_MAX: usize = 2 * 1024;
/// Bytes of one displayed text: no current display has more characters.
pub const SHOW_BYTES_MAX: usize = 4 * 1024;
/// Follow-ups of a result: a display has no more lines.
pub const FOLLOW_UPS_MAX: usize = 5;
/// Bytes of one follow-up: a sentence that a wearer may say next.
pub const FOLLOW_UP_BYTES_MAX: usize = 128;
/// Bytes of an error's message.
pub const MESSAGE_BYTES_MAX: usize = 512;
/// Messages of the conversation that an app gets with a call, if it asks for them.
pub const CONVERSATION_MESSAGES_MAX: usize = 20;
/// Bytes of all of them: two minutes of speech each, at most.
pub const CONVERSATION_BYTES_MAX: usize = 16 * 1024;
/// Maximum duration of any call, in milliseconds: after that the wearer no longer waits for it.
pub const CALL_MS_MAX: u64 = 120_000;
/// Milliseconds in which a source may find words for a question.
pub const QUESTION_MS_MAX: u64 = 3_000;
/// Milliseconds after which a question to the wearer counts as expired, even if it is not settled.
pub const CONSENT_MS_MAX: u64 = 180_000;

/// Milliseconds that an interrupted or late tool has to notify its server.
pub const CANCEL_MS_MAX: u64 = 200;
/// Calls that one program may make: a program that needs more is better written as several, between which the model
/// looks at the results.
pub const NESTED_CALLS_MAX: usize = 64;
/// Calls of one program that run at once; further ones wait.
pub const NESTED_AT_ONCE_MAX: usize = 8;
/// Milliseconds that the calls of a stopped program are waited for before it is told what was done: less than the
/// assistant waits for the results of an interrupted turn.
pub const NESTED_SETTLE_MS_MAX: u64 = 2_000;
/// Bytes of a call's arguments in the account of what a stopped program has done.
pub const NESTED_ARGUMENTS_BYTES_MAX: usize = 160;
/// Bytes of the arguments of a call in the record of a program's run.
pub const RUN_ARGUMENTS_BYTES_MAX: usize = 1024;
/// Tools named to the wearer in that account; the others are counted.
pub const NESTED_SAID_MAX: usize = 4;
/// Retries of a call if nothing was done: a server that is being restarted is back within a second, one that has
/// failed is not.
pub const RETRIES_MAX: usize = 2;
/// Milliseconds before the first retry; the second waits twice as long.
pub const RETRY_MS_MIN: u64 = 150;
/// Milliseconds that a call waits for a source that has not responded since the start.
pub const SOURCE_WAIT_MS_MAX: u64 = 2_000;
/// Tools with their own rate limit whose counters are kept.
pub const RATED_TOOLS_MAX: usize = TOOLS_MAX;
/// Characters of one argument's value in a question with the tool's own wording: a listener would not follow more.
pub const QUESTION_VALUE_CHARS_MAX: usize = 120;
/// Arguments that are spoken in a question; all are displayed.
pub const QUESTION_SAID_MAX: usize = 4;
/// Characters of a tool's own description in a question.
pub const QUESTION_WHAT_CHARS_MAX: usize = 120;
/// Bytes displayed with a question: the maximum of the glasses' protocol.
pub const QUESTION_BYTES_MAX: usize = 4 * 1024;
/// Characters of one argument that are displayed before an approval; the number of omitted characters is stated.
pub const READ_VALUE_CHARS_MAX: usize = 400;
/// Characters of a result's generated wording: about 20 seconds of speech.
pub const SAID_CHARS_MAX: usize = 300;
/// Characters of one text in it.
pub const SAID_TEXT_CHARS_MAX: usize = 120;
/// Characters of one word in it: longer ones are hashes and addresses.
pub const SAID_WORD_CHARS_MAX: usize = 40;
/// Items of a list that are worded; the others are counted.
pub const SAID_ITEMS_MAX: usize = 5;
/// Properties of an object that are worded; the others are counted.
pub const SAID_PAIRS_MAX: usize = 6;
/// Attachments of a result; the others are dropped.
pub const ATTACHMENTS_MAX: usize = 16;
/// Bytes of all attachments of a result: twice a photo of the glasses in base64.
pub const ATTACHMENTS_BYTES_MAX: usize = 8 * 1024 * 1024;
/// Length of a run of base64 characters that counts as binary data.
pub const BINARY_CHARS_MIN: usize = 256;
/// Secrets that are redacted from results.
pub const SECRETS_MAX: usize = 256;
/// Bytes of the shortest secret that is redacted: a shorter one may occur in ordinary words.
pub const SECRET_BYTES_MIN: usize = 6;

/// Milliseconds within which a photo is the last one: nobody who says so means an older one.
pub const PHOTO_LAST_MS_MAX: i64 = 600_000;

/// Entries of one user's schedule: a listener cannot distinguish more.
pub const ENTRIES_MAX: usize = 100;
/// Maximum seconds of a timer: a day. For longer times a reminder is better, since it follows clock changes.
pub const TIMER_SECONDS_MAX: i64 = 24 * 3600;
/// Maximum seconds until a reminder is due: five years.
pub const REMINDER_SECONDS_MAX: i64 = 5 * 366 * 24 * 3600;
/// Characters of a timer's name.
pub const TIMER_NAME_CHARS_MAX: usize = 60;
/// Characters of a reminder's text.
pub const REMINDER_CHARS_MAX: usize = 500;
/// Characters of a note: five minutes of dictation.
pub const NOTE_CHARS_MAX: usize = 4_000;
/// Characters of a search query.
pub const QUERY_CHARS_MAX: usize = 200;
/// Notes passed to a model; it can search for more.
pub const NOTES_LISTED_MAX: usize = 20;
/// Items read out at once: a listener cannot remember more.
pub const SPOKEN_ITEMS_MAX: usize = 5;
/// Characters of one item if several are read out or displayed.
pub const ITEM_CHARS_MAX: usize = 80;
/// Characters of an arithmetic expression.
pub const EXPRESSION_CHARS_MAX: usize = 200;
/// Characters of a calculation's result that is spoken.
pub const OUTCOME_CHARS_MAX: usize = 120;
