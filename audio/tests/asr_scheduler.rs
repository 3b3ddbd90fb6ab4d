//! The recognition queue, with decoders that the tests control.
#![allow(clippy::disallowed_methods, reason = "a test's own threads and channels end with it")]
#![cfg(feature = "asr")]

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use audio::asr::{
    Busy, DecodeJob, Error, Heard, Options, Priority, Report, Scheduler, SchedulerConfig, Shed, Transcribe,
    Transcription,
};
use audio::fair::Owner;

/// Waits for one instruction per job: "go" returns, "panic" panics, and an abort ends it.
struct Fake {
    started: mpsc::Sender<usize>,
    go: Arc<Mutex<mpsc::Receiver<&'static str>>>,
}

impl Transcribe for Fake {
    fn transcribe(&mut self, pcm: &[i16], options: &Options) -> Result<Transcription, Error> {
        self.started.send(pcm.len()).unwrap();
        let word = self.go.lock().unwrap().recv().unwrap();
        assert_ne!(word, "panic", "as told");
        if options.abort.as_ref().unwrap().load(Ordering::Relaxed) {
            return Err(Error::Cancelled);
        }
        Ok(Transcription {
            text: pcm.len().to_string(),
            heard: Heard::Speech,
            no_speech_probability: 0.0,
            mean_log_probability: 0.0,
            last_word_log_probability: 0.0,
            breaks_off: 0.0,
            audio_us: 0,
            decode_us: 0,
            context: 512,
            retried: false,
            language: None,
        })
    }
}

struct World {
    scheduler: Option<Scheduler>,
    go: mpsc::Sender<&'static str>,
    started: mpsc::Receiver<usize>,
    replies: mpsc::Receiver<(usize, Result<String, Error>)>,
    reply: mpsc::Sender<(usize, Result<String, Error>)>,
    made: Arc<AtomicUsize>,
}

impl World {
    fn new(workers: usize, queue_max: usize) -> Self {
        let (started_to, started) = mpsc::channel();
        let (go, told) = mpsc::channel();
        let (reply, replies) = mpsc::channel();
        let made = Arc::new(AtomicUsize::new(0));
        let (told, count) = (Arc::new(Mutex::new(told)), made.clone());
        let started_to = Mutex::new(started_to);
        let make = move || {
            count.fetch_add(1, Ordering::Relaxed);
            Ok(Fake { started: started_to.lock().unwrap().clone(), go: told.clone() })
        };
        let scheduler = Scheduler::start_with(SchedulerConfig { workers, queue_max }, make).unwrap();
        Self { scheduler: Some(scheduler), go, started, replies, reply, made }
    }

    /// A job identified by its number of samples, which is also that of its utterance.
    fn job(&self, id: usize, priority: Priority, owner: Owner) -> DecodeJob {
        let reply = self.reply.clone();
        let reply = move |report: Report| reply.send((id, report.result.map(|heard| heard.text))).unwrap();
        let (pcm, options, reply) = (Arc::new(vec![0_i16; id].into()), Options::default(), Box::new(reply));
        let utterance = (owner != Owner::NOBODY).then_some(id as u32);
        DecodeJob { pcm, options, priority, patient: false, owner, utterance, begun: None, reply }
    }

    /// Submits one that waits however many there are.
    fn submit_patient(&self, owner: Owner, id: usize, priority: Priority) -> Result<audio::asr::Ticket, Busy> {
        self.scheduler.as_ref().unwrap().submit(DecodeJob { patient: true, ..self.job(id, priority, owner) })
    }

    fn submit(&self, id: usize, priority: Priority) -> Result<audio::asr::Ticket, Busy> {
        self.submit_for(Owner::NOBODY, id, priority)
    }

    fn submit_for(&self, owner: Owner, id: usize, priority: Priority) -> Result<audio::asr::Ticket, Busy> {
        self.scheduler.as_ref().unwrap().submit(self.job(id, priority, owner))
    }

    /// Ends the running jobs one by one; the numbers of all, in the order in which they ended.
    fn finish(&self, count: usize) -> Vec<usize> {
        let next = |_| {
            self.go.send("go").unwrap();
            self.replies.recv().unwrap().0
        };
        (0..count).map(next).collect()
    }

    /// Submits a job and waits until it is being decoded.
    fn run(&self, id: usize, priority: Priority) -> audio::asr::Ticket {
        let ticket = self.submit(id, priority).unwrap();
        assert_eq!(self.started.recv().unwrap(), id);
        ticket
    }
}

