//! Tests of roll-outs.

use super::*;
use crate::firmware::test_support::{MODEL, makers, manifest, signed};

fn image(version: &str) -> Stored {
    Stored::parse(&signed(manifest(version.as_bytes(), version), 1), &makers(1)).unwrap()
}

fn device(number: u32) -> Candidate {
    let version = Version::parse("1.0.0").unwrap();
    Candidate {
        device: format!("{number:032x}"),
        model: MODEL.to_owned(),
        hardware: 1,
        version,
        image_bytes_max: 1_000,
    }
}

fn report(outcome: Outcome) -> Report {
    Report { outcome, failure: None, version: "1.0.0".to_owned(), wall_ms: 5, tries: 0 }
}

fn offered(rollouts: &Rollouts, images: &[Stored], candidate: &Candidate) -> bool {
    rollouts.offer(images, candidate).is_some()
}

#[test]
fn a_higher_percentage_has_all_devices_of_a_lower_one() {
    let images = [image("2.0.0")];
    let at = |percent| {
        let mut rollouts = Rollouts::default();
        rollouts.begin(&images[0], Scope::Percent(percent), false);
        (0..1_000).filter(|number| offered(&rollouts, &images, &device(*number))).collect::<Vec<_>>()
    };
    let mut before = Vec::new();
    for percent in [0, 1, 5, 20, 50, 99, 100] {
        let now = at(percent);
        assert!(before.iter().all(|number| now.contains(number)), "{percent}");
        // Within five standard deviations of a share of 1,000.
        let expected = usize::from(percent) * 10;
        assert!(now.len().abs_diff(expected) < 80, "{} at {percent} percent", now.len());
        before = now;
    }
    assert_eq!((at(0).len(), at(100).len()), (0, 1_000));
    // Another image begins with other devices.
    let other = image("3.0.0");
    assert!((0..1_000).any(|n| place_of(&device(n).device, &other.id) != place_of(&device(n).device, &images[0].id)));
}

#[test]
fn only_what_fits_the_device_is_offered() {
    let whole = image("2.0.0");
    let mut rollouts = Rollouts::default();
    rollouts.begin(&whole, Scope::All, false);
    let fits = |image: &Stored, candidate: &Candidate| offered(&rollouts, std::slice::from_ref(image), candidate);
    let version = |text| Version::parse(text).unwrap();
    assert!(fits(&whole, &device(1)));
    assert!(!fits(&whole, &Candidate { model: "Example Two".to_owned(), ..device(1) }));
    assert!(!fits(&whole, &Candidate { image_bytes_max: whole.size - 1, ..device(1) }));
    for (running, wanted) in [("2.0.0", false), ("2.0.1", false), ("1.9.9", true)] {
        assert_eq!(fits(&whole, &Candidate { version: version(running), ..device(1) }), wanted, "{running}");
    }
    let down = Stored { downgrade: true, ..whole.clone() };
    assert!(fits(&down, &Candidate { version: version("2.0.1"), ..device(1) }));
    assert!(!fits(&down, &Candidate { version: version("2.0.0"), ..device(1) }));
    let late = Stored { version_min: Some(version("1.5.0")), ..whole.clone() };
    assert!(!fits(&late, &device(1)));
    let other = Stored { hardware: (2, 3), ..whole };
    assert!(!fits(&other, &device(1)) && fits(&other, &Candidate { hardware: 3, ..device(1) }));
}

#[test]
fn a_roll_out_stops_by_itself_when_too_many_fail() {
    let images = [image("2.0.0")];
    let mut rollouts = Rollouts::default();
    rollouts.begin(&images[0], Scope::All, false);
    let runs = |number| Candidate { version: images[0].version, ..device(number) };
    for number in 0..8 {
        assert!(rollouts.report(&images[0], &runs(number), report(Outcome::Applied), 20));
        assert!(!rollouts.report(&images[0], &runs(number), report(Outcome::Applied), 20), "the same again");
    }
    assert!(rollouts.report(&images[0], &device(8), report(Outcome::RolledBack), 20));
    assert!(rollouts.report(&images[0], &device(9), report(Outcome::Failed), 20));
    assert_eq!(rollouts.rollouts[MODEL].stage, Stage::Running, "two of ten are not more than 20 percent");
    assert!(!offered(&rollouts, &images, &device(8)), "not twice");
    assert!(offered(&rollouts, &images, &device(10)));
    assert!(rollouts.report(&images[0], &device(10), report(Outcome::Failed), 20));
    let Stage::Stopped(why) = &rollouts.rollouts[MODEL].stage else { panic!("{rollouts:?}") };
    assert!(why.starts_with("3 of 11 devices"), "{why}");
    assert!(!offered(&rollouts, &images, &device(11)), "to nobody any more");
    // The operator goes on, first without, then with the devices on which it failed.
    rollouts.begin(&images[0], Scope::All, false);
    assert!(offered(&rollouts, &images, &device(11)) && !offered(&rollouts, &images, &device(8)));
    rollouts.begin(&images[0], Scope::All, true);
    assert!(offered(&rollouts, &images, &device(8)));
    assert_eq!(rollouts.counts(&hex(&images[0].id)), Counts { verified: 0, applied: 8, bad: 0 });
}

#[test]
fn who_always_comes_back_with_the_old_version_is_given_up() {
    let images = [image("2.0.0")];
    let mut rollouts = Rollouts::default();
    rollouts.begin(&images[0], Scope::Devices(vec![device(1).device]), false);
    for _ in 0..TRIES_MAX {
        assert!(offered(&rollouts, &images, &device(1)));
        assert!(rollouts.report(&images[0], &device(1), report(Outcome::Verified), 20));
    }
    assert!(!offered(&rollouts, &images, &device(1)) && !offered(&rollouts, &images, &device(2)));
    // One that claims to run the image, and does not, has failed.
    assert!(rollouts.report(&images[0], &device(1), report(Outcome::Applied), 20));
    assert_eq!(rollouts.counts(&hex(&images[0].id)).bad, 1);
}

#[test]
fn a_model_has_one_roll_out_and_it_can_be_paused() {
    let images = [image("2.0.0"), image("3.0.0")];
    let mut rollouts = Rollouts::default();
    assert!(!rollouts.pause(MODEL));
    rollouts.begin(&images[0], Scope::All, false);
    rollouts.begin(&images[1], Scope::All, false);
    assert_eq!(rollouts.offer(&images, &device(1)).unwrap().version, images[1].version);
    assert!(rollouts.pause(MODEL));
    assert!(!offered(&rollouts, &images, &device(1)));
    let failed = Report { failure: Some("flash: worn".to_owned()), ..report(Outcome::Failed) };
    for (number, report) in [report(Outcome::Verified), failed].into_iter().enumerate() {
        rollouts.report(&images[1], &device(u32::try_from(number).unwrap()), report, 100);
    }
    let stored = serde_json::to_string(&rollouts).unwrap();
    assert!(stored.contains(r#""failure":"","#) && stored.contains(r#""failure":"flash: worn""#), "{stored}");
    assert_eq!(serde_json::from_str::<Rollouts>(&stored).unwrap(), rollouts);
    rollouts.forget(&images[1].id);
    assert_eq!(rollouts, Rollouts::default());
}
