//! What is said in training: requests behind the phrase, talk without it, and words that are nearly the phrase.

/// Requests that follow the phrase.
pub const REQUESTS: [&str; 12] = [
    "what time is it",
    "set a timer for ten minutes",
    "take a note",
    "play some music",
    "how is the weather today",
    "call my brother",
    "read my messages",
    "stop",
    "add milk to the shopping list",
    "where am I",
    "translate this for me",
    "show me the way home",
];

/// Talk without the phrase.
pub const TALK: [&str; 60] = [
    "hey there, how are you doing today",
    "hey man, try this one",
    "hey, wait a minute",
    "hello again, it is good to see you",
    "okay, let us begin with the first part",
    "okay then, I will be there at five",
    "oh come on, that is not what I meant",
    "the weather was nice and we went for a walk",
    "I think that we should meet on Monday afternoon",
    "she mentioned that the train was late again",
    "he is my mentor at the university",
    "the central station is on the other side of town",
    "my mother entered the room without a word",
    "there are many entrances to this building",
    "men try to remember where they put their keys",
    "a man travels across the country by train",
    "take the second street on the left",
    "could you pass me the salt, please",
    "I would like a cup of tea and some cake",
    "we have to talk about the plan for next year",
    "do you remember the name of that restaurant",
    "the meeting has been moved to Thursday",
    "please leave a message after the tone",
    "your call is important to us",
    "press one for sales or two for support",
    "all of our agents are busy at the moment",
    "it takes about twenty minutes from here",
    "that was the best film I have seen this year",
    "they say that it will rain tomorrow",
    "open the window, it is warm in here",
    "the doctor will see you now",
    "have you finished your homework",
    "what do you mean by that",
    "one two three four five six seven",
    "eight nine ten eleven twelve",
    "the quick brown fox jumps over the lazy dog",
    "in the beginning there was nothing but water",
    "my computer has been very slow lately",
    "the robin sang in the garden",
    "Max and Marvin are coming over tonight",
    "Jarvis is a character from a film",
    "the lawn gets a cut every week",
    "a good day to ask her about it",
    "he may enter after the bell rings",
    "they meant to send it yesterday",
    "mend the roof before the winter",
    "a mantra is repeated many times",
    "hay bales lay in the field",
    "it is a matter of time",
    "no, I do not think so",
    "yes, that would be wonderful",
    "thank you very much, see you later",
    "maybe we can try again next week",
    "how much is that in dollars",
    "the children are playing in the yard",
    "let me know when you are ready",
    "I have not heard from him in months",
    "turn left at the traffic lights",
    "we are out of milk and bread",
    "nobody told me about the party",
];

/// Words said in place of a phrase's own.
const OTHERS: [&str; 14] = [
    "there",
    "man",
    "you",
    "Martha",
    "Andrea",
    "mister",
    "Monica",
    "computer",
    "Peter",
    "everybody",
    "Emma",
    "Manfred",
    "mate",
    "Sandra",
];

/// Spellings that are read as other sounds: from, to.
const SOUNDS: [(&str, &str); 18] = [
    ("a", "o"),
    ("a", "ee"),
    ("e", "a"),
    ("e", "o"),
    ("e", "i"),
    ("i", "a"),
    ("o", "a"),
    ("u", "i"),
    ("m", "s"),
    ("m", "b"),
    ("n", "l"),
    ("t", "d"),
    ("tr", "k"),
    ("r", "l"),
    ("l", "n"),
    ("k", "m"),
    ("j", "m"),
    ("v", "t"),
];

/// Texts that are nearly `phrase`: parts of it, with another word in place of one of its own, and with other sounds in
/// its longest word.
pub fn near(phrase: &str) -> Vec<String> {
    let words: Vec<&str> = phrase.split_whitespace().collect();
    let mut texts: Vec<String> = Vec::new();
    if words.len() > 1 {
        texts.extend(words.iter().take(words.len() - 1).map(|word| (*word).to_owned()));
        for other in OTHERS {
            let mut changed = words.clone();
            if let Some(last) = changed.last_mut() {
                *last = other;
            }
            texts.push(changed.join(" "));
        }
    } else {
        texts.extend(OTHERS.iter().map(|word| (*word).to_owned()));
    }
    let Some(longest) = words.iter().max_by_key(|word| word.len()) else { return texts };
    for (from, to) in SOUNDS {
        if let Some(at) = longest.find(from) {
            let changed = format!("{}{to}{}", &longest[..at], &longest[at + from.len()..]);
            texts.push(phrase.replace(longest, &changed));
        }
        if let Some(at) = longest.rfind(from).filter(|at| *at > 0) {
            let changed = format!("{}{to}{}", &longest[..at], &longest[at + from.len()..]);
            texts.push(phrase.replace(longest, &changed));
        }
    }
    // Cut short.
    let half = longest.chars().take(longest.chars().count().div_ceil(2)).collect::<String>();
    texts.push(phrase.replace(longest, &half));
    texts.sort();
    texts.dedup();
    texts.retain(|text| text != phrase);
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_never_the_phrase() {
        for phrase in ["hey mentra", "mentra", "ok computer", "good day oscar"] {
            let near = near(phrase);
            assert!(near.len() > 12 && near.iter().all(|text| text != phrase && !text.is_empty()), "{near:?}");
        }
        assert!(near("hey mentra").iter().any(|text| text == "hey montra" || text == "hey mantra"));
    }
}