#[test]
fn the_more_important_goes_first() {
    let world = World::new(1, 10);
    world.run(1, Priority::Final);
    world.submit(2, Priority::Speculative).unwrap();
    world.submit(3, Priority::Final).unwrap();
    world.submit(4, Priority::Speculative).unwrap();
    world.submit(5, Priority::Final).unwrap();
    let mut order = Vec::new();
    for _ in 0..5 {
        world.go.send("go").unwrap();
        let (id, result) = world.replies.recv().unwrap();
        assert_eq!(result.unwrap(), id.to_string());
        order.push(id);
    }
    assert_eq!(order, [1, 3, 5, 2, 4]);
}

#[test]
fn devices_take_turns() {
    let world = World::new(1, 10);
    let (noisy, quiet) = (Owner::unique(), Owner::unique());
    world.run(1, Priority::Final);
    for id in [2, 3, 4] {
        world.submit_for(noisy, id, Priority::Final).unwrap();
    }
    world.submit_for(quiet, 5, Priority::Final).unwrap();
    assert_eq!(world.finish(5), [1, 2, 5, 3, 4]);
}

#[test]
fn a_device_with_a_running_job_waits_for_the_others() {
    let world = World::new(2, 10);
    let (noisy, quiet) = (Owner::unique(), Owner::unique());
    for (id, priority) in [(1, Priority::Final), (2, Priority::Overheard)] {
        world.submit_for(noisy, id, priority).unwrap();
        assert_eq!(world.started.recv().unwrap(), id);
    }
    world.submit_for(noisy, 3, Priority::Final).unwrap();
    world.submit_for(quiet, 4, Priority::Final).unwrap();
    world.finish(1);
    assert_eq!(world.started.recv().unwrap(), 4);
    world.finish(3);
}

#[test]
fn the_requests_of_one_device_are_decoded_one_after_the_other() {
    for (before, behind) in [
        (Priority::Speculative, Priority::Final),
        (Priority::Final, Priority::Speculative),
        (Priority::Unsure, Priority::Unsure),
    ] {
        let world = World::new(2, 10);
        let (quick, other) = (Owner::unique(), Owner::unique());
        world.submit_for(quick, 1, before).unwrap();
        assert_eq!(world.started.recv().unwrap(), 1);
        world.submit_for(quick, 2, behind).unwrap();
        // The free thread is there for others.
        world.submit_for(other, 3, Priority::Overheard).unwrap();
        assert_eq!(world.started.recv().unwrap(), 3);
        assert_eq!(world.finish(1), [1]);
        assert_eq!(world.started.recv().unwrap(), 2);
        world.finish(2);
        // What is cancelled is not waited for.
        let cancelled = world.submit_for(quick, 4, before).unwrap();
        assert_eq!(world.started.recv().unwrap(), 4);
        world.submit_for(quick, 5, behind).unwrap();
        world.scheduler.as_ref().unwrap().cancel(&cancelled);
        assert_eq!(world.started.recv().unwrap(), 5);
        world.finish(2);
        // Nor is another decode of the same utterance, or of a later one.
        world.submit_for(quick, 7, before).unwrap();
        assert_eq!(world.started.recv().unwrap(), 7);
        let same = DecodeJob { utterance: Some(7), ..world.job(6, behind, quick) };
        world.scheduler.as_ref().unwrap().submit(same).unwrap();
        assert_eq!(world.started.recv().unwrap(), 6);
        world.finish(2);
        world.submit_for(quick, 9, before).unwrap();
        assert_eq!(world.started.recv().unwrap(), 9);
        world.submit_for(quick, 8, behind).unwrap();
        assert_eq!(world.started.recv().unwrap(), 8);
        world.finish(2);
    }
}

#[test]
fn the_translations_of_one_device_are_decoded_one_after_the_other() {
    let world = World::new(2, 10);
    let owner = Owner::unique();
    let submit = |id| {
        let job = world.job(id, Priority::SecondPass, owner);
        let options = Options { translate: true, ..Options::default() };
        world.scheduler.as_ref().unwrap().submit(DecodeJob { options, ..job }).unwrap();
    };
    submit(1);
    assert_eq!(world.started.recv().unwrap(), 1);
    submit(2);
    // A second pass does not wait for them.
    world.submit_for(owner, 3, Priority::SecondPass).unwrap();
    assert_eq!(world.started.recv().unwrap(), 3);
    assert_eq!(world.finish(1), [1]);
    assert_eq!(world.started.recv().unwrap(), 2);
    world.finish(2);
}

