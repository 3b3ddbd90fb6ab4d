//! Normalises recognised text, so that commands and transcripts can be compared.

use text2num::{Language, replace_numbers_in_text};

/// Lower case, without punctuation, number words as digits: "Set a timer for Twenty-Five minutes!"
/// becomes "set a timer for 25 minutes". English.
///
/// Keeps characters that carry meaning inside a word: "5:30", "3.5", "don't" (as "dont", because Whisper and people
/// place the apostrophe differently). "1,000" becomes "1000", "50%" becomes "50 percent", "$5" becomes "5 dollars". "5
/// 5" stays, since "five five" and "fifty-five" cannot be told apart.
pub fn for_commands(text: &str) -> String {
    let mut spelled = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        spell_out(word, &mut spelled);
    }
    let joined = spelled.split_whitespace().collect::<Vec<_>>().join(" ");
    // Every number is replaced, including single small ones.
    replace_numbers_in_text(&joined, &Language::english(), 0.0)
}

/// Appends the parts of a word, each followed by a space.
fn spell_out(word: &str, out: &mut String) {
    let letters: Vec<char> = word.chars().flat_map(char::to_lowercase).collect();
    let dollars = letters.first() == Some(&'$') && letters.get(1).is_some_and(char::is_ascii_digit);
    for (index, letter) in letters.iter().enumerate() {
        let digit_at = |at: Option<usize>| at.and_then(|at| letters.get(at)).is_some_and(char::is_ascii_digit);
        let within_number = digit_at(index.checked_sub(1)) && digit_at(index.checked_add(1));
        match letter {
            '\'' | '’' => {}
            ',' if within_number => {}
            '.' | ':' if within_number => out.push(*letter),
            '%' if digit_at(index.checked_sub(1)) => out.push_str(" percent"),
            '&' => out.push_str(" and "),
            '°' => out.push_str(" degrees "),
            letter if letter.is_alphanumeric() => out.push(*letter),
            _ => out.push(' '),
        }
    }
    out.push_str(if dollars { " dollars " } else { " " });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn has_one_spelling() {
        let cases = [
            ("", ""),
            ("  ...  ", ""),
            ("Set a timer for ten minutes.", "set a timer for 10 minutes"),
            ("Set a timer for Twenty-Five minutes!", "set a timer for 25 minutes"),
            ("twenty five", "25"),
            ("5 5", "5 5"),
            ("4. Queen of hearts", "4 queen of hearts"),
            ("Four, Queen of Hearts.", "4 queen of hearts"),
            ("one thousand two hundred", "1200"),
            ("It costs 1,000 dollars", "it costs 1000 dollars"),
            ("It costs $1,000.", "it costs 1000 dollars"),
            ("Wake me at 5:30 p.m.", "wake me at 5:30 p m"),
            ("set brightness to 50%", "set brightness to 50 percent"),
            ("3.5 degrees", "3.5 degrees"),
            ("20°", "20 degrees"),
            ("Don't; it’s OK-ish", "dont its ok ish"),
            ("salt & pepper", "salt and pepper"),
            ("HEY, Mentra: what time is it?", "hey mentra what time is it"),
        ];
        for (text, expected) in cases {
            assert_eq!(for_commands(text), expected, "{text:?}");
        }
    }

    #[test]
    fn is_idempotent() {
        for text in ["Set a timer for Twenty-Five minutes!", "one hundred and 5:30 $7 50%", "a first second third"] {
            let once = for_commands(text);
            assert_eq!(for_commands(&once), once);
        }
    }
}
