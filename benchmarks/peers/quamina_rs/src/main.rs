//! The quamina crate on the benchmark's files; the contract is in `peers/README.md`.

mod pattern;

use quamina::Quamina;
use serde_json::{Value, json};
use std::fs::{File, read_to_string};
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

// It takes events as JSON text: reading them is part of its times.
type Event = String;

struct Options {
    directory: PathBuf,
    load_limit: f64,
    match_limit: f64,
}

fn options() -> Options {
    let mut found = Options { directory: PathBuf::new(), load_limit: 120.0, match_limit: 20.0 };
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        let mut number = || arguments.next().and_then(|text| text.parse().ok()).expect("a number of seconds");
        match argument.as_str() {
            "--load-limit" => found.load_limit = number(),
            "--match-limit" => found.match_limit = number(),
            _ => found.directory = PathBuf::from(argument),
        }
    }
    found
}

fn resident() -> u64 {
    let status = read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:"));
    line.and_then(|line| line.split_whitespace().nth(1)?.parse::<u64>().ok()).unwrap_or(0) * 1024
}

enum Loaded {
    All,
    TooSlow,
    Inexpressible(String),
}

fn load(tree: &mut Quamina<u64>, path: &Path, limit: f64) -> Loaded {
    let started = Instant::now();
    let lines = BufReader::new(File::open(path).expect("subscriptions.jsonl")).lines();
    for (id, line) in lines.enumerate() {
        let subscription: Value = serde_json::from_str(&line.expect("a line")).expect("JSON");
        let text = match pattern::render(&subscription["tree"]) {
            Ok(text) => text,
            Err(reason) => return Loaded::Inexpressible(reason),
        };
        if let Err(error) = tree.add_pattern(id as u64, &text) {
            return Loaded::Inexpressible(format!("{text}: {error}"));
        }
        if id % 128 == 0 && started.elapsed().as_secs_f64() > limit {
            return Loaded::TooSlow;
        }
    }
    Loaded::All
}

fn count(tree: &Quamina<u64>, event: &Event) -> usize {
    tree.matches_for_event(event.as_bytes()).expect("an event").len()
}

fn latencies(tree: &Quamina<u64>, events: &[Event], limit: f64) -> (Vec<Duration>, usize) {
    let started = Instant::now();
    let (mut times, mut matches) = (Vec::new(), 0);
    for event in events {
        let start = Instant::now();
        matches += count(tree, event);
        times.push(start.elapsed());
        if started.elapsed().as_secs_f64() > limit {
            break;
        }
    }
    (times, matches)
}

fn two_threads(tree: &Quamina<u64>, events: &[Event], limit: f64) -> f64 {
    let started = Instant::now();
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let next = AtomicUsize::new(0);
        let start = Instant::now();
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while let Some(event) = events.get(next.fetch_add(1, Ordering::Relaxed)) {
                        std::hint::black_box(count(tree, event));
                    }
                });
            }
        });
        best = best.min(start.elapsed().as_secs_f64());
        if started.elapsed().as_secs_f64() > limit {
            break;
        }
    }
    best
}

fn main() {
    let options = options();
    let mut tree = Quamina::<u64>::new();
    let before = resident();
    let start = Instant::now();
    let loaded = load(&mut tree, &options.directory.join("subscriptions.jsonl"), options.load_limit);
    let load_seconds = start.elapsed().as_secs_f64();
    match loaded {
        Loaded::TooSlow => {
            println!("{}", json!({"peer": "quamina_rs", "error": format!("could not load in {} s", options.load_limit)}));
            return;
        }
        Loaded::Inexpressible(reason) => {
            println!("{}", json!({"peer": "quamina_rs", "skipped": format!("not expressible: {reason}")}));
            return;
        }
        Loaded::All => {}
    }
    let rss = resident().saturating_sub(before);
    let lines = BufReader::new(File::open(options.directory.join("events.jsonl")).expect("events.jsonl")).lines();
    let events: Vec<Event> = lines.map(|line| line.expect("a line")).collect();
    let (mut times, matches) = latencies(&tree, &events, options.match_limit / 2.0);
    let done = times.len();
    let seconds = two_threads(&tree, &events[..done], options.match_limit / 2.0);
    times.sort();
    let micros = |at: usize| times[at.min(done - 1)].as_secs_f64() * 1e6;
    println!(
        "{}",
        json!({
            "peer": "quamina_rs",
            "version": "quamina 0.7.0 (Rust)",
            "load_seconds": load_seconds,
            "rss_bytes": rss,
            "events": done,
            "matches": matches,
            "seconds": seconds,
            "events_per_second": done as f64 / seconds,
            "p50_us": micros(done / 2),
            "p99_us": micros(done * 99 / 100),
        })
    );
}
