//! `calculator.evaluate`: sums, percentages and units, with limits on time and size.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use async_trait::async_trait;
use gateway_core::vocab::{ErrorCode, ToolResult};
use serde_json::json;
use text2num::{Language, replace_numbers_in_text};

use super::{BuiltIn, Definition, READ_ONLY, Tool, told};
use crate::{
    arguments::{Arguments, Refusal},
    limits::{EXPRESSION_CHARS_MAX, OUTCOME_CHARS_MAX},
    registry::RunContext,
};

const ASK: &str = "What should I calculate?";

struct CalculatorEvaluate;

inventory::submit! { BuiltIn(&CalculatorEvaluate) }

#[async_trait]
impl Tool for CalculatorEvaluate {
    fn definition(&self) -> Definition {
        Definition {
            name: "calculator.evaluate",
            title: "Calculate",
            description: "Calculates: arithmetic, powers, roots, percentages, trigonometry and \
                          conversion of units, for example \"5 miles to km\". No currencies.",
            properties: json!({
                "expression": {"type": "string", "question": ASK, "description": "What to calculate, for example (3 + 4) * 12.", "examples": ["12 times 7"]},
            }),
            required: &["expression"],
            phrases: &[
                // The first one is what help shows.
                "what is {expression:expression}",
                "what (is|are|does|makes) {expression:expression} [equal|equals|make]",
                "(how much|how many) (is|are|makes) {expression:expression}",
                "(calculate|compute|evaluate|work out|figure out|convert|solve|do the math on) {expression:expression}",
                "(tell me|do you know) (what|how much) {expression:expression} (is|are|makes)",
                "(tell me|give me|do you know) {expression:expression}",
                "(what|how much) {expression:expression} (is|makes)",
                "{expression:expression}",
                "{expression:expression} (equals|is) [what|how much]",
            ],
            guidance: Some("Use calculator.evaluate for every calculation; do not do sums yourself."),
            flags: READ_ONLY,
        }
    }

    async fn run(&self, _context: &RunContext, arguments: Arguments<'_>) -> Result<ToolResult, Refusal> {
        let asked = arguments.text_required("expression", EXPRESSION_CHARS_MAX, ASK)?;
        let expression = expression(&asked)?;
        let at_once = Budget::of(STEPS_AT_ONCE);
        let outcome = match evaluate(&expression, &at_once) {
            Err(_) if at_once.is_spent() => evaluate_beside(expression).await,
            outcome => outcome,
        };
        let outcome = outcome.map_err(|error| refusal(&error))?;
        if outcome.is_empty() || outcome.contains('\n') {
            return Err(refusal("not a calculation with one result"));
        }
        if outcome.chars().count() > OUTCOME_CHARS_MAX {
            return Err(Refusal {
                code: ErrorCode::ExecutionError,
                message: "The result has too many digits.".to_owned(),
                say: "The result is too long to say.".to_owned(),
                retryable: false,
            });
        }
        let (sign, shown, spoken) = match outcome.strip_prefix("approx. ") {
            Some(value) => ("≈", rounded(value), rounded(value)),
            None => ("=", outcome.clone(), rounded(&outcome)),
        };
        let about = if sign == "=" && shown == spoken { "" } else { "about " };
        let say = format!("That's {about}{spoken}.");
        let mut result = told(say, &asked, format!("{sign} {shown}"), json!({"result": outcome}));
        result.content = outcome;
        Ok(result)
    }
}

/// Steps that are evaluated in the call's own task. Usual calculations take less than half as many, and less time than
/// a handover to a thread; the worst numbers take some three milliseconds for these steps.
const STEPS_AT_ONCE: u64 = 400;

/// Longest evaluation on a separate thread, in milliseconds. Steps alone do not bound the time, since a step on huge
/// numbers is slow.
const EVALUATE_MS_MAX: u64 = 500;

/// Maximum steps of an evaluation, whatever its time.
const STEPS_MAX: u64 = 2_000_000;

struct Budget {
    steps_left: AtomicU64,
}

