//! English number words: cardinals, ordinals, years and decimals.

const ONES: [&str; 20] = [
    "zero",
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
    "thirteen",
    "fourteen",
    "fifteen",
    "sixteen",
    "seventeen",
    "eighteen",
    "nineteen",
];
const TENS: [&str; 10] = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"];
const SCALES: [&str; 12] = [
    "",
    "thousand",
    "million",
    "billion",
    "trillion",
    "quadrillion",
    "quintillion",
    "sextillion",
    "septillion",
    "octillion",
    "nonillion",
    "decillion",
];

/// Most digits with a name; longer figures are read digit by digit.
pub(super) const DIGITS_MAX: usize = 36;

/// "one thousand, two hundred and thirty-four". Figures of more than [`DIGITS_MAX`] digits are read as digits.
pub(super) fn cardinal(digits: &str) -> String {
    match digits.trim_start_matches('0') {
        "" => ONES[0].to_owned(),
        significant if significant.len() > DIGITS_MAX => spell(digits),
        significant => significant.parse().map(cardinal_of).unwrap_or_default(),
    }
}

/// Each digit by name.
pub(super) fn spell(digits: &str) -> String {
    let names: Vec<&str> = digits.chars().filter_map(|c| ONES.get(c.to_digit(10)? as usize).copied()).collect();
    names.join(" ")
}

/// As [`cardinal`], for `n` below 10^36, as any figure of [`DIGITS_MAX`] digits is.
pub(super) fn cardinal_of(n: u128) -> String {
    if n < 1_000 {
        return below_thousand(n as usize);
    }
    let mut groups = Vec::new();
    let mut rest = n;
    for scale in SCALES {
        let group = (rest % 1_000) as usize;
        rest /= 1_000;
        if group > 0 {
            let words = below_thousand(group);
            groups.push(if scale.is_empty() { words } else { format!("{words} {scale}") });
        }
    }
    groups.reverse();
    match groups.split_last() {
        // "one thousand and one", but "one thousand, one hundred" and "one million, two thousand".
        Some((last, before)) if !before.is_empty() && !last.contains(' ') => {
            format!("{} and {last}", before.join(", "))
        }
        _ => groups.join(", "),
    }
}

fn below_thousand(n: usize) -> String {
    match n {
        0..20 => ONES[n].to_owned(),
        20..100 if n.is_multiple_of(10) => TENS[n / 10].to_owned(),
        20..100 => format!("{}-{}", TENS[n / 10], ONES[n % 10]),
        _ if n.is_multiple_of(100) => format!("{} hundred", ONES[n / 100 % 10]),
        _ => format!("{} hundred and {}", ONES[n / 100 % 10], below_thousand(n % 100)),
    }
}

/// "twenty-third", "one hundred and first".
pub(super) fn ordinal(digits: &str) -> String {
    let cardinal = cardinal(digits);
    let at = cardinal.rfind([' ', '-']).map_or(0, |at| at + 1);
    let (head, last) = cardinal.split_at(at);
    let last = match last {
        "one" => "first".to_owned(),
        "two" => "second".to_owned(),
        "three" => "third".to_owned(),
        "five" => "fifth".to_owned(),
        "eight" => "eighth".to_owned(),
        "nine" => "ninth".to_owned(),
        "twelve" => "twelfth".to_owned(),
        _ => last.strip_suffix('y').map_or_else(|| format!("{last}th"), |stem| format!("{stem}ieth")),
    };
    format!("{head}{last}")
}

/// "nineteen oh-five", "two thousand and five", "twenty ten".
pub(super) fn year(n: u16) -> String {
    let (high, low) = (n / 100, n % 100);
    if high == 0 || (high.is_multiple_of(10) && low < 10) || high >= 100 {
        return cardinal_of(n.into());
    }
    let high = cardinal_of(high.into());
    match low {
        0 => format!("{high} hundred"),
        1..10 => format!("{high} oh-{}", cardinal_of(low.into())),
        _ => format!("{high} {}", cardinal_of(low.into())),
    }
}

/// "three point one four"; trailing zeros are not read.
pub(super) fn decimal(figure: &str) -> String {
    let (whole, fraction) = figure.split_once('.').unwrap_or((figure, ""));
    let fraction = fraction.trim_end_matches('0');
    let whole = cardinal(whole);
    if fraction.is_empty() { whole } else { format!("{whole} point {}", spell(fraction)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_have_their_names() {
        for (digits, words) in [
            ("0", "zero"),
            ("000", "zero"),
            ("13", "thirteen"),
            ("42", "forty-two"),
            ("100", "one hundred"),
            ("305", "three hundred and five"),
            ("1001", "one thousand and one"),
            ("1024", "one thousand and twenty-four"),
            ("1100", "one thousand, one hundred"),
            ("1234567", "one million, two hundred and thirty-four thousand, five hundred and sixty-seven"),
            ("1000000", "one million"),
        ] {
            assert_eq!(cardinal(digits), words);
        }
        assert_eq!(cardinal(&"9".repeat(40)), vec!["nine"; 40].join(" "));
        assert!(cardinal(&"9".repeat(36)).starts_with("nine hundred and ninety-nine decillion"));
    }

    #[test]
    fn ordinals_years_decimals() {
        for (digits, words) in
            [("1", "first"), ("12", "twelfth"), ("20", "twentieth"), ("23", "twenty-third"), ("100", "one hundredth")]
        {
            assert_eq!(ordinal(digits), words);
        }
        for (n, words) in [
            (1905, "nineteen oh-five"),
            (2004, "two thousand and four"),
            (1998, "nineteen ninety-eight"),
            (2026, "twenty twenty-six"),
            (1900, "nineteen hundred"),
            (2000, "two thousand"),
            (42, "forty-two"),
        ] {
            assert_eq!(year(n), words);
        }
        assert_eq!(decimal("3.1400"), "three point one four");
        assert_eq!(decimal("0.5"), "zero point five");
        assert_eq!(decimal("2.0"), "two");
    }
}
