//! Sentences that break off, and whole ones that look like them.

use super::*;

/// Sentences that break off. Written before the rules, like the whole ones; of those four are left out, which are held:
/// "Tell me.", "How many times?", "Note that Julia called." and "The dog that barked bites."
const UNFINISHED_SENTENCES: &[&str] = &[
    "The man who sold us the boat.",
    "My neighbour who works nights.",
    "The song that they played yesterday.",
    "A friend of mine who lives in Oslo.",
    "The book that I ordered.",
    "The people who live next door.",
    "The shop where we met.",
    "The dress I saw that has.",
    "Find a restaurant that serves.",
    "I need a jacket that has.",
    "Recommend a podcast which covers.",
    "Suggest a phone that supports.",
    "Look for apps that include.",
    "Name three countries that border.",
    "I want a plan that allows.",
    "Remember that the plumber.",
    "Keep in mind that my sister.",
    "Tell Max that the party.",
    "I think that his flight.",
    "Note that Julia.",
    "Remember that the key under the mat.",
    "Show me where the station.",
    "Explain how the engine.",
    "Tell me why the sky.",
    "I wonder when the museum.",
    "In the book where the girl.",
    "Ask Ben if a plumber.",
    "Are they going to?",
    "Is the shop going to?",
    "Will I be able to?",
    "What do I need to?",
    "When am I supposed to?",
    "Is she about to?",
    "Are you ready to?",
    "What is 12 plus?",
    "How much is 30 minus?",
    "What's nine times?",
    "Calculate 18 times.",
    "What is 90 divided by?",
    "How much is 20 percent of?",
    "What is the square root of?",
    "What is the capital of?",
    "What's the difference between?",
    "I'm thinking of getting.",
    "We're talking about replacing.",
    "How about making?",
    "I was thinking about visiting.",
    "I need to buy.",
    "Remind me to bring.",
    "I'd like to find.",
    "Can you find?",
    "I just bought.",
    "The recipe needs.",
    "My brother made.",
    "Could you explain how?",
    "Can you explain to me why.",
    "Her birthday is on March.",
    "The trip starts on October.",
    "The office is closed between Monday.",
    "Between 9.",
    "During the night.",
    "According to the manual.",
    "As for the invoice.",
    "Unless it rains tomorrow.",
    "If a stranger calls.",
    "Suppose I save a hundred euros.",
    "What time tonight?",
    "What day next week.",
    "Do the pharmacies.",
    "Do my friends.",
    "Does the train to Oslo?",
    "Will the shop on the corner.",
    "Did Napoleon?",
    "When did Mozart?",
    "Why does Anna.",
    "I was wondering.",
    "I've been hoping.",
    "Tell him don't.",
    "Where's?",
    "Tell me where they're.",
    "I think we've.",
    "I hope you'll.",
    "There's.",
    "It looks like.",
    "That sounds like.",
    "Is Paris bigger than?",
    "Is it because?",
    "How do I get to?",
    "How do I get rid of?",
    "Put on some music and then.",
    "It's going to be.",
    "The meeting has been.",
    "What time is?",
    "How far is?",
    "Text Anna.",
    "Email my boss.",
];

/// Whole ones that look like those.
const WHOLE_SENTENCES: &[&str] = &[
    "The woman lives upstairs.",
    "Who lives upstairs?",
    "The man who called is here.",
    "The book that I ordered has arrived.",
    "The train that I take leaves at eight.",
    "The people who live next door have a dog.",
    "Who is the man who sold us the boat?",
    "Find the song that they played yesterday.",
    "That is the shop where we met.",
    "What does it include?",
    "I know what the box contains.",
    "Find me one that works.",
    "Show me a jacket that fits.",
    "Is that all it takes?",
    "Tell me what she wants.",
    "That's what it offers.",
    "Which phone has that?",
    "Is that the plumber?",
    "I like that a lot.",
    "I remember that.",
    "Remember that place.",
    "Remember that the plumber comes.",
    "Is that the station?",
    "I know where the station is.",
    "Tell me how the engine works.",
    "Where is he going to?",
    "What are you listening to?",
    "Who should I talk to?",
    "Do I have to?",
    "Do you want to?",
    "Why would I want to?",
    "Is there someone to talk to?",
    "Say it three times.",
    "I have been there four times.",
    "What are good times?",
    "Is that a plus?",
    "What is Disney plus?",
    "What can 12 be divided by?",
    "What is it made of?",
    "What is the painting of?",
    "What is it between?",
    "Thanks for asking.",
    "What are you thinking about buying?",
    "I love reading.",
    "I was reading.",
    "What are you doing?",
    "Is it worth buying?",
    "I'm tired of waiting.",
    "How about dancing?",
    "What did she buy?",
    "What do I need to buy?",
    "List the things I need to buy.",
    "What did you find?",
    "Look what I found.",
    "I forgot.",
    "I know why.",
    "Tell me why.",
    "Explain why.",
    "Do you know how?",
    "Show me how.",
    "Is it on Monday?",
    "My birthday is on the first of May.",
    "It is in May.",
    "She arrives on Monday.",
    "The shop is open between Monday and Friday.",
    "Split it between us.",
    "Divide it between 3.",
    "What should I do during the night?",
    "According to the manual it is broken.",
    "If so, stop.",
    "If possible.",
    "When is the party?",
    "After that.",
    "What time?",
    "What time is it tomorrow?",
    "What day is it?",
    "Do the laundry.",
    "Do your exercises.",
    "Do the others know?",
    "Does the train to Oslo stop here?",
    "Is the shop on the corner?",
    "Did Napoleon win?",
    "Where is Anna?",
    "Who was Mozart?",
    "Where did Anna go?",
    "I'm trying.",
    "What were you planning?",
    "I don't.",
    "Please don't.",
    "Whose is it?",
    "That book is Anna's.",
    "Tell me where they are.",
    "What does it look like?",
    "What is it like?",
    "If you like.",
    "Is Paris bigger than Rome?",
    "Which city is Paris bigger than?",
    "Is there anything I should be aware of?",
    "Is this the hotel we stayed at?",
    "Is it his?",
    "Can I come in?",
    "How do I get there?",
    "Where are you from?",
    "And then?",
    "It happens now and then.",
    "What do you want to be?",
    "Where have you been?",
    "What time is it?",
    "Which one is?",
    "How far is it?",
    "Call Anna.",
    "Text Anna that I am late.",
    "Tell my boss I'm sick.",
    "What is that?",
];