#[test]
fn a_request_that_has_to_wait_takes_no_thread_from_others() {
    let world = World::new(2, 10);
    let quick = Owner::unique();
    world.submit_for(quick, 1, Priority::Final).unwrap();
    assert_eq!(world.started.recv().unwrap(), 1);
    world.submit_for(quick, 2, Priority::Final).unwrap();
    world.submit_for(Owner::unique(), 3, Priority::Partial).unwrap();
    assert_eq!(world.started.recv().unwrap(), 3);
    world.submit_for(quick, 4, Priority::Final).unwrap();
    for _ in 0..4 {
        world.go.send("go").unwrap();
        let (id, result) = world.replies.recv().unwrap();
        assert_eq!(result.unwrap(), id.to_string(), "the partial, too, is decoded to its end");
    }
}

#[test]
fn the_doubtful_words_of_a_device_do_not_delay_its_request() {
    let world = World::new(2, 10);
    let owner = Owner::unique();
    for (id, priority) in [(1, Priority::Unsure), (2, Priority::Final)] {
        world.submit_for(owner, id, priority).unwrap();
        assert_eq!(world.started.recv().unwrap(), id);
    }
    world.finish(2);
}

#[test]
fn when_the_queue_is_full_a_device_with_several_jobs_makes_room() {
    let world = World::new(1, 3);
    let (noisy, quiet) = (Owner::unique(), Owner::unique());
    world.run(1, Priority::Final);
    for id in [2, 3, 4] {
        world.submit_for(noisy, id, Priority::Final).unwrap();
    }
    assert_eq!(world.submit_for(noisy, 5, Priority::Final).unwrap_err(), Busy::QueueFull);
    world.submit_for(quiet, 6, Priority::Final).unwrap();
    let (displaced, result) = world.replies.recv().unwrap();
    assert_eq!(displaced, 4, "its newest");
    assert!(matches!(result, Err(Error::Displaced)));
    // Both have a share now.
    assert_eq!(world.submit_for(quiet, 7, Priority::Final).unwrap_err(), Busy::QueueFull);
    assert_eq!(world.scheduler.as_ref().unwrap().shed().addressed, 3);
    assert_eq!(world.finish(4), [1, 2, 6, 3]);
}

#[test]
fn a_partial_needs_a_free_thread() {
    let world = World::new(2, 10);
    world.run(1, Priority::Final);
    world.run(2, Priority::Partial);
    assert_eq!(world.submit(3, Priority::Partial).unwrap_err(), Busy::NoThreadFree);
    for _ in 0..2 {
        world.go.send("go").unwrap();
        world.replies.recv().unwrap().1.unwrap();
    }
    world.run(4, Priority::Partial);
    world.go.send("go").unwrap();
    assert_eq!(world.replies.recv().unwrap().0, 4);
}

#[test]
fn owners_whose_partials_follow_one_another_take_turns() {
    let world = World::new(1, 10);
    let (one, other) = (Owner::unique(), Owner::unique());
    world.submit_for(one, 1, Priority::Partial).unwrap();
    assert_eq!(world.started.recv().unwrap(), 1);
    world.submit_for(other, 2, Priority::Partial).unwrap();
    assert_eq!(world.submit_for(other, 3, Priority::Partial).unwrap_err(), Busy::NoThreadFree, "its own waits");
    assert_eq!(world.submit_for(one, 4, Priority::Partial).unwrap_err(), Busy::NoThreadFree, "its own is in work");
    assert_eq!(world.finish(1), [1]);
    // Whoever has had a turn comes after those that wait, however soon it asks for the next one.
    world.submit_for(one, 5, Priority::Partial).unwrap();
    assert_eq!(world.started.recv().unwrap(), 2);
    assert_eq!(world.finish(1), [2]);
    world.submit_for(other, 6, Priority::Partial).unwrap();
    assert_eq!(world.finish(2), [5, 6]);
    // One beside its own in work is no loss.
    assert_eq!(world.scheduler.as_ref().unwrap().shed(), Shed { partial: 1, ..Shed::default() });
}

