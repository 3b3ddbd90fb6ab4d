//! Letters without their accents, so that what is written with and without them is the same.

use alloc::string::String;

/// Appends a lower-case letter without its accent: "é" as "e", "ß" as "ss", and nothing for a combining accent.
pub fn push_folded(out: &mut String, letter: char) {
    let plain = match letter {
        'à' | 'á' | 'â' | 'ã' | 'ä' | 'å' => "a",
        'è' | 'é' | 'ê' | 'ë' => "e",
        'ì' | 'í' | 'î' | 'ï' => "i",
        'ò' | 'ó' | 'ô' | 'õ' | 'ö' | 'ø' => "o",
        'ù' | 'ú' | 'û' | 'ü' => "u",
        'ý' | 'ÿ' => "y",
        'ç' => "c",
        'ñ' => "n",
        'ß' => "ss",
        'æ' => "ae",
        'œ' => "oe",
        '\u{300}'..='\u{36f}' => "",
        other => return out.push(other),
    };
    out.push_str(plain);
}

/// A text in lower case and without accents.
pub fn folded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars().flat_map(char::to_lowercase).for_each(|letter| push_folded(&mut out, letter));
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_and_cases_are_one() {
        for (text, expected) in [
            ("Mañana", "manana"),
            ("ÉTEINDRE", "eteindre"),
            ("gießen", "giessen"),
            ("œufs", "oeufs"),
            ("e\u{301}t", "et"),
        ] {
            assert_eq!(folded(text), expected);
        }
    }
}