impl Budget {
    fn of(steps: u64) -> Self {
        Self { steps_left: AtomicU64::new(steps) }
    }

    fn is_spent(&self) -> bool {
        self.steps_left.load(Ordering::Relaxed) == 0
    }
}

impl fend_core::Interrupt for Budget {
    fn should_interrupt(&self) -> bool {
        let less = |steps: u64| steps.checked_sub(1);
        self.steps_left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, less).is_err()
    }
}

struct StopOnDrop(Arc<Budget>);

impl Drop for StopOnDrop {
    fn drop(&mut self) {
        self.0.steps_left.store(0, Ordering::Relaxed);
    }
}

/// What an evaluation in the call's own task gives; `None`: no calculation, or too long a one.
#[cfg(feature = "fuzzing")]
pub(crate) fn calculation(asked: &str) -> Option<String> {
    if asked.chars().count() > EXPRESSION_CHARS_MAX {
        return None;
    }
    evaluate(&expression(asked).ok()?, &Budget::of(STEPS_AT_ONCE)).ok()
}

/// Evaluates on a blocking thread.
async fn evaluate_beside(expression: String) -> Result<String, String> {
    let budget = Arc::new(Budget::of(STEPS_MAX));
    // Dropped when this future ends, also at a deadline: then the thread stops as well.
    let _stop = StopOnDrop(Arc::clone(&budget));
    let evaluating = tokio::task::spawn_blocking(move || evaluate(&expression, &budget));
    match tokio::time::timeout(Duration::from_millis(EVALUATE_MS_MAX), evaluating).await {
        Ok(Ok(outcome)) => outcome,
        Ok(Err(_panic)) => Err("the calculator crashed".to_owned()),
        Err(_elapsed) => Err("interrupted".to_owned()),
    }
}

/// Evaluates without rates and randomness, so that currencies and dice are errors.
fn evaluate(expression: &str, budget: &Budget) -> Result<String, String> {
    let mut context = fend_core::Context::new();
    let result = fend_core::evaluate_with_interrupt(expression, &mut context, budget)?;
    Ok(result.get_main_result().trim().to_owned())
}

/// Translates spoken words to the evaluator's language; refuses what is no calculation.
fn expression(asked: &str) -> Result<String, Refusal> {
    // Short words keep their case: units differ by it (MB, Mb).
    let words = asked
        .split(' ')
        .map(|word| if word.chars().count() > SHORT_CHARS_MAX { word.to_lowercase() } else { word.to_owned() });
    let words = words.collect::<Vec<_>>().join(" ");
    let digits = replace_numbers_in_text(&with_seconds(&words), &Language::english(), 0.0);
    let mut text = format!(" {} ", digits.trim_end_matches(['?', '=', '.', ' ']));
    for (spoken, written) in REPLACEMENTS {
        text = text.replace(spoken, written);
    }
    let text = percentages(&root(text.trim()));
    // The excluded characters keep programs out: the evaluator has functions of functions, and a recursive one would
    // end the process.
    let allowed = |c: char| c.is_ascii_alphanumeric() || " +-*/^!%().,°".contains(c);
    if text.is_empty() || !text.chars().all(allowed) || text.matches('(').count() > NESTED_MAX {
        return Err(refusal("not a calculation"));
    }
    // Dice ("2d6") are a distribution to the evaluator, not a number.
    let mut words = text.split(|c: char| !c.is_ascii_alphanumeric());
    let number = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_ascii_digit());
    let dice = |word: &str| word.split_once('d').is_some_and(|(n, sides)| (n.is_empty() || number(n)) && number(sides));
    if words.any(dice) {
        return Err(refusal("dice are not offered"));
    }
    Ok(text)
}

/// The words with the unit "second" in the plural, which the evaluator takes for the same: the singular would be read as
/// the ordinal, "2nd".
fn with_seconds(words: &str) -> String {
    let unit = |piece: &str| match piece.strip_prefix("second") {
        Some(end) if !end.starts_with(char::is_alphanumeric) => format!("seconds{end}"),
        _ => piece.to_owned(),
    };
    words.split_inclusive(|c: char| !c.is_alphanumeric()).map(unit).collect()
}