#[test]
fn a_partial_that_waits_comes_after_all_others_and_takes_no_place_of_theirs() {
    let world = World::new(1, 2);
    world.run(1, Priority::Partial);
    world.submit_for(Owner::unique(), 2, Priority::Partial).unwrap();
    world.submit(3, Priority::SecondPass).unwrap();
    world.submit(4, Priority::Final).unwrap();
    let late = world.submit_for(Owner::unique(), 5, Priority::Partial);
    assert_eq!(late.unwrap_err(), Busy::NoThreadFree, "others wait");
    world.go.send("go").unwrap();
    let (id, result) = world.replies.recv().unwrap();
    assert!(id == 1 && matches!(result, Err(Error::Cancelled)), "{id}: {result:?}");
    assert_eq!(world.finish(3), [4, 3, 2]);
    // The one that was stopped, and the one that was refused.
    assert_eq!(world.scheduler.as_ref().unwrap().shed(), Shed { partial: 2, ..Shed::default() });
}

#[test]
fn a_partial_does_not_wait_for_threads_that_work_on_something_else() {
    let world = World::new(2, 10);
    world.run(1, Priority::Final);
    world.run(2, Priority::Partial);
    world.submit_for(Owner::unique(), 3, Priority::Partial).unwrap();
    let ticket = world.submit(4, Priority::Final).unwrap();
    world.scheduler.as_ref().unwrap().cancel(&ticket);
    assert_eq!(world.replies.recv().unwrap().0, 4);
    // The one in work was told to stop for it all the same.
    world.finish(1);
    assert_eq!(world.started.recv().unwrap(), 3);
    world.finish(2);
    world.run(5, Priority::Final);
    world.run(6, Priority::Final);
    let refused = world.submit_for(Owner::unique(), 7, Priority::Partial);
    assert_eq!(refused.unwrap_err(), Busy::NoThreadFree);
    world.finish(2);
}

#[test]
fn the_partials_that_wait_are_bounded() {
    let world = World::new(1, 2);
    world.run(1, Priority::Partial);
    let mut waiting = 0;
    while world.submit_for(Owner::unique(), 2 + waiting, Priority::Partial).is_ok() {
        waiting += 1;
    }
    assert_eq!(waiting, 32);
    assert_eq!(world.finish(1 + waiting), (1..=1 + waiting).collect::<Vec<_>>());
}

#[test]
fn a_running_partial_gives_way() {
    let world = World::new(1, 10);
    world.run(1, Priority::Partial);
    world.submit(2, Priority::Final).unwrap();
    world.go.send("go").unwrap();
    let (id, result) = world.replies.recv().unwrap();
    assert!(id == 1 && matches!(result, Err(Error::Cancelled)), "{id}: {result:?}");
    world.go.send("go").unwrap();
    assert_eq!(world.replies.recv().unwrap().1.unwrap(), "2");
}

#[test]
fn the_queue_is_bounded_and_a_final_displaces_a_guess() {
    let world = World::new(1, 2);
    world.run(1, Priority::Final);
    world.submit(2, Priority::Speculative).unwrap();
    world.submit(3, Priority::Speculative).unwrap();
    assert_eq!(world.submit(4, Priority::Speculative).unwrap_err(), Busy::QueueFull);
    world.submit(5, Priority::Final).unwrap();
    let (id, result) = world.replies.recv().unwrap();
    assert!(id == 3 && matches!(result, Err(Error::Displaced)), "{id}: {result:?}");
    world.submit(6, Priority::Final).unwrap();
    assert_eq!(world.replies.recv().unwrap().0, 2);
    assert_eq!(world.submit(7, Priority::Final).unwrap_err(), Busy::QueueFull);
    assert_eq!(world.scheduler.as_ref().unwrap().load(), (2, 1));
    for expected in [1, 5, 6] {
        world.go.send("go").unwrap();
        assert_eq!(world.replies.recv().unwrap().0, expected);
    }
}

