//! `lorgnette status`.

use anyhow::{Result, bail};

use crate::{
    config::Config,
    control::{
        Answer, Request,
        client::ask,
        status::{Latency, LeftOut, Queue, Recogniser, Status},
    },
    discovery::state::Announced,
    speech::wake::WakeTally,
    text::in_one_line,
    units::{ago, bytes, number_of},
};

/// Show the state of the gateway: sessions, users, models, recognition, MCP servers, disk.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// One JSON object.
    #[arg(long)]
    json: bool,
}

pub(super) fn run(config: &Config, arguments: &Arguments) -> Result<()> {
    let Answer::Status { status } = ask(&config.data_dir, &Request::Status)? else {
        bail!("unexpected answer");
    };
    if arguments.json {
        println!("{}", serde_json::to_string(&status)?);
    } else {
        show(&status);
    }
    match wrong(&status) {
        0 => Ok(()),
        count => bail!("{} above", number_of(count, "problem")),
    }
}

/// Decodes that were skipped for lack of time, if any.
fn left_out(heard: &Recogniser) -> Option<String> {
    let LeftOut { partial, second_pass, overheard, unsure, addressed } = heard.left_out;
    let (lost, others) = heard.lost;
    let none = heard.left_out == LeftOut::default() && heard.lost == (0, 0);
    (!none).then(|| {
        format!(
            "left out since the start: {partial} partial, {second_pass} second passes, {overheard} overheard, {unsure} unsure, \
             {addressed} addressed; lost: {lost} sentences to the assistant, {others} others"
        )
    })
}

/// What came of listening for wake phrases in the sound.
fn wake_words(tally: &WakeTally) -> String {
    let WakeTally { heard, verified, vetoed, unheard, skipped } = tally;
    format!(
        "heard in the sound {heard} times, {verified} verified and {vetoed} denied by the text; sentences not transcribed: \
         {unheard}; not listened to in full: {skipped}"
    )
}

fn show(status: &Status) {
    let quic = status.quic.as_deref().unwrap_or("off");
    println!("lorgnette {}, up for {}, {}", status.version, ago(status.up_s), verdict(status));
    println!("gateway     {}", status.fingerprint);
    for problem in &status.problems {
        println!("PROBLEM     {}: {}", problem.part, problem.why);
    }
    if status.damaged > 0 {
        println!("DAMAGED     {} records; stop the gateway and run `lorgnette check --store`", status.damaged);
    }
    println!("listens     web {}, quic {quic}", status.web);
    if let Some(announced) = &status.announced {
        println!("announced   {}", on_network(announced));
    }
    let waiting = if status.waiting == 0 { String::new() } else { format!(", {} wait for pairing", status.waiting) };
    println!("sessions    {} of {}{waiting}", status.sessions.len(), status.sessions_max);
    for (user, name, session) in &status.sessions {
        let (name, user) = (in_one_line(name), in_one_line(user));
        println!("            {name} (user {user}), {}", super::devices::session(session));
    }
    println!("users       {} of {}", status.users, status.users_max);
    println!("speed       {}", speed(status.latency.as_ref()));
    println!("answers     {}", status.models.join(", then "));
    let heard = &status.recogniser;
    println!(
        "recognition {}: {} of {} busy, {} waiting",
        heard.model,
        heard.running,
        number_of(heard.workers, "thread"),
        heard.waiting
    );
    if let Some(line) = left_out(heard) {
        println!("            {line}");
    }
    if let Some(tally) = &heard.wake {
        println!("wake words  {}", wake_words(tally));
    }
    for engine in &status.elsewhere {
        println!("engine      {}", in_one_line(&engine.to_string()));
    }
    println!("tools       {}, revision {}", status.tools, status.tools_revision);
    println!("apps        {} installed, {} running", status.apps, status.apps_running);
    if status.questions > 0 {
        println!("questions   {} open; `lorgnette approvals list` shows them", status.questions);
    }
    if status.mcp.is_empty() {
        println!("mcp         no servers");
    }
    for server in &status.mcp {
        println!("mcp         {}", super::mcp::line(server));
    }
    if let Some((used, most)) = status.store {
        println!("store       {} of {}", bytes(used), bytes(most));
    }
    if let Some((free, all)) = status.disk {
        println!("disk        {} free of {}, for {}", bytes(free), bytes(all), in_one_line(&status.data_dir));
    }
    if let Some(line) = host_metrics(status) {
        println!("box         {line}");
    }
    if let Some((open, most)) = status.descriptors {
        println!("files       {open} of {most} descriptors open");
    }
    println!("sound       {}", packets(status.sound));
    if let Some(line) = queues(&status.queues) {
        println!("queues      {line}");
    }
}

/// How glasses find it without its address.
fn on_network(announced: &Announced) -> String {
    match announced {
        Announced::As(name) => format!("on the network as {}", in_one_line(name)),
        Announced::Soon => "soon".to_owned(),
        Announced::Not(why) => format!("NOT: {}", in_one_line(why)),
    }
}