/// Characters of a unit's abbreviation.
const SHORT_CHARS_MAX: usize = 3;

/// Nested brackets: far more than is ever said, far less than the evaluator's stack holds.
const NESTED_MAX: usize = 20;

/// Spoken operators, longer ones first.
const REPLACEMENTS: [(&str, &str); 34] = [
    ("×", " * "),
    ("÷", " / "),
    ("−", "-"),
    ("–", "-"),
    ("√", " square root of "),
    ("²", "^2"),
    ("³", "^3"),
    ("π", " pi "),
    (" what is ", " "),
    (" to the power of ", " ^ "),
    (" raised to ", " ^ "),
    (" to the power ", " ^ "),
    (" multiplied by ", " * "),
    (" multiplied with ", " * "),
    (" divided by ", " / "),
    (" times ", " * "),
    (" x ", " * "),
    (" over ", " / "),
    (" plus ", " + "),
    (" minus ", " - "),
    (" squared ", " ^ 2 "),
    (" cubed ", " ^ 3 "),
    (" percent of ", "% of "),
    (" per cent of ", "% of "),
    (" percent ", "% "),
    (" the square root of ", " square root of "),
    (" the cube root of ", " cube root of "),
    (" modulo ", " mod "),
    (" factorial ", "! "),
    (" into ", " to "),
    (" degrees celsius ", " °C "),
    (" degrees fahrenheit ", " °F "),
    (" celsius ", " °C "),
    (" fahrenheit ", " °F "),
];

/// "square root of 16 + 9" is the root of the number that follows directly.
fn root(text: &str) -> String {
    let mut out = text.to_owned();
    for (spoken, function) in [("square root of ", "sqrt"), ("cube root of ", "cbrt")] {
        while let Some((before, after)) = out.clone().split_once(spoken) {
            let end = if after.starts_with('(') {
                0
            } else {
                let number = |c: char| c.is_ascii_digit() || ".,".contains(c);
                after.find(|c| !number(c)).unwrap_or(after.len())
            };
            let (operand, rest) = after.split_at(end);
            out = if operand.is_empty() {
                format!("{before}{function} {rest}")
            } else {
                format!("{before}{function}({operand}){rest}")
            };
        }
    }
    out
}

/// Percentages as people mean them, in brackets as well. One that is added or taken off is one of all that it is added to: "80 - 10% + 5"
/// is 77, and "15% + 15%" a sum. What is divided by one is divided by its value.
fn percentages(text: &str) -> String {
    // The text so far: of each open bracket, and of what is around them.
    let mut open = vec![String::new()];
    for (at, sign) in text.char_indices() {
        match (sign, open.as_mut_slice()) {
            ('(', _) => open.push(String::new()),
            (')', [.., outer, _]) => {
                let inner = std::mem::take(outer);
                let inner = open.pop().map(|bracket| format!("{inner}({bracket})")).unwrap_or_default();
                if let Some(outer) = open.last_mut() {
                    *outer = inner;
                }
            }
            ('%', [.., here]) => {
                // "20% of 50" is a percentage of something else, and "20% * 50" a number.
                let is_operand = |next: char| next.is_alphanumeric() || "(*/^".contains(next);
                let is_operand = text[at + 1..].trim_start().starts_with(is_operand);
                match of_itself(here).filter(|_| !is_operand) {
                    Some(applied) => *here = applied,
                    None => here.push(sign),
                }
            }
            (sign, [.., here]) => here.push(sign),
            (_, []) => {}
        }
    }
    // Brackets that are not closed are an error of the evaluator.
    open.join("(")
}