#[test]
fn a_subject_without_its_verb_and_a_verb_without_its_complement_are_a_beginning() {
    for text in [
        "Is the soup.",
        "Did your brothers?",
        "Do the neighbours?",
        "Why do the swans.",
        "How long can we.",
        "What day does the market?",
        "How many chairs.",
        "What sort of music?",
        "Whose bicycle.",
        "Multiply 12.",
        "Convert four litres.",
        "Compare Paris.",
        "Put the ladder.",
        "Ask Eva whether she.",
        "Tell me what they.",
    ] {
        assert!(is_beginning(text), "{text}");
    }
}

#[test]
fn a_clause_a_time_or_an_announcing_noun_is_a_beginning_and_one_word_is_none() {
    for (text, expected) in [
        ("When I get home.", true),
        ("Tomorrow at eight.", true),
        ("Tomorrow at eight, please.", false),
        ("Next Tuesday morning.", true),
        ("Every two hours.", true),
        ("Next slide, please.", false),
        ("Next song.", false),
        ("Translate the word.", true),
        ("Spell that word.", false),
        ("Tell me your name.", false),
        ("Tomorrow.", false),
        ("When is the next train?", false),
    ] {
        assert_eq!(is_beginning(text), expected, "{text}");
    }
}

#[test]
fn ordinary_ends_are_whole() {
    for text in [
        "Where is the bank?",
        "Is it far?",
        "How much is it?",
        "Is the soup hot?",
        "Why do swans hiss?",
        "Is this vegan?",
        "Is that the bank.",
        "How much longer?",
        "Divide 12 by 4.",
        "Divide it between three people.",
        "Divide them equally.",
        "Put it away.",
        "Put it there.",
        "Put it here.",
        "Put it at the top.",
        "Put that together.",
        "Put it aside.",
        "Put it next to the door.",
        "Put it between them.",
        "Compare Paris versus London.",
        "Compare tea or coffee.",
        "Compare prices.",
        "Compare both.",
        "Remember that the gate is open.",
        "Who are you?",
        "Do that.",
        "Do the dishes.",
        "Do your best.",
        "Have the soup.",
        "Which day is it?",
        "Why should I?",
        "Why would we?",
        "Where am I?",
        "Who are we?",
    ] {
        assert!(!is_beginning(text) && !trails_off(text), "{text}");
    }
}

#[test]
fn words_that_never_end_a_sentence_trail_off() {
    for text in ["Because.", "Please.", "The.", "When was.", "Why should the.", "Could you?"] {
        assert!(trails_off(text), "{text}");
    }
}

#[test]
fn digits_one_after_another_are_dictated_and_a_time_is_not() {
    for (text, expected) in [
        ("Die Nummer ist 5 5 5.", true),
        ("Dial 0171.", true),
        ("7 B 3 A", true),
        ("Le train part à 8 h.", false),
        ("On Friday at 3 p.m.", false),
    ] {
        assert_eq!(is_dictating(text), expected, "{text}");
    }
}

#[test]
fn a_sentence_that_breaks_off_is_told_from_a_whole_one_that_looks_like_it() {
    let ends_late = |text: &&&str| trails_off(text) || is_beginning(text);
    let missed: Vec<&&str> = UNFINISHED_SENTENCES.iter().filter(|text| !ends_late(text)).collect();
    let held: Vec<&&str> = WHOLE_SENTENCES.iter().filter(ends_late).collect();
    assert!(missed.is_empty() && held.is_empty(), "missed {missed:?}, held {held:?}");
}

#[test]
fn what_lacks_its_end_as_a_command_as_well_trails_off() {
    for text in [
        "Note that the bakery.",
        "Remember that the gate.",
        "Remember that Lena.",
        "Remind me to bring.",
        "Note to self, don't.",
        "Remind me on May.",
        "Between 8.",
        "I think it's.",
    ] {
        assert!(trails_off(text), "{text}");
    }
    for text in ["Text Anna.", "If a stranger calls.", "What time tonight?", "The book that I ordered."] {
        assert!(!trails_off(text), "{text}: this may be an answer");
    }
}
