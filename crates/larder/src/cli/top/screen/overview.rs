//! The tab *overview*: who answers, how that went over time, why the rest was no hit, and how the origins are.
//!
//! In: the view. Out: results with bars on the left, pictures over time on the right, and below them the most frequent reasons and the servers. A higher window has
//! more rows of these, and higher pictures.

use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

use super::look::{ScreenLook, write};
use super::numbers::{UNKNOWN, rate, share, size, span};
use super::origins;
use super::table::{ScreenCell, ScreenColumn, ScreenRow, ScreenTable};
use super::why::reasons;
use crate::cli::top::choice::RowChoice;
use crate::cli::top::figures::scoped;
use crate::cli::top::state::TopView;
use crate::cli::top::stats::{each, word};

/// Every result, in the order of what they cost.
pub(super) const RESULTS: [&str; 9] =
    ["memory", "disk", "file", "remote", "stale", "joined", "asked", "own", "refused"];
const BAR: &str = "\u{2588}";
/// Heights of a column, in eighths of a line.
const EIGHTHS: [&str; 9] =
    [" ", "\u{2581}", "\u{2582}", "\u{2583}", "\u{2584}", "\u{2585}", "\u{2586}", "\u{2587}", "\u{2588}"];
/// Where nothing is known.
const GAP: &str = "\u{b7}";

pub(super) fn draw(frame: &mut Frame<'_>, area: Rect, view: &TopView, look: ScreenLook) {
    let buffer = frame.buffer_mut();
    let upper = u16::try_from(RESULTS.len() + 1).unwrap_or(10).max(area.height / 2).min(area.height);
    let left = area.width / 2;
    results(buffer, Rect { width: left, height: upper, ..area }, view, look);
    let right = Rect { x: area.x + left, width: area.width - left, height: upper, ..area };
    pictures(buffer, right, view, look);
    let lower = Rect { y: area.y + upper, height: area.height - upper, ..area };
    if lower.height < 3 {
        return;
    }
    whys(buffer, Rect { width: left, ..lower }, view, look);
    servers(buffer, Rect { x: area.x + left, width: area.width - left, ..lower }, view, look);
}

fn results(buffer: &mut Buffer, area: Rect, view: &TopView, look: ScreenLook) {
    let head = format!("{:<8} {:>7} {:>5}", "RESULT", "/s", "%");
    let x = write(buffer, area.x + 1, area.y, area.width - 1, &head, look.faint());
    let bars = area.x + 24;
    if view.is_beside {
        write(buffer, x + 1, area.y, area.right().saturating_sub(x + 1), " 1 h AGO", look.faint());
    }
    let all = view.recent.value("requests");
    for (word, y) in RESULTS.iter().zip(area.y + 1..area.bottom()) {
        let name = format!("result.{word}");
        let of = view.recent.value(&name);
        let style = if of > 0.0 { look.result(word) } else { look.faint() };
        write(buffer, area.x + 1, y, 8, word, style);
        let figures = format!("{:>7} {:>5}", rate(of), share(of, all));
        write(buffer, area.x + 10, y, 14, &figures, look.plain());
        if view.is_beside {
            let then = view.hour_ago().map(|before| before.get(&name).copied().unwrap_or_default());
            let then = then.map_or_else(|| UNKNOWN.to_owned(), rate);
            write(buffer, area.x + 25, y, 7, &format!("{then:>7}"), look.faint());
        }
        let begin = if view.is_beside { bars + 9 } else { bars };
        let room = area.right().saturating_sub(begin + 1);
        let filled = if all > 0.0 { (of / all * f64::from(room)).round() } else { 0.0 };
        // A little is not nothing.
        let filled = if of > 0.0 { (filled as usize).clamp(1, usize::from(room).max(1)) } else { 0 };
        write(buffer, begin, y, room, &BAR.repeat(filled.min(usize::from(room))), look.result(word));
    }
}