/// The text before a percent sign with the percentage applied to it, if it has an operator that does.
fn of_itself(text: &str) -> Option<String> {
    let number_at = text.trim_end().rfind(|c: char| !(c.is_ascii_digit() || c == '.'))? + 1;
    let percent = text.get(number_at..)?.trim();
    let rest = text.get(..number_at)?.trim_end();
    let divided = |minus: &str| {
        let left = rest.strip_suffix(minus)?.trim_end().strip_suffix('/')?;
        (!percent.is_empty()).then(|| format!("{left}/ ({minus}{percent} / 100)"))
    };
    if let Some(divided) = divided("").or_else(|| divided("-")) {
        return Some(divided);
    }
    let (left, sign) = (rest.strip_suffix(['+', '-'])?.trim(), rest.chars().next_back()?);
    // "1e-5%" is a number.
    let is_exponent = left.strip_suffix(['e', 'E']).is_some_and(|left| left.ends_with(|c: char| c.is_ascii_digit()));
    let is_value = left.ends_with(|c: char| c.is_ascii_alphanumeric() || c == ')') && !is_exponent;
    (!percent.is_empty() && is_value && !left.contains('%')).then(|| format!("({left}) * (1 {sign} {percent} / 100)"))
}

/// Rounds the leading number to at most four decimals: more is useless in speech.
fn rounded(value: &str) -> String {
    let end = value.find(|c: char| !(c.is_ascii_digit() || c == '.' || c == '-')).unwrap_or(value.len());
    let (number, unit) = value.split_at(end);
    let plain = !unit.starts_with(['e', 'E', '*', '/', '^']);
    match (number.split_once('.'), number.parse::<f64>()) {
        (Some((_, decimals)), Ok(parsed)) if plain && decimals.len() > 4 && (0.001..1e12).contains(&parsed.abs()) => {
            let short = format!("{parsed:.4}");
            let short = short.trim_end_matches('0').trim_end_matches('.');
            format!("{short}{unit}")
        }
        _ => value.to_owned(),
    }
}

fn refusal(error: &str) -> Refusal {
    let (code, say) = if error.contains("division by zero") {
        (ErrorCode::ExecutionError, "Nothing can be divided by zero.")
    } else if error.contains("interrupted") {
        (ErrorCode::ExecutionError, "That calculation is too big for me.")
    } else {
        (ErrorCode::InvalidArguments, "I can't calculate that.")
    };
    Refusal {
        code,
        message: format!("Not calculated: {}", crate::reply::cut(error, 200)),
        say: say.to_owned(),
        retryable: false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_second_is_a_unit() {
        for (asked, read, begin) in [
            ("36 km per hour to metres per second", "36 km per hour to metres per seconds", Some("10 ")),
            ("1 second to milliseconds?", "1 seconds to milliseconds", Some("1000 ")),
            ("(36 km/h) to (m/second)", "(36 km/h) to (m/seconds)", None),
            ("2 minutes to seconds", "2 minutes to seconds", Some("120 ")),
            ("convert 36 km per hour to metres per second", "convert 36 km per hour to metres per seconds", None),
            ("how many milliseconds in 1 second", "how many milliseconds in 1 seconds", None),
        ] {
            let expression = expression(asked).unwrap_or_else(|refusal| panic!("{asked}: {}", refusal.message));
            assert_eq!(expression, read, "{asked}");
            let outcome = evaluate(&expression, &Budget::of(STEPS_MAX));
            assert!(begin.is_none_or(|begin| outcome.is_ok_and(|value| value.starts_with(begin))), "{asked}");
        }
    }

    #[test]
    fn what_people_ask_is_done_where_the_call_runs_and_what_is_huge_is_not() {
        for sum in
            ["15% of 80", "(3 + 4) * 12", "1/3", "17!", "2^100", "5 miles to km", "100 °F to °C", "sin 30 degrees"]
        {
            let budget = Budget::of(STEPS_AT_ONCE / 2);
            assert!(evaluate(sum, &budget).is_ok() && !budget.is_spent(), "{sum}");
        }
        for sum in ["9^9^9^9", "99999!", "1.0001^999999999", "2^99999"] {
            let budget = Budget::of(STEPS_AT_ONCE);
            assert!(evaluate(sum, &budget).is_err() && budget.is_spent(), "{sum}");
        }
    }
}
