//! The dialogues of the core again, with each machine in a task of its own: the loop that devices and users have in the
//! product, its channels and its sleeps, on a virtual clock. What judges is the same, and so is the log.

#[path = "../core/tests/script/mod.rs"]
mod script;
mod tasks;
#[path = "../core/tests/world/mod.rs"]
mod world;

use std::{fs, path::Path};

use gateway_core::{
    conversation,
    input::{Button, Input, UserInput},
    user,
    vocab::{DisplaySize, Due, ScheduleChange, ScheduleKind, ToolFlags, ToolResult},
};
use proptest::prelude::*;
use script::Scenario;
use tasks::InTasks;
use world::{Line, ModelEnd, ModelScript, ToolScript, World, machines::InPlace};

const WORDS: [&str; 8] = [
    "Hey Mentra, what time is it?",
    "Mentra, set a timer for",
    "ten minutes",
    "stop",
    "Yes.",
    "repeat that",
    "Ok Mentra, stop listening.",
    "I told him so.",
];

fn scenarios() -> Vec<(String, Scenario)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("core/tests/dialogues");
    let mut files: Vec<_> = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    let texts = files.iter().filter(|path| path.extension().is_some_and(|end| end == "txt"));
    texts
        .flat_map(|path| {
            let file = path.file_stem().unwrap().to_string_lossy().into_owned();
            script::scenarios(&fs::read_to_string(path).unwrap()).into_iter().map(move |one| (file.clone(), one))
        })
        .collect()
}

/// The lines of one machine, which stand behind its name and a colon.
fn of<'a>(log: &'a [Line], machine: &str) -> Vec<(u64, &'a str)> {
    let own = log.iter().filter(|line| line.text.split(':').next() == Some(machine));
    own.map(|line| (line.at, line.text.as_str())).collect()
}

/// Where two logs of one machine part.
fn difference(in_place: &[(u64, &str)], in_tasks: &[(u64, &str)]) -> Option<String> {
    let at = (0..in_place.len().max(in_tasks.len())).find(|at| in_place.get(*at) != in_tasks.get(*at))?;
    Some(format!("  in place {:?}\n  in tasks {:?}", in_place.get(at), in_tasks.get(at)))
}

#[test]
fn every_dialogue_has_the_same_log_in_place_and_in_tasks() {
    let all = scenarios();
    assert!(!all.is_empty());
    let mut differing = Vec::new();
    for (file, scenario) in &all {
        let in_place = script::run_where(scenario, |user| Box::new(InPlace::new(user))).unwrap();
        let parts = match script::run_where(scenario, |user| Box::new(InTasks::new(user))) {
            Err(report) => Some(report),
            Ok(in_tasks) => ["glasses", "phone", "user"]
                .iter()
                .find_map(|machine| difference(&of(&in_place, machine), &of(&in_tasks, machine))),
        };
        differing.extend(parts.map(|parts| format!("{file}: {}\n{parts}", scenario.title)));
    }
    assert!(differing.is_empty(), "{} of {} differ:\n{}", differing.len(), all.len(), differing.join("\n"));
}

/// A step of a wearer or a model: which, after how many milliseconds, with which words.
type Step = (u8, u64, usize);

fn step(world: &mut World, (what, pause, word): Step, number: usize) {
    let device = word % 2;
    let says = |text: &str| ModelScript { after: pause / 4, text: text.into(), ..ModelScript::default() };
    match what {
        0..=4 => world.speak(device, &[(0, 200 + pause / 4, WORDS[word])], None),
        5 => world.input(device, Input::Button(Button::Press)),
        6 => world.models.push_back(says("Here is one. And here is two, at length.")),
        7 => world.models.push_back(ModelScript { end: ModelEnd::Silent, ..says("Wait.") }),
        8 | 9 => {
            let id = format!("c{number}");
            let result = (word > 1).then(|| ToolResult::said("Done."));
            let flags = ToolFlags { slow: word % 5 == 0, read_only: word % 2 == 0, ..ToolFlags::default() };
            let timeout_ms = (word % 4 == 0).then_some(pause as u32 * 10);
            let tool = ToolScript { after: pause, result, cancellable: word % 3 == 0, flags, timeout_ms };
            world.tools.insert(id.clone(), tool);
            world.models.push_back(ModelScript { calls: vec![("tool".into(), id)], ..says("Let me see.") });
        }
        10 => world.input(device, Input::Text(WORDS[word].into())),
        _ => {
            let (due, kind) = (Due::In { duration_ms: pause }, ScheduleKind::Timer { name: None });
            let change = ScheduleChange::Add { due, kind };
            world.user_input(UserInput::Schedule { request: number as u64, change });
        }
    }
}

/// A world of machines in tasks, ten minutes after these steps.
fn played_to_rest(steps: Vec<Step>, lags: Vec<u64>) -> World {
    let start: world::Start = |user| Box::new(InTasks::new(user));
    let mut world = World::with(conversation::Config::default(), user::Config::default(), start);
    world.lags = lags;
    world.add_device("glasses", Some(DisplaySize::new(30, 3)), true, true);
    world.add_device("phone", None, true, true);
    world.connect(0, false);
    world.connect(1, false);
    for (number, one) in steps.into_iter().enumerate() {
        let until = world.now_ms + one.1;
        world.run_until(until);
        step(&mut world, one, number);
    }
    let until = world.now_ms + 600_000;
    world.run_until(until);
    world
}

/// Several timeouts of one device with nothing else between them: each comes in time.
#[test]
fn timeouts_in_a_row_are_not_later_and_later() {
    let steps = vec![(0, 964, 1), (6, 1_909, 0), (0, 2_527, 1), (0, 1, 2), (0, 299, 0)];
    let world = played_to_rest(steps, vec![0, 481, 637, 0, 0, 202, 120, 0, 297]);
    assert_eq!(script::rest(&world), Ok(()));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever is late, in machines that run in tasks: everything comes to rest, nothing is promised and lost.
    #[test]
    fn a_world_in_tasks_comes_to_rest_however_late_its_answers_are(
        steps in prop::collection::vec((0_u8..12, 0_u64..4_000, 0..WORDS.len()), 1..30),
        lags in prop::collection::vec(0_u64..700, 1..20),
    ) {
        let world = played_to_rest(steps, lags);
        prop_assert_eq!(script::rest(&world), Ok(()));
        // Every timer that was promised was told, and has left the store.
        prop_assert!(world.stored.is_empty(), "{:?}", world.stored);
    }
}