/// The box in numbers, where the system tells any.
fn host_metrics(status: &Status) -> Option<String> {
    let load = status.load.map(|[one, five, _]| format!("load {one:.1}, {five:.1} of {} cores", status.cores));
    let memory = status.memory.map(|memory| {
        let [available, total, own] = [memory.available_bytes, memory.total_bytes, memory.gateway_bytes].map(bytes);
        format!("memory {available} of {total} available, the gateway has {own}")
    });
    let temperature = status.temperature_c.map(|degrees| format!("{degrees:.0} °C"));
    let parts: Vec<String> = [load, memory, temperature].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// How many things are wrong: the problems, and damaged records as one, however many they are.
fn wrong(status: &Status) -> usize {
    status.problems.len() + usize::from(status.damaged > 0)
}

/// In one word, or how many things are wrong.
fn verdict(status: &Status) -> String {
    match wrong(status) {
        0 => "all is well".to_owned(),
        1 => "ONE PROBLEM".to_owned(),
        count => format!("{count} PROBLEMS"),
    }
}

/// How long wearers wait for an answer.
fn speed(latency: Option<&Latency>) -> String {
    let Some(Latency { turns, median_ms, p90_ms }) = latency else {
        return "nobody has spoken since the start".to_owned();
    };
    let seconds = |ms: u64| ms as f64 / 1_000.0;
    let (median, p90) = (seconds(*median_ms), seconds(*p90_ms));
    format!("answers begin {median:.2} s after the last word, nine of ten within {p90:.2} s (spoken turns: {turns})")
}

/// Packets of sound in ended sessions.
fn packets((heard, lost): (u64, u64)) -> String {
    format!("{heard} packets heard and {lost} lost in sessions that have ended")
}

/// Queues with waiting or refused entries.
fn queues(queues: &[Queue]) -> Option<String> {
    let told = queues.iter().filter(|queue| queue.waiting > 0 || queue.refused > 0);
    let told: Vec<String> = told
        .map(|Queue { name, waiting, refused }| format!("{name}: {waiting} waiting, {refused} refused since the start"))
        .collect();
    (!told.is_empty()).then(|| told.join("; "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queues_are_shown_where_something_waits_or_was_refused() {
        let queue = |name: &str, waiting, refused| Queue { name: name.to_owned(), waiting, refused };
        assert_eq!(queues(&[queue("files", 0, 0)]), None);
        assert_eq!(
            queues(&[queue("files", 0, 3), queue("synthesis", 0, 0), queue("long reads", 1, 0)]).as_deref(),
            Some("files: 0 waiting, 3 refused since the start; long reads: 1 waiting, 0 refused since the start")
        );
        assert_eq!(packets((50, 2)), "50 packets heard and 2 lost in sessions that have ended");
    }

    #[test]
    fn damaged_records_are_a_problem_of_their_own() {
        let status = |problems: usize, damaged: usize| -> Status {
            let problem = serde_json::json!({"part": "disk", "why": "it is full"});
            let recogniser = serde_json::json!({"model": "m", "workers": 1, "running": 0, "waiting": 0});
            let status = serde_json::json!({
                "version": "1", "up_s": 1, "web": "127.0.0.1:8460", "problems": vec![problem; problems], "sessions": [],
                "sessions_max": 1, "waiting": 0, "users": 0, "users_max": 1, "questions": 0, "models": [],
                "recogniser": recogniser, "mcp": [], "apps": 0, "apps_running": 0, "damaged": damaged,
            });
            serde_json::from_value(status).unwrap()
        };
        for (problems, damaged, count, words) in
            [(0, 0, 0, "all is well"), (0, 7, 1, "ONE PROBLEM"), (1, 0, 1, "ONE PROBLEM"), (1, 7, 2, "2 PROBLEMS")]
        {
            let status = status(problems, damaged);
            assert_eq!((wrong(&status), verdict(&status).as_str()), (count, words));
        }
    }

    #[test]
    fn it_is_shown_how_glasses_find_the_gateway() {
        assert_eq!(on_network(&Announced::As("Hearth".to_owned())), "on the network as Hearth");
        assert_eq!(on_network(&Announced::Not("no interface is up".to_owned())), "NOT: no interface is up");
    }

    #[test]
    fn the_wait_for_an_answer_is_in_seconds() {
        assert_eq!(speed(None), "nobody has spoken since the start");
        assert_eq!(
            speed(Some(&Latency { turns: 12, median_ms: 674, p90_ms: 1_083 })),
            "answers begin 0.67 s after the last word, nine of ten within 1.08 s (spoken turns: 12)"
        );
    }

    #[test]
    fn what_was_left_out_is_shown_where_it_was_anything() {
        let mut heard = Recogniser {
            model: "m".to_owned(),
            workers: 2,
            running: 0,
            waiting: 0,
            left_out: LeftOut::default(),
            wake: None,
            lost: (0, 0),
        };
        assert_eq!(left_out(&heard), None);
        heard.left_out = LeftOut { partial: 5, second_pass: 4, overheard: 3, unsure: 2, addressed: 1 };
        heard.lost = (1, 2);
        assert_eq!(
            left_out(&heard).as_deref(),
            Some(
                "left out since the start: 5 partial, 4 second passes, 3 overheard, 2 unsure, 1 addressed; \
                 lost: 1 sentences to the assistant, 2 others"
            )
        );
    }
}
