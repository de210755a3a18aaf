//! Phrases that several parts of an explanation's text share: a reason with its source, and a length of time.

use larder_proxy::explain::Reason;

use super::columns::tied;

/// A reason, with where it comes from.
pub(super) fn cited(reason: &Reason) -> String {
    match reason.section.as_str() {
        "" => reason.sentence.clone(),
        section => format!("{} {}", reason.sentence, tied(&format!("[{section}]"))),
    }
}

/// A number of seconds as people read it.
pub(super) fn span(seconds: f64) -> String {
    let millis = (seconds * 1000.0).round();
    if seconds < 1.0 && millis >= 1.0 {
        return format!("{millis} ms");
    }
    let whole = seconds.round();
    if seconds < 10.0 && (seconds - whole).abs() >= 0.05 {
        return format!("{seconds:.1} s");
    }
    let plain = format!("{whole} s");
    let units = [("d", 86_400.0), ("h", 3_600.0), ("min", 60.0)];
    let Some((unit, length)) = units.into_iter().find(|(_, length)| whole >= *length) else {
        return plain;
    };
    let count = whole / length;
    let about = if count >= 100.0 || (count - count.round()).abs() < 0.05 {
        format!("{count:.0}")
    } else {
        format!("{count:.1}")
    };
    format!("{plain} ({about} {unit})")
}
