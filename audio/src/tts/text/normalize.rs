//! Rewrites times, dates, amounts, units, abbreviations and signs as words that the lexicon can read. Plain figures,
//! ordinals, years and money in dollars, pounds and euros are left: the lexicon reads those.
//!
//! The rules run in order, each over the whole text; word lists come from the voice's own file.

use std::collections::HashSet;
use std::path::Path;

use fancy_regex::Regex;

use super::super::Error;
use super::super::assets;
use super::rule::{Say, Words, replace};
use super::{abbreviations, amounts, extra, readings};

struct Rule {
    pattern: Regex,
    say: Say,
}

pub(super) struct Normalizer {
    words: Words,
    rules: Vec<Rule>,
    symbols: Vec<Symbol>,
    titles: HashSet<String>,
}

struct Symbol {
    sign: String,
    word: String,
    /// Some signs are words only between two others.
    between: Option<Regex>,
}

const NUMBER: &str = r"\d+(?:,\d{3})*(?:\.\d+)?";
const ROMAN: &str = r"((?=[IVXLC])M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3}))";
const SCALE: &str = r"(hundred|thousand|million|billion|trillion|[kKmMbB]\b)";
/// A day, as it stands behind its month.
const DAY_OF_MONTH: &str = r"(\d{1,2})(?:st|nd|rd|th)?";
/// The sign of a figure. That of a fraction is a word, since the fraction becomes words.
const SIGN: &str = r"(?<![\w)%°])(?<!\d )−(?=\.?\d+(?![\d/]))";
/// A hyphen or dash with only figures and signs up to the result.
const DIFFERENCE: &str = r"(?<=[\d)%]) ?[-–] ?(?=[-$£€(]*\d(?:[-–+×÷*/()%$£€\d. ]|,\d|times)*(?:=(?! ?\p{L}{2})|equals |(?:makes|gives) (?=[-$£€(]?\d)))";

/// What is read in another way than it is written: patterns, in the order in which they are applied, with what each becomes.
fn patterns(words: &Words) -> Vec<(String, Say)> {
    let mut all = figures_first(words);
    all.extend(amounts_of(words));
    all.extend(words_and_ranges(words));
    all
}

