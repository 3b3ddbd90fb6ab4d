//! Recall against false accepts, as a picture.

use std::fmt::Write as _;

use super::operating::thresholds;

/// Size of the picture, and of the margins around its axes, in pixels.
const WIDTH: f64 = 640.0;
const HEIGHT: f64 = 400.0;
const MARGIN: f64 = 56.0;
/// False accepts in an hour at the right end of the axis.
const PER_HOUR_MAX: f64 = 20.0;
const COLOURS: [&str; 4] = ["#1b6ca8", "#c0392b", "#2e8b57", "#8e44ad"];

/// One curve: its name, and recall from 0 to 1 at a threshold.
pub type Curve<'a> = (String, Box<dyn Fn(f32) -> f64 + 'a>);

/// An SVG: for each threshold a point, recall upwards, false accepts in an hour to the right (its square root, since a
/// head is used at its left end). The `chosen` threshold is a dot.
pub fn svg(title: &str, curves: &[Curve<'_>], per_hour: &dyn Fn(f32) -> f64, chosen: f32) -> String {
    let right = |per_hour: f64| MARGIN + (per_hour.min(PER_HOUR_MAX) / PER_HOUR_MAX).sqrt() * (WIDTH - 2.0 * MARGIN);
    let up = |recall: f64| HEIGHT - MARGIN - recall * (HEIGHT - 2.0 * MARGIN);
    let mut out = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {HEIGHT}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n<text x=\"{MARGIN}\" y=\"24\" font-size=\"15\">{}</text>\n",
        escaped(title)
    );
    let mut text = |x: f64, y: f64, anchor: &str, words: &str| {
        // Writing to a string cannot fail.
        let _ = writeln!(out, "<text x=\"{x:.1}\" y=\"{y:.1}\" text-anchor=\"{anchor}\">{}</text>", escaped(words));
    };
    for (recall, words) in [(0.0, "0 %"), (0.5, "50 %"), (0.9, "90 %"), (1.0, "100 %")] {
        text(MARGIN - 6.0, up(recall) + 4.0, "end", words);
    }
    for (rate, words) in [(0.0, "0"), (0.5, "0.5"), (2.0, "2"), (5.0, "5"), (10.0, "10"), (20.0, "20")] {
        text(right(rate), HEIGHT - MARGIN + 18.0, "middle", words);
    }
    text(WIDTH / 2.0, HEIGHT - 14.0, "middle", "false accepts in an hour of real speech, before the text verifies");
    for (index, (name, _)) in curves.iter().enumerate() {
        text(WIDTH - MARGIN, up(0.35) + 16.0 * index as f64, "end", &format!("{name} "));
    }
    for (index, (_, recall)) in curves.iter().enumerate() {
        let colour = COLOURS[index % COLOURS.len()];
        let places: Vec<String> =
            thresholds().map(|at| format!("{:.1},{:.1}", right(per_hour(at)), up(recall(at)))).collect();
        let (x, y, legend) = (right(per_hour(chosen)), up(recall(chosen)), up(0.35) - 4.0 + 16.0 * index as f64);
        let _ = writeln!(
            out,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{colour}\" stroke-width=\"2\"/>\n\
             <circle cx=\"{x:.1}\" cy=\"{y:.1}\" r=\"4\" fill=\"{colour}\"/>\n\
             <circle cx=\"{:.1}\" cy=\"{legend:.1}\" r=\"4\" fill=\"{colour}\"/>",
            places.join(" "),
            WIDTH - MARGIN + 6.0
        );
    }
    let (left, bottom, far, top) = (MARGIN, HEIGHT - MARGIN, WIDTH - MARGIN, MARGIN);
    let _ = writeln!(out, "<path d=\"M{left} {top}V{bottom}H{far}\" fill=\"none\" stroke=\"black\"/>\n</svg>");
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curves_go_from_the_lowest_threshold_to_the_highest() {
        let curves: [Curve<'_>; 2] =
            [("clean".to_owned(), Box::new(|_| 1.0)), ("a < b".to_owned(), Box::new(|at| f64::from(1.0 - at)))];
        let picture = svg("\"hey\" & more", &curves, &|at| f64::from(1.0 - at) * 30.0, 0.5);
        assert!(picture.starts_with("<svg") && picture.trim_end().ends_with("</svg>"));
        assert!(picture.contains("a &lt; b") && picture.contains("&amp; more"));
        let lines: Vec<&str> = picture.lines().filter(|line| line.starts_with("<polyline")).collect();
        let places = |line: &str| line.split('"').nth(1).unwrap().split(' ').map(str::to_owned).collect::<Vec<_>>();
        assert_eq!((lines.len(), places(lines[0]).len()), (2, thresholds().count()));
        // Perfect recall is the upper end of the axis; more than twenty an hour is its right end.
        assert_eq!(places(lines[0])[0], format!("{:.1},{:.1}", WIDTH - MARGIN, MARGIN));
    }
}
