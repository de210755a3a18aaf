//! What the figures of microcaching are made of, and how they are judged.
#![allow(clippy::unwrap_used)]
use super::*;
use crate::measure::load::Answer;

fn answers_of(waits: &[(u64, u64)], start: Instant) -> Loop {
    let at = |ms| start + Duration::from_millis(ms);
    let answer = |(sent, done): &(u64, u64)| Answer {
        sent: at(*sent),
        first_byte: at(*done),
        done: at(*done),
        status: 200,
        rendering: None,
    };
    let answers = waits.iter().map(answer).collect();
    Loop { answers, took: Duration::from_secs(1), load_cpu: Duration::ZERO }
}

#[test]
fn pauses_are_taken_off_each_wait_and_the_longest_that_is_left_is_judged() {
    let start = Instant::now();
    // The longest wait is a pause, all but 2 ms; the next one, 7 ms, saw none.
    let done = answers_of(&[(0, 100), (200, 230), (200, 232), (300, 307), (400, 401)], start);
    let pauses = Pauses::of(start, &[(50, 60), (190, 215), (210, 230), (900, 999)]);
    let watched = figures(&done, &[], Some(&pauses)).unwrap();
    let machine = Machine { longest_without_ms: 7.0, pauses: 2, longest_pause_ms: 40.0, all_pauses_ms: 50.0 };
    assert_eq!(watched.machine, Some(machine));
    assert_eq!((watched.longest_ms, watched.longest_judged_ms()), (32.0, 7.0));
    let unwatched = figures(&done, &[], None).unwrap();
    assert_eq!((unwatched.machine, unwatched.longest_judged_ms()), (None, 32.0));
}

#[test]
fn the_target_names_what_it_is_judged_by() {
    let done = answers_of(&[(0, 1), (200, 232)], Instant::now());
    let check = |pauses: Option<&Pauses>, expected: (&str, &str, bool)| {
        let mut row = figures(&done, &[], pauses).unwrap();
        row.targets = Some(Targets { origin_requests: 1, oldest_age_s: None });
        let judged = judge(&[row]);
        let longest = judged.iter().find(|judged| judged.target.starts_with("longest")).unwrap();
        assert_eq!((longest.target.as_str(), longest.figure.as_str(), longest.holds), expected);
    };
    check(None, ("longest wait after the first answer under 20 ms", "32.0 ms", false));
    let pauses = Pauses::of(done.answers.first().unwrap().sent, &[(200, 220)]);
    let without = "longest wait after the first answer under 20 ms, without the machine's pauses";
    check(Some(&pauses), (without, "12.0 ms", true));
}

#[test]
fn waits_before_the_first_answer_do_not_count_as_longest_and_age_runs_from_the_rendering() {
    let start = Instant::now();
    let at = |ms| start + Duration::from_millis(ms);
    let answer = |sent, first, done, rendering| Answer {
        sent: at(sent),
        first_byte: at(first),
        done: at(done),
        status: 200,
        rendering: Some(rendering),
    };
    let answers = vec![answer(0, 180, 180, 0), answer(0, 190, 400, 0), answer(200, 205, 210, 0)];
    let done = Loop { answers, took: Duration::from_secs(1), load_cpu: Duration::ZERO };
    let figures = figures(&done, &[Some(at(170))], None).unwrap();
    assert_eq!((figures.longest_ms, figures.oldest_s), (10.0, 0.035));
    assert_eq!(figures.requests, 3);
}

#[test]
fn ab_is_read_and_its_failures_refuse_it() {
    let text = "Failed requests:        0\nRequests per second:    2185.20 [#/sec] (mean)\n";
    assert_eq!(read_ab(text).unwrap().to_bits(), 2185.2_f64.to_bits());
    assert!(read_ab(&text.replace("    0\n", "    3\n")).is_err());
    assert!(read_ab(&format!("{text}Non-2xx responses:      4\n")).is_err());
    assert!(read_ab("").is_err());
}