/// Signs, versions, ratios, times and dates in figures.
fn figures_first(words: &Words) -> Vec<(String, Say)> {
    let months = month_names(words);
    vec![
        (SIGN.into(), |_, _| Some("-".into())),
        (r" ?− ?".into(), |_, _| Some(" minus ".into())),
        (r"(?<![\w)%])-(?=[$£€]\.?\d)".into(), |_, _| Some("minus ".into())),
        (r"(?<![\w.,/:-])(?:(?:[Vv]ersion )?(v)\.? ?)?(\d+(?:\.\d+)*)(?!\w|\.\d)".into(), amounts::version),
        (r"(?<![\w.])\d+(?:\.\d+)?(?:\s?[x×]\s?\d+(?:\.\d+)?)+(?!\w|\.\d)".into(), amounts::dimensions),
        (format!(r"\b({BEFORE} )(\d{{1,4}}):(\d{{1,4}})(?![\w:])", BEFORE = amounts::RATIO_BEFORE), amounts::ratio),
        (format!(r"(?<![\w:.,])()(\d{{1,4}}):(\d{{1,4}})(?= {}\b)", amounts::RATIO_BEHIND), amounts::ratio),
        (r"(\d\s?(?:[AaPp]\.?[Mm]\.?)?)\s?[-–]\s?(?=\d{1,2}(?::\d{2})?\s?[AaPp]\.?[Mm]\b)".into(), extra::until),
        (format!(r"\b{DAY}\.?\s?[-–]\s?{DAY}\b\.?", DAY = extra::DAY), extra::days),
        (format!(r"\b{DAY}\.?(?=,? (?:{months})\b)", DAY = extra::DAY), extra::day_of_date),
        (r"\b(1[1-9]|20)([2-9])0s\b".into(), extra::decade),
        (r#"(?<![\w.])([3-8])'\s?(\d{1,2})(?:"|'')"#.into(), extra::height),
        (r"\b(\d{1,2}):(\d{2})(?::(\d{2}))?(?:\s?([AaPp])\.?[Mm]\.?(?![A-Za-z]))?(?!\d)".into(), readings::time),
        (r"(?<![\w:.,])(\d{1,2})\s?([AaPp])(?:\.[Mm]\.|[Mm])(?![A-Za-z])".into(), extra::hour),
        (r"(?<![\w:.,])()(\d{1,4}):(\d{1,4})(?![\w:]|\.\d)".into(), amounts::ratio),
        (r"\b(\d{4})-(\d{2})-(\d{2})\b".into(), readings::date_iso),
        (r"\b(\d{1,2})/(\d{1,2})/(\d{4}|\d{2})\b".into(), readings::date_us),
    ]
}

/// Money, degrees and units.
fn amounts_of(words: &Words) -> Vec<(String, Say)> {
    let units = alternatives(words.units.keys().cloned());
    let names = alternatives(words.units.values().flatten().cloned());
    vec![
        (
            format!(r"\b{DET} ([$£€])(\d+(?:,\d{{3}})*)(?:\s?{SCALE})?(?![\w.])", DET = amounts::DETERMINER),
            amounts::money,
        ),
        (format!(r"([$£€])({NUMBER})\s?{SCALE}"), readings::money),
        (format!(r"(?<![\w.])({NUMBER})\s?(¢)"), readings::cents),
        (format!(r"(?<![\w])([¥₹₩]|Rs\.?|USD|EUR|GBP)\s?({NUMBER})(?:\s?{SCALE})?"), readings::money),
        (format!(r"(?<![\w.])({NUMBER})\s?(USD|EUR|GBP)\b"), extra::money_behind),
        // Zeros that only fill the column of an amount: the "05" of "1 h 05 min".
        (
            format!(
                r"(?<![\w.,:/-])(-?)0+(?=\d+(?:\.\d+)?(?:\s?°| s(?![\w'])|[ -]?(?:{units}|{names}|degrees?|days?)(?!\w)))"
            ),
            |_, found| Some(found.group(1).to_owned()),
        ),
        (format!(r"\b{DET} (-?{NUMBER})\s?°\s?([CF])?(?![\w])", DET = amounts::DETERMINER), amounts::degrees),
        (format!(r"(?<![\w.])(-?{NUMBER})\s?°\s?([CF])?(?![\w])"), readings::degrees),
        (format!(r"(?<![\w.])({NUMBER}) s(?![\w'])"), extra::seconds),
        (
            format!(
                r"\b{DET} (?:({NUMBER})[ -]?({units})\.? (or|to|and) )?((?:{NUMBER} by )*{NUMBER})[ -]?({units})(?![\w])\.?",
                DET = amounts::DETERMINER
            ),
            amounts::attributive,
        ),
        (format!(r"(?<![\w.-])({NUMBER})-({units})\.?(?= [A-Za-z])"), amounts::hyphenated),
        (format!(r"(?<![\w.])(-?{NUMBER})\s?({units})(?![\w])(?:\.(?= [a-z\d]))?"), readings::unit),
    ]
}

/// Dates with the names of months, abbreviations, Roman numerals, telephone numbers, fractions and ranges.
fn words_and_ranges(words: &Words) -> Vec<(String, Say)> {
    let months = month_names(words);
    let titles = alternatives(words.titles.keys().cloned());
    let abbreviations = alternatives(words.abbreviations.keys().cloned());
    let roman_cardinal = alternatives(words.roman_cardinal.iter().cloned());
    let roman_ordinal = alternatives(words.roman_ordinal.iter().cloned());
    let before_figures = alternatives(abbreviations::before_figures());
    let before_names = alternatives(abbreviations::before_names());
    vec![
        (
            format!(r"\b{MONTH}\.?(\s?[-–]\s?)(?=(?:{months})\b)", MONTH = abbreviations::MONTH),
            abbreviations::month_before,
        ),
        (format!(r"\b{MONTH}\.?( )(?=\d{{4}}\b)", MONTH = abbreviations::MONTH), abbreviations::month_before),
        (
            format!(r"\b({months})\.? {DAY_OF_MONTH}\s?[-–]\s?{DAY_OF_MONTH}\b(?![\d:%/-]|\.\d)(,? \d{{4}}\b)?"),
            readings::month_days,
        ),
        (format!(r"\b({months})\.? {DAY_OF_MONTH}\b(?![\d:%])(,? \d{{4}}\b)?"), readings::month_day),
        (format!(r"\b(?:the )?(\d{{1,2}}) (?:of )?({months})\b\.?"), readings::day_month),
        (format!(r"\b{MONTH}\.(?![\w])", MONTH = abbreviations::MONTH), abbreviations::month),
        (format!(r"(?<!\b[Tt]he )(?<!\b[Oo]ur )\b{DAY}\.(?![\w])", DAY = extra::DAY), abbreviations::day),
        (format!(r"\b(?!figs?\. I\b)({before_figures})\. ?(?=\d|[IVXLC]+\b)"), abbreviations::figure),
        (format!(r"\b({before_names})\. (?=[A-Z])"), abbreviations::name),
        (format!(r"\b({titles})\.? (?=[A-Z])"), readings::title),
        (format!(r"(?<![\w.])({abbreviations})(?![\w])"), readings::abbreviation),
        (r"\b([Nn]os?)\. ?(?=\d)".into(), readings::numero),
        (r"(?<=\d[snrt][tdh] )ed\.(?!\w)".into(), abbreviations::edition),
        (r"(?<![\w&])#(?=\d)".into(), |_, _| Some("number ".into())),
        (format!(r"\b({roman_cardinal}) {ROMAN}\b(?![.'’]\w)"), readings::roman_cardinal),
        (format!(r"\b({roman_ordinal}) {ROMAN}\b(?![.'’]\w)"), readings::roman_ordinal),
        (
            format!(
                r"(?<![\w.\-$£€])({CALLED} )?(?:1-)?(?:\(\d{{3}}\) ?|\d{{3}}-)?\d{{3}}-\d{{4}}(?!\w|\.\d|-)",
                CALLED = readings::CALLED
            ),
            readings::telephone,
        ),
        (
            format!(r"\b({RATED}:? )(\d{{1,2}}(?:\.\d)?)/(10)(?!\w|\.\d|/| of\b)", RATED = readings::RATED),
            readings::rating,
        ),
        (
            format!(r"(?<![\w./])({DATED} )?(\d{{1,2}})/(\d{{1,2}})(?!\w|\.\d|/)", DATED = readings::DATED),
            readings::fraction,
        ),
        (DIFFERENCE.into(), |_, _| Some(" minus ".into())),
        (format!(r"(?<![\w.,])({NUMBER}) ?[-–] ?(?=({NUMBER}) is (-?{NUMBER}))"), readings::difference),
        (r"(?<![\w.\-])(\d{1,4})\s?[-–]\s?(\d{1,4})(?!\w|\.\d|-)".into(), readings::range),
        (r"(?<=\d)\s?\*\s?(?=\d)".into(), |_, _| Some(" times ".into())),
        (format!(r"(?<![\w.])({NUMBER})x(?!\w)"), |_, found| Some(format!("{} times", found.group(1)))),
        (r"(?<![\w+])\+(?=\d)".into(), |_, _| Some("plus ".into())),
    ]
}

impl Normalizer {
    pub(super) fn load(dir: &Path) -> Result<Self, Error> {
        let mut words: Words = assets::read_json(dir, assets::NORMALIZE)?;
        extra::add(&mut words);
        Self::new(words).map_err(|error| assets::damaged(dir, assets::NORMALIZE, error))
    }

    fn new(words: Words) -> Result<Self, Box<fancy_regex::Error>> {
        let rules = patterns(&words)
            .into_iter()
            .map(|(pattern, say)| Ok(Rule { pattern: Regex::new(&pattern)?, say }))
            .collect::<Result<_, Box<fancy_regex::Error>>>()?;
        let symbols = words
            .symbols
            .0
            .iter()
            .map(|(sign, word)| {
                let pattern = || Regex::new(&format!(r"(?<=\S) ?{} ?(?=\S)", fancy_regex::escape(sign)));
                let between = ["=", "<", ">", "~"].contains(&sign.as_str()).then(pattern).transpose()?;
                Ok(Symbol { sign: sign.clone(), word: format!(" {word} "), between })
            })
            .collect::<Result<_, Box<fancy_regex::Error>>>()?;
        let titles = words.titles.keys().cloned().collect();
        Ok(Self { words, rules, symbols, titles })
    }

    /// Words after which a period does not end a sentence.
    pub(super) fn titles(&self) -> &HashSet<String> {
        &self.titles
    }

    /// `text` on one line, with figures and signs rewritten where they would not be read well.
    pub(super) fn normalize(&self, text: &str) -> String {
        let text = single_spaced(text);
        let mut text = text.replace('’', "'").replace('‒', "-").replace('―', "—");
        for rule in &self.rules {
            text = replace(&rule.pattern, text, |found| (rule.say)(&self.words, found));
        }
        for symbol in self.symbols.iter() {
            if !text.contains(&symbol.sign) {
                continue;
            }
            text = match &symbol.between {
                Some(pattern) => replace(pattern, text, |_| Some(symbol.word.clone())),
                None => text.replace(&symbol.sign, &symbol.word),
            };
        }
        let mut text = single_spaced(&text);
        for mark in [",", ".", ";", ":", "!", "?"] {
            text = text.replace(&format!(" {mark}"), mark);
        }
        text
    }
}

fn single_spaced(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Any month, abbreviated or not.
fn month_names(words: &Words) -> String {
    let capitalized = words.months.0.iter().map(|(short, _)| {
        let mut chars = short.chars();
        chars.next().map_or_else(String::new, |first| first.to_uppercase().chain(chars).collect())
    });
    let names = words.months.0.iter().map(|(_, name)| name.clone());
    alternatives(names.chain(capitalized).chain(["Sept".to_owned()]))
}

/// Any of `words`, the longest first.
fn alternatives(words: impl Iterator<Item = String>) -> String {
    let mut words: Vec<String> = words.collect();
    words.sort_by(|a, b| b.chars().count().cmp(&a.chars().count()).then_with(|| a.cmp(b)));
    words.iter().map(|word| fancy_regex::escape(word)).collect::<Vec<_>>().join("|")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A few entries of each list, enough for the rules.
    fn normalizer() -> Normalizer {
        let words = r#"{
            "months": {
                "jan": "January", "feb": "February", "mar": "March", "apr": "April", "may": "May",
                "jun": "June", "jul": "July", "aug": "August", "sep": "September",
                "oct": "October", "nov": "November", "dec": "December"
            },
            "titles": {"Dr": "Dr", "St": "Saint"},
            "abbreviations": {"St.": "Street", "Dr.": "Dr", "approx.": "approximately", "vs": "versus", "w/": "with",
                "no.": "number", "fig.": "figure", "ed.": "edition", "vol.": "volume", "Sun.": "Sunday"},
            "units": {"km": ["kilometer", "kilometers"], "lb": ["pound", "pounds"], "sq ft": ["square foot", "square feet"]},
            "symbols": {"=": "equals", "×": "times", "~": "about", "*": " "},
            "currency": {"¥": ["yen", "yen"], "$": ["dollar", "dollars"], "USD": ["dollar", "dollars"], "¢": ["cent", "cents"], "Rs": ["rupee", "rupees"]},
            "roman_cardinal": ["Chapter"],
            "roman_ordinal": ["Henry"]
        }"#;
        let mut words = serde_json::from_str(words).unwrap();
        extra::add(&mut words);
        Normalizer::new(words).unwrap()
    }

    #[test]
    fn what_is_written_is_spoken() {
        let normalizer = normalizer();
        for (written, spoken) in [
            ("at 3:05 PM", "at three oh five P.M."),
            ("at 7:00 a.m.", "at seven A.M."),
            ("It's 12:00.", "It's twelve o'clock."),
            ("5:59:30 pm", "five fifty-nine and thirty seconds P.M."),
            ("25:99", "25 to 99"),
            ("2026-12-01", "December first, 2026"),
            ("3/14/26", "March fourteenth, 2026"),
            ("25/3/2026", "March twenty-fifth, 2026"),
            ("Mar. 3rd, 2024", "March third, 2024"),
            ("on 25 December", "on the twenty-fifth of December"),
            ("$1.2 million", "1.2 million dollars"),
            ("$5k", "5 thousand dollars"),
            ("¥200 and 1¢", "200 yen and 1 cent"),
            ("Rs. 50", "50 rupees"),
            ("-1 °C", "-1 degree Celsius"),
            ("72°F", "72 degrees Fahrenheit"),
            ("−5 °C", "-5 degrees Celsius"),
            ("from −10 to −5.5, (−3)", "from -10 to -5.5, (-3)"),
            ("−1/2, x − y, 5−3, 20%−5%", "minus one half, x minus y, 5 minus 3, 20% minus 5%"),
            ("10 - 3 = 7, 10 − 3 = 7", "10 minus 3 equals 7, 10 minus 3 equals 7"),
            ("1,500-1,200 = 300, $9.50 – $3 gives $6.50", "1,500 minus 1,200 equals 300, $9.50 minus $3 gives $6.50"),
            ("(9 - 2) × 3 - 1 = 20", "(9 minus 2) times 3 minus 1 equals 20"),
            ("12 - 5 is 7, 2.5-1 is 1.5", "12 minus 5 is 7, 2.5 minus 1 is 1.5"),
            ("open 9 - 5, 9 - 5 is busy, 9 - 5 is 8 hours", "open 9 to 5, 9 to 5 is busy, 9 to 5 is 8 hours"),
            ("10 - 12 people, 2019 - 2021 was", "10 to 12 people, 2019 to 2021 was"),
            ("1-3 = mild, pages 3-5, 9-5 makes sense", "1 to 3 equals mild, pages 3 to 5, 9 to 5 makes sense"),
            ("1 km, 1,200 km", "1 kilometer, 1,200 kilometers"),
            ("Dr. Li, St. Ives, Elm St.", "Dr Li, Saint Ives, Elm Street."),
            ("No. 5, #3", "Number 5, number 3"),
            ("Chapter IV of Henry VIII", "Chapter 4 of Henry the eighth"),
            ("555-0123", "5 5 5, 0 1 2 3"),
            ("1/2, 3/4, 9/11, 24/7", "one half, 3 quarters, September eleventh, 24 7"),
            ("pages 10–12", "pages 10 to 12"),
            ("6 × 7=42", "6 times 7 equals 42"),
            ("3 * 4 is 12, 2*3 is 6", "3 times 4 is 12, 2 times 3 is 6"),
            ("2x faster, 1.5x, 0x1f", "2 times faster, 1.5 times, 0x1f"),
            ("+5", "plus 5"),
            ("9am, 10 p.m. and 11 pm.", "nine AM, ten PM and eleven PM."),
            ("8am–4:30pm, 13am", "eight AM to four thirty P.M., 13am"),
            (
                "Mon–Fri, Sat, Nov 21; the Sun, my friend",
                "Monday to Friday, Saturday, November twenty-first; the Sun, my friend",
            ),
            ("6'2\" tall", "6 foot 2 tall"),
            ("20 USD, 1 USD", "20 dollars, 1 dollar"),
            ("2h 15min of 30 g, e.g. 3 m²", "2 hours 15 minutes of 30 grams, for example 3 square meters"),
            ("max. 5 s", "maximum 5 seconds"),
            (
                "2.10.3, v1.02, version v2, 10.0.0.7, 24.12.2027, 3.5",
                "2 point 10 point 3, version 1 point zero two, version 2, 10 dot 0 dot 0 dot 7, December twenty-fourth, 2027, 3.5",
            ),
            (
                "2 x 4, 2x3x4 km, 6 × 7, 4 × 6 km, 3 x 4 = 12",
                "2 by 4, 2 by 3 by 4 kilometers, 6 times 7, 4 by 6 kilometers, 3 times 4 equals 12",
            ),
            ("16:9, a 16:10 screen, scale 1:10, 2:15", "16 to 9, a 16 to 10 screen, scale 1 to 10, two fifteen"),
            (
                "a 50 lb bag, 50-lb bags, a 3 km or 5 km run, the 5 km are",
                "a 50 pound bag, 50 pound bags, a 3 kilometer or 5 kilometer run, the 5 kilometers are",
            ),
            ("a $5 bill, the $5 he owes, a 30 °C day", "a 5 dollar bill, the $5 he owes, a 30 degree Celsius day"),
            (
                "from Jan. to Oct., Nov 2026, Sat. or the Sun.",
                "from January to October, November 2026, Saturday or the Sun.",
            ),
            (
                "Be there 12/12, due 5/5, Friday 10/10. It scored 10/10. I rate it 5/5, rated 8/10. A score of 7.5/10, a rating: 9/10. On 10/10, by 5/5, 8/10 of it",
                "Be there December twelfth, due May fifth, Friday October tenth. It scored 10 out of 10. I rate it 5 out of 5, rated 8 out of 10. A score of 7.5 out of 10, a rating: 9 out of 10. On October tenth, by May fifth, 8 tenths of it",
            ),
            ("Fig. 3 of Gen. Lee, 5 lb. of it", "Figure 3 of General Lee, 5 pounds of it"),
            ("Tue–Thu, the 1980s, 1900s, the 90s", "Tuesday to Thursday, the nineteen eighties, 1900s, the 90s"),
        ] {
            assert_eq!(normalizer.normalize(written), spoken, "{written}");
        }
    }

    #[test]
    fn an_abbreviation_that_is_a_word_needs_a_figure() {
        let normalizer = normalizer();
        for (written, spoken) in [
            ("at no. 7, Nos. 3 and 4, nos. 1 to 2", "at number 7, Numbers 3 and 4, numbers 1 to 2"),
            (
                "vol. 3, Ch. 4, Fig. 2, fig. IV, pp. 3-5 of the 2nd ed.",
                "volume 3, Chapter 4, Figure 2, figure IV, pages 3 to 5 of the 2nd edition.",
            ),
            ("Is it so? I said no.", "Is it so? I said no."),
            ("I ate a fig. I liked it.", "I ate a fig. I liked it."),
            ("A fig. The vol. Special ed.", "A fig. The vol. Special ed."),
            ("Our Sun. From Earth to the Sun.", "Our Sun. From Earth to the Sun."),
            ("Your Sun. shift starts at nine.", "Your Sunday shift starts at nine."),
            ("St. Mary's near St. Pancras, St. James St.", "Saint Mary's near Saint Pancras, Saint James Street."),
        ] {
            assert_eq!(normalizer.normalize(written), spoken, "{written}");
        }
    }

    #[test]
    fn figures_keep_their_signs_zeros_and_ends() {
        let normalizer = normalizer();
        for (written, spoken) in [
            (
                "Call 212-555-0147. Or (415) 555-0132, 1-800-555-0123.",
                "Call 2 1 2, 5 5 5, 0 1 4 7. Or 4 1 5, 5 5 5, 0 1 3 2, 1, 8 0 0, 5 5 5, 0 1 2 3.",
            ),
            (
                "It takes 500-1000. $800-1200, the years 800-1066. Call 555-2671 or 800-0123. My number is 867-5309.",
                "It takes 500 to 1000. $800 to 1200, the years 800 to 1066. Call 5 5 5, 2 6 7 1 or 8 0 0, 0 1 2 3. My number is 8 6 7, 5 3 0 9.",
            ),
            ("1/2 plus 1/4 equals 3/4.", "one half plus 1 quarter equals 3 quarters."),
            ("Open 9-5. A 20-30% chance, 1-2.5, 1-2-3.", "Open 9 to 5. A 20 to 30% chance, 1-2.5, 1-2-3."),
            (
                "June 5-9. May 30th – 31st, 2026, from Oct. 3-5, May 3-40",
                "June fifth to ninth. May thirtieth to thirty-first, 2026, from October third to fifth, May third-40",
            ),
            ("1 h 05 min, 00 min, 0.5 km", "1 hour 5 minutes, 0 minutes, 0.5 kilometers"),
            (
                "1 min 05 s, 01 s, 05 °C, -05°, 2 minutes 05 seconds, -05 degrees, a 05 lb bag, 05-lb bags",
                "1 minute 5 seconds, 1 second, 5 degrees Celsius, -5 degrees, 2 minutes 5 seconds, -5 degrees, a 5 pound bag, 5 pound bags",
            ),
            ("0.05 km, 1,005 lb, PIN 05", "0.05 kilometers, 1,005 pounds, PIN 05"),
            (
                "07:30, 2026-01-05, 05/31, 05/06/2026, May 05, PIN 0042",
                "seven thirty, January fifth, 2026, May thirty-first, May sixth, 2026, May fifth, PIN 0042",
            ),
            (
                "-$12.50 (-£3) or −€4, -$1.2 million, $10-$5, $10 - $5",
                "minus $12.50 (minus £3) or minus €4, minus 1.2 million dollars, $10-$5, $10 - $5",
            ),
        ] {
            assert_eq!(normalizer.normalize(written), spoken, "{written}");
        }
    }
}
