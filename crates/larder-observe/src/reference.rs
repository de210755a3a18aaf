//! The reference pages for metrics and for the access log, made from the declarations.
//!
//! A test compares the committed pages with what is made here; `LARDER_BLESS=1 cargo test -p larder-observe reference`
//! writes them anew.

use std::fmt::Write;

use crate::access_log::FIELDS;
use crate::family;

const GENERATED: &str = "<!-- Generated from the declarations in crates/larder-observe; edit those. -->\n\n";

/// docs/reference/metrics.md.
pub fn metrics_markdown() -> String {
    let mut page = format!(
        "# Metrics\n\n{GENERATED}`GET /metrics` on the admin address answers in the Prometheus text format. Histograms \
         have a bucket for each power of\ntwo of a microsecond from 32 us to 67 s. Counters start at zero with the \
         process; a reload keeps them. At most 1024\nsites, 64 stores and 256 origins are told apart over all \
         configurations of one process; further ones count as `other`.\n\nThe listeners add families of their own; \
         `/metrics` explains each in its HELP line.\n\n"
    );
    for family in family::ALL {
        let labels: Vec<_> = family.labels.iter().map(|label| format!("`{label}`")).collect();
        let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        let _ = write!(
            page,
            "## `{}`\n\n{}\n\n- Kind: {}, in {}\n- Labels: {labels}\n- Why: {}\n\n",
            family.name,
            family.help,
            family.kind.as_str(),
            family.unit,
            family.reason,
        );
    }
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// docs/reference/access-log.md.
pub fn access_log_markdown() -> String {
    let mut page = format!(
        "# Access log\n\n{GENERATED}One line per exchange, written when the response has ended. Writing never makes a \
         request wait: when the target is too\nslow, lines are dropped and counted in `larder_log_dropped_total`. \
         SIGUSR1 opens the file anew after a rotation.\n\n\
         ## `json`\n\n\
         One object per line. A field without a value is left out. Bytes that are not UTF-8 become U+FFFD; control \
         characters are\nescaped.\n\n| field | form | meaning |\n|---|---|---|\n"
    );
    for field in FIELDS {
        let _ = writeln!(page, "| `{}` | {} | {} |", field.name, field.form, field.help);
    }
    page.push_str(
        "\n## `combined`\n\n\
         `client - - [time] \"method target HTTP/version\" status bytes \"referer\" \"user agent\"`, as Apache and nginx \
         write it.\nThe time is UTC. Quotes, backslashes, control characters and bytes above 0x7e are written `\\xHH`; \
         what is absent is `-`;\na text that was cut ends in `...`.\n",
    );
    page
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(name: &str, made: &str) {
        let path = format!("{}/../../docs/reference/{name}", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("LARDER_BLESS").is_some() {
            std::fs::create_dir_all(std::path::Path::new(&path).parent().unwrap()).unwrap();
            std::fs::write(&path, made).unwrap();
        }
        let committed = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            committed == made,
            "docs/reference/{name} is not what the declarations say; see this file's head"
        );
    }

    #[test]
    fn the_reference_page_of_the_metrics_is_up_to_date() {
        check("metrics.md", &metrics_markdown());
    }

    #[test]
    fn the_reference_page_of_the_access_log_is_up_to_date() {
        check("access-log.md", &access_log_markdown());
    }
}