#[test]
fn a_full_queue_leaves_out_what_matters_least_and_counts_it() {
    use Priority::{Final, Overheard, Partial, SecondPass, Speculative, Unsure};
    let world = World::new(1, 4);
    let scheduler = world.scheduler.as_ref().unwrap();
    world.run(1, Final);
    assert_eq!(world.submit(2, Partial).unwrap_err(), Busy::NoThreadFree);
    world.submit(3, SecondPass).unwrap();
    assert_eq!(
        world.submit(4, SecondPass).unwrap_err(),
        Busy::QueueFull,
        "by its turn nobody would wait for it any more"
    );
    world.submit(5, Overheard).unwrap();
    world.submit(6, Unsure).unwrap();
    world.submit(7, Overheard).unwrap();
    assert_eq!(scheduler.shed(), Shed { partial: 1, second_pass: 1, ..Shed::default() });
    // The queue is full. Each job displaces the one of lowest priority, and among equals the latest.
    for (id, priority, out) in [
        (8, Overheard, Some(3)),
        (9, Overheard, None),
        (10, Speculative, Some(8)),
        (11, Speculative, Some(7)),
        (12, Unsure, Some(5)),
        (13, Unsure, None),
        (14, Final, Some(12)),
        (15, Final, Some(6)),
        (16, Final, Some(11)),
        (17, Final, Some(10)),
        (18, Final, None),
        (19, Overheard, None),
    ] {
        match out {
            None => assert_eq!(world.submit(id, priority).unwrap_err(), Busy::QueueFull, "{id}"),
            Some(out) => {
                world.submit(id, priority).unwrap();
                let (displaced, result) = world.replies.recv().unwrap();
                assert!(displaced == out && matches!(result, Err(Error::Displaced)), "{id}: {displaced} {result:?}");
            }
        }
    }
    let expected = Shed { partial: 1, second_pass: 2, overheard: 5, unsure: 3, addressed: 3 };
    assert_eq!(scheduler.shed(), expected);
    for expected in [1, 14, 15, 16, 17] {
        world.go.send("go").unwrap();
        assert_eq!(world.replies.recv().unwrap().0, expected);
    }
    assert_eq!(scheduler.shed().addressed, 3, "what is decoded is not left out");
}

#[test]
fn the_patient_wait_beyond_the_queue_in_the_order_in_which_they_came() {
    let world = World::new(1, 2);
    world.run(1, Priority::Final);
    for id in 2..=6 {
        world.submit_patient(Owner::unique(), id, Priority::Unsure).unwrap();
    }
    // They take no place. Who comes later passes none of them, and displaces none.
    assert_eq!(world.submit(7, Priority::SecondPass).unwrap_err(), Busy::QueueFull, "too many wait before it");
    for id in [10, 11] {
        world.submit_for(Owner::unique(), id, Priority::Overheard).unwrap();
    }
    assert_eq!(world.submit_for(Owner::unique(), 7, Priority::Overheard).unwrap_err(), Busy::QueueFull);
    world.submit_patient(Owner::unique(), 8, Priority::Unsure).unwrap();
    assert_eq!(world.finish(4), [1, 2, 3, 4]);
    world.submit_patient(Owner::unique(), 9, Priority::Unsure).unwrap();
    assert_eq!(world.finish(6), [5, 6, 8, 9, 10, 11]);
    let expected = Shed { overheard: 1, second_pass: 1, ..Shed::default() };
    assert_eq!(world.scheduler.as_ref().unwrap().shed(), expected);
}

#[test]
fn the_patient_keep_nothing_more_important_out_and_displace_nothing() {
    let world = World::new(1, 2);
    world.run(1, Priority::Final);
    for id in 2..=4 {
        world.submit_patient(Owner::unique(), id, Priority::Unsure).unwrap();
    }
    world.submit(5, Priority::Overheard).unwrap();
    world.submit(6, Priority::Speculative).unwrap();
    for id in [7, 8] {
        world.submit_patient(Owner::unique(), id, Priority::Final).unwrap();
    }
    assert_eq!(world.scheduler.as_ref().unwrap().shed(), Shed::default());
    world.submit(9, Priority::Speculative).unwrap();
    let (id, result) = world.replies.recv().unwrap();
    assert!(id == 5 && matches!(result, Err(Error::Displaced)), "{id}: {result:?}");
    assert_eq!(world.submit(10, Priority::Speculative).unwrap_err(), Busy::QueueFull);
    assert_eq!(world.finish(8), [1, 7, 8, 6, 9, 2, 3, 4]);
}

#[test]
fn a_job_that_becomes_patient_keeps_its_turn_and_gives_up_its_place() {
    let world = World::new(1, 2);
    let scheduler = world.scheduler.as_ref().unwrap();
    let running = world.run(1, Priority::Final);
    let first = world.submit_for(Owner::unique(), 2, Priority::Unsure).unwrap();
    world.submit_patient(Owner::unique(), 3, Priority::Unsure).unwrap();
    world.submit_for(Owner::unique(), 4, Priority::Unsure).unwrap();
    scheduler.promote(&first, Priority::Unsure);
    world.submit_for(Owner::unique(), 5, Priority::Unsure).unwrap();
    // What is more important displaces the others, and not what has become patient.
    for (id, out) in [(6, 5), (7, 4)] {
        let ticket = world.submit_for(Owner::unique(), id, Priority::Speculative).unwrap();
        assert_eq!(world.replies.recv().unwrap().0, out);
        if id == 7 {
            scheduler.promote(&ticket, Priority::Final);
        }
    }
    world.submit_for(Owner::unique(), 8, Priority::Speculative).unwrap();
    assert_eq!(world.submit_for(Owner::unique(), 9, Priority::Speculative).unwrap_err(), Busy::QueueFull);
    // It does not concern what runs.
    scheduler.promote(&running, Priority::Final);
    assert_eq!(world.finish(6), [1, 7, 6, 8, 2, 3]);
}