fn pictures(buffer: &mut Buffer, area: Rect, view: &TopView, look: ScreenLook) {
    let latency = |name: &str| span(view.recent.known(&format!("latency:all:{name}")));
    let window = view.window.word();
    let all = [
        ("requests", format!("requests/s, {window}"), rate as fn(f64) -> String, "memory"),
        ("result.asked", "asked of the origin/s".to_owned(), rate, "asked"),
        ("latency:all:p99", format!("p99 {}  p50 {}", latency("p99"), latency("p50")), known_span, "stale"),
        ("bytes_out", "out/s".to_owned(), size, "disk"),
    ];
    // Three of them fit into the smallest window.
    let pictures = if area.height >= 16 { 4 } else { 3 };
    let height = area.height / pictures;
    for ((name, title, told, word), place) in all.into_iter().zip(0..pictures) {
        let y = area.y + place * height;
        let columns = area.width.saturating_sub(2);
        let points = view.history.as_ref().map_or_else(Vec::new, |of| of.points(name, usize::from(columns)));
        let most = points.iter().flatten().copied().fold(0.0, f64::max);
        let most = if most > 0.0 { format!("  most {}", told(most)) } else { String::new() };
        write(buffer, area.x + 1, y, columns, &format!("{title}{most}"), look.faint());
        let picture = Rect { x: area.x + 1, y: y + 1, width: columns, height: height.saturating_sub(1) };
        columns_of(buffer, picture, &points, look.result(word));
    }
}

fn known_span(seconds: f64) -> String {
    span(Some(seconds))
}

/// Points as columns, the highest as high as there is room.
fn columns_of(buffer: &mut Buffer, area: Rect, points: &[Option<f64>], style: Style) {
    let most = points.iter().flatten().copied().fold(f64::MIN_POSITIVE, f64::max);
    for (point, x) in points.iter().zip(area.x..area.right()) {
        let Some(point) = point else {
            write(buffer, x, area.bottom().saturating_sub(1), 1, GAP, Style::new());
            continue;
        };
        let eighths = (point / most * f64::from(area.height) * 8.0).round().max(0.0) as usize;
        let eighths = if *point > 0.0 { eighths.max(1) } else { 0 };
        for (line, y) in (area.y..area.bottom()).rev().enumerate() {
            let part = eighths.saturating_sub(line * 8).min(8);
            write(buffer, x, y, 1, EIGHTHS.get(part).copied().unwrap_or_default(), style);
        }
    }
}

fn whys(buffer: &mut Buffer, area: Rect, view: &TopView, look: ScreenLook) {
    let columns =
        [ScreenColumn::left("WHY NO HIT", 13), ScreenColumn::right("/s", 6), ScreenColumn::left("WHERE", 0)];
    let mut table = ScreenTable::new(columns, "every request was a hit");
    for row in reasons(view.recent.values()) {
        // What was before says that it was missed.
        let cells = [
            ScreenCell::text(row.word.clone()),
            ScreenCell::number(rate(row.rate), row.rate),
            ScreenCell::text(row.place_from_rule()),
        ];
        table.push(ScreenRow::new("", cells));
    }
    table.sorted(1, &RowChoice::default(), area.width).draw_unchosen(buffer, area, look);
}

fn servers(buffer: &mut Buffer, area: Rect, view: &TopView, look: ScreenLook) {
    let columns = [
        ScreenColumn::left("ORIGIN", 0),
        ScreenColumn::left("STATE", 7),
        ScreenColumn::right("/s", 5),
        ScreenColumn::right("P99", 7),
    ];
    let mut table = ScreenTable::new(columns, "no origin is known yet");
    let figures = scoped(view.recent.values(), "origin", 1);
    for origin in each(&view.stats, "origins") {
        let name = word(origin, "name");
        let of = figures.get(&vec![name.to_owned()]);
        let value = |name: &str| of.and_then(|of| of.get(name)).copied();
        let servers: Vec<_> = each(origin, "servers").collect();
        let up = servers.iter().filter(|server| word(server, "state") == origins::UP).count();
        let requests = value("requests").unwrap_or_default();
        let cells = [
            ScreenCell::text(name),
            ScreenCell::text(if servers.len() > 1 {
                format!("{up}/{} up", servers.len())
            } else {
                String::new()
            }),
            ScreenCell::number(rate(requests), requests),
            ScreenCell::text(span(value("p99"))),
        ];
        let below = servers.iter().map(|server| {
            let server_name = word(server, "server");
            let of = view.servers.rate(name, server_name);
            let state = origins::state_cell(word(server, "state"));
            let rate = of.map_or_else(|| UNKNOWN.to_owned(), |(requests, _)| rate(requests));
            let host = server_name.split_once("://").map_or(server_name, |(_, host)| host);
            let cells = [ScreenCell::text(format!(" {host}")), state, ScreenCell::text(rate)];
            ScreenRow::new("", cells)
        });
        table.push(ScreenRow::new("", cells).with_below(below.collect()));
    }
    table.sorted(2, &RowChoice::default(), area.width).draw_unchosen(buffer, area, look);
}
