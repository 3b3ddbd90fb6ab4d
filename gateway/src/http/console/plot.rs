//! Drawings in SVG. Each has a title for screen readers, and stands beside a table or text with the same numbers. Colours
//! come from the stylesheet.

use maud::{Markup, html};

/// Size of a plot in its own units.
const WIDTH: f64 = 720.0;
const HEIGHT: f64 = 220.0;
/// Room for the numbers beside and below.
const LEFT: f64 = 90.0;
const BOTTOM: f64 = 28.0;
const TOP: f64 = 20.0;
/// Height of a row of a waterfall.
const ROW: f64 = 28.0;
/// Room for the names of its rows.
const NAMES: f64 = 150.0;
/// Room for the numbers behind its bars.
const BEHIND: f64 = 110.0;

/// A series of values at equal distances; `None`: there is none.
pub(super) struct Series<'a> {
    pub(super) name: &'a str,
    /// Its class in the stylesheet.
    pub(super) class: &'a str,
    pub(super) values: Vec<Option<f64>>,
}

/// Lines over time, from 0 up. `ends`: what stands below the first and the last value.
pub(super) fn lines(title: &str, unit: &str, series: &[Series<'_>], ends: (&str, &str)) -> Markup {
    let most = rounded(series.iter().flat_map(|one| &one.values).flatten().copied().fold(0.0, f64::max));
    let steps = series.iter().map(|one| one.values.len()).max().unwrap_or(0).saturating_sub(1).max(1);
    let x = |at: usize| LEFT + (WIDTH - LEFT - 8.0) * at as f64 / steps as f64;
    let y = |value: f64| TOP + (HEIGHT - TOP - BOTTOM) * (1.0 - value / most);
    html! {
        figure.plot {
            figcaption {
                (title)
                @for one in series { " " span.key .(one.class) { (one.name) } }
            }
            svg viewBox=(format!("0 0 {WIDTH} {HEIGHT}")) role="img" aria-label=(title) {
                @for part in 0..=4 {
                    @let value = most * f64::from(part) / 4.0;
                    line.grid x1=(LEFT) x2=(WIDTH) y1=(round(y(value))) y2=(round(y(value))) {}
                    text.tick x=(LEFT - 8.0) y=(round(y(value) + 4.0)) text-anchor="end" { (number(value)) " " (unit) }
                }
                text.tick x=(LEFT) y=(HEIGHT - 8.0) { (ends.0) }
                text.tick x=(WIDTH) y=(HEIGHT - 8.0) text-anchor="end" { (ends.1) }
                @for one in series {
                    @for run in runs(&one.values) {
                        polyline.line .(one.class) points=(points(run.iter().map(|(at, value)| (x(*at), y(*value))))) {}
                    }
                    @for (at, value) in one.values.iter().enumerate() {
                        @if let Some(value) = value {
                            circle.dot .(one.class) cx=(round(x(at))) cy=(round(y(*value))) r="3" {}
                        }
                    }
                }
            }
        }
    }
}

/// A part of a turn: name, class, begin and end in milliseconds.
pub(super) struct Bar {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) from_ms: f64,
    pub(super) to_ms: f64,
}

/// Bars one below the other, each where it lies in time.
pub(super) fn waterfall(title: &str, bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.to_ms).fold(1.0, f64::max);
    let height = ROW * bars.len() as f64 + 4.0;
    let x = |ms: f64| NAMES + (WIDTH - NAMES - BEHIND) * ms / most;
    html! {
        figure.plot {
            svg viewBox=(format!("0 0 {WIDTH} {height}")) role="img" aria-label=(title) {
                @for (at, bar) in bars.iter().enumerate() {
                    @let top = ROW * at as f64;
                    text.tick x="0" y=(top + 17.0) { (bar.name) }
                    rect.bar .(bar.class) x=(round(x(bar.from_ms))) y=(top + 5.0) height=(ROW - 10.0)
                        width=(round((x(bar.to_ms) - x(bar.from_ms)).max(2.0))) {}
                    text.tick x=(round(x(bar.to_ms) + 6.0)) y=(top + 17.0) { (number(bar.to_ms - bar.from_ms)) " ms" }
                }
            }
        }
    }
}

/// The same in one row, for a cell of a table. Its numbers stand elsewhere.
pub(super) fn strip(bars: &[Bar], most_ms: f64) -> Markup {
    let x = |ms: f64| 200.0 * (ms / most_ms.max(1.0)).min(1.0);
    html! {
        svg.strip viewBox="0 0 200 14" aria-hidden="true" focusable="false" {
            rect.ground x="0" y="6" width="200" height="2" {}
            @for bar in bars {
                rect.bar .(bar.class) x=(round(x(bar.from_ms))) y="1" height="12"
                    width=(round((x(bar.to_ms) - x(bar.from_ms)).max(1.0))) {}
            }
        }
    }
}

/// Parts of a series without gaps, with the places of their values.
fn runs(values: &[Option<f64>]) -> Vec<Vec<(usize, f64)>> {
    let mut runs = vec![Vec::new()];
    for (at, value) in values.iter().enumerate() {
        match value {
            Some(value) => runs.last_mut().into_iter().for_each(|run| run.push((at, *value))),
            None => runs.push(Vec::new()),
        }
    }
    runs.retain(|run| run.len() > 1);
    runs
}

fn points(points: impl Iterator<Item = (f64, f64)>) -> String {
    points.map(|(x, y)| format!("{},{}", round(x), round(y))).collect::<Vec<_>>().join(" ")
}

/// The next of 1, 2, 5, 10, 20, … above.
fn rounded(most: f64) -> f64 {
    let mut unit = 1.0;
    while unit < 1e12 {
        for factor in [1.0, 2.0, 5.0] {
            if most <= unit * factor {
                return unit * factor;
            }
        }
        unit *= 10.0;
    }
    most
}

/// To a tenth of a unit: more is not seen.
fn round(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

/// A number for people.
pub(super) fn number(value: f64) -> String {
    if value >= 10.0 || value == 0.0 { format!("{value:.0}") } else { format!("{value:.1}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_have_gaps_where_there_are_no_values() {
        let values = [Some(1.0), Some(2.0), None, Some(3.0), None, Some(4.0), Some(5.0)];
        let runs: Vec<Vec<usize>> =
            runs(&values).into_iter().map(|run| run.into_iter().map(|(at, _)| at).collect()).collect();
        assert_eq!(runs, [vec![0, 1], vec![5, 6]]);
        assert_eq!([0.0, 0.3, 1.5, 2.0, 480.0, 1_200.0].map(rounded), [1.0, 1.0, 2.0, 2.0, 500.0, 2_000.0]);
        let series = Series { name: "p50", class: "one", values: values.to_vec() };
        let drawn = lines("Answers", "ms", &[series], ("a", "b")).into_string();
        assert_eq!((drawn.matches("<polyline").count(), drawn.matches("<circle").count()), (2, 5));
        assert!(!drawn.contains("style="), "nothing inline: {drawn}");
        lines("Nothing", "ms", &[], ("a", "b"));
    }

    #[test]
    fn a_bar_lies_where_its_part_lies_in_time() {
        let bar = |from_ms, to_ms| Bar { name: "x", class: "y", from_ms, to_ms };
        let drawn = waterfall("Turn", &[bar(0.0, 500.0), bar(500.0, 1_000.0)]).into_string();
        assert!(
            drawn.contains("x=\"150\"") && drawn.contains("x=\"380\"") && drawn.contains("width=\"230\""),
            "{drawn}"
        );
        assert!(strip(&[bar(0.0, 5.0)], 0.0).into_string().contains("width=\"200\""));
    }
}