#[test]
fn no_more_of_a_devices_jobs_become_patient_than_it_may_have() {
    let world = World::new(1, 1);
    let noisy = Owner::unique();
    world.run(1, Priority::Final);
    for id in 2..10 {
        world.submit_patient(noisy, id, Priority::Final).unwrap();
    }
    let ticket = world.submit_for(noisy, 10, Priority::Unsure).unwrap();
    world.scheduler.as_ref().unwrap().promote(&ticket, Priority::Unsure);
    world.submit(11, Priority::Speculative).unwrap();
    assert_eq!(world.replies.recv().unwrap().0, 10, "displaced as before");
    assert_eq!(world.finish(10), [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
}

#[test]
fn the_patient_jobs_of_one_device_are_bounded_and_delay_others_by_one() {
    let world = World::new(1, 2);
    let (noisy, quiet) = (Owner::unique(), Owner::unique());
    world.run(1, Priority::Final);
    for id in 2..10 {
        world.submit_patient(noisy, id, Priority::Final).unwrap();
    }
    assert_eq!(world.submit_patient(noisy, 10, Priority::Final).unwrap_err(), Busy::QueueFull);
    world.submit_patient(quiet, 11, Priority::Final).unwrap();
    assert_eq!(world.finish(10), [1, 2, 11, 3, 4, 5, 6, 7, 8, 9]);
}

#[test]
fn jobs_are_cancelled_waiting_and_running() {
    let world = World::new(1, 10);
    let running = world.run(1, Priority::Final);
    let waiting = world.submit(2, Priority::Speculative).unwrap();
    let scheduler = world.scheduler.as_ref().unwrap();
    scheduler.cancel(&waiting);
    let (id, result) = world.replies.recv().unwrap();
    assert!(id == 2 && matches!(result, Err(Error::Cancelled)), "{id}: {result:?}");
    scheduler.cancel(&running);
    world.go.send("go").unwrap();
    let (id, result) = world.replies.recv().unwrap();
    assert!(id == 1 && matches!(result, Err(Error::Cancelled)), "{id}: {result:?}");
    // No effect on jobs that have ended, nor on later jobs.
    scheduler.cancel(&running);
    scheduler.cancel(&waiting);
    world.run(3, Priority::Final);
    world.go.send("go").unwrap();
    assert_eq!(world.replies.recv().unwrap().1.unwrap(), "3");
}

#[test]
fn a_panic_costs_one_job_and_its_decoder() {
    let world = World::new(1, 10);
    world.run(1, Priority::Final);
    world.go.send("panic").unwrap();
    assert!(matches!(world.replies.recv().unwrap(), (1, Err(Error::Panicked))));
    // A panicking reply does not harm the other jobs.
    let mut job = world.job(2, Priority::Final, Owner::NOBODY);
    job.reply = Box::new(|_| panic!("as told"));
    world.scheduler.as_ref().unwrap().submit(job).unwrap();
    world.go.send("go").unwrap();
    world.submit(3, Priority::Final).unwrap();
    world.go.send("go").unwrap();
    assert_eq!(world.replies.recv().unwrap().1.unwrap(), "3");
    assert_eq!(world.made.load(Ordering::Relaxed), 2);
}

#[test]
fn going_away_answers_everybody() {
    let mut world = World::new(1, 10);
    world.run(1, Priority::Final);
    world.submit(2, Priority::Final).unwrap();
    world.submit(3, Priority::Speculative).unwrap();
    // The running job checks its flag only when instructed; the instruction is queued for it.
    let scheduler = world.scheduler.take().unwrap();
    let closing = std::thread::spawn(move || drop(scheduler));
    let (first, second) = (world.replies.recv().unwrap(), world.replies.recv().unwrap());
    for (id, result) in [first, second] {
        assert!(id != 1 && matches!(result, Err(Error::ShuttingDown)), "{id}: {result:?}");
    }
    world.go.send("go").unwrap();
    assert!(matches!(world.replies.recv().unwrap(), (1, Err(Error::Cancelled))));
    closing.join().unwrap();
}
