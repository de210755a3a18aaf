//! The reference pages for metrics and for the access log, made from the declarations.
//!
//! In: the families declared here, and the samples of those that the listener and the way to the origins declare
//! beside their counters ([`CountedElsewhere`]). Out: the pages. `suites reference`, which sees all crates, compares the
//! committed pages with them and writes them anew.

use std::fmt::Write;

use crate::access_log::FIELDS;
use crate::family::{self, Kind};

/// The line that says where a page comes from.
pub(crate) const GENERATED: &str = "<!-- Generated from the declarations in the crates; edit those. -->\n\n";

/// Families that other crates declare beside what they count.
#[derive(Clone, Debug, Default)]
pub struct CountedElsewhere(Vec<Counted>);

#[derive(Clone, Debug)]
struct Counted {
    name: String,
    help: String,
    /// Names, each with the values that were seen.
    labels: Vec<(String, Vec<String>)>,
}

impl CountedElsewhere {
    /// Takes one sample; its family is described once, by the first of them. A label whose values the operator chooses
    /// has an empty one.
    pub fn sample(&mut self, name: &str, help: &str, labels: &[(&str, &str)]) {
        let known = self.0.iter().position(|family| family.name == name);
        let at = known.unwrap_or_else(|| {
            let labels = labels.iter().map(|(label, _)| ((*label).to_owned(), Vec::new())).collect();
            self.0.push(Counted { name: name.to_owned(), help: help.to_owned(), labels });
            self.0.len() - 1
        });
        let Some(family) = self.0.get_mut(at) else { return };
        for (label, value) in labels.iter().filter(|(_, value)| !value.is_empty()) {
            let seen = family.labels.iter_mut().find(|(known, _)| known == label);
            if let Some((_, values)) = seen.filter(|(_, values)| !values.iter().any(|known| known == value)) {
                values.push((*value).to_owned());
            }
        }
    }
}

impl Counted {
    fn describe(&self, page: &mut String) {
        let label = |(name, values): &(String, Vec<String>)| {
            let values: Vec<_> = values.iter().map(|value| format!("`{value}`")).collect();
            match values.is_empty() {
                true => format!("`{name}`"),
                false => format!("`{name}` ({})", values.join(", ")),
            }
        };
        let labels: Vec<_> = self.labels.iter().map(label).collect();
        let labels = if labels.is_empty() { "none".to_owned() } else { labels.join(", ") };
        let kind = Kind::of(&self.name).as_str();
        let _ = write!(page, "## `{}`\n\n{}\n\n- Kind: {kind}\n- Labels: {labels}\n\n", self.name, self.help);
    }
}

/// docs/reference/metrics.md.
pub fn metrics_markdown(elsewhere: &CountedElsewhere) -> String {
    let mut page = format!(
        "# Metrics\n\n{GENERATED}`GET /metrics` on the admin address answers in the Prometheus text format. Histograms \
         have a bucket for each power of\ntwo of a microsecond from 32 us to 67 s. Counters start at zero with the \
         process; a reload keeps them. At most 1024\nsites, 64 stores and 256 origins are told apart over all \
         configurations of one process; further ones count as `other`.\n\n"
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
    elsewhere.0.iter().for_each(|family| family.describe(&mut page));
    page.truncate(page.trim_end().len());
    page.push('\n');
    page
}

/// docs/reference/access-log.md.
pub fn access_log_markdown() -> String {
    let mut page = format!(
        "# Access log\n\n{GENERATED}One line per exchange, written when the response has ended. Writing never makes a \
         request wait: when the target is too\nslow, lines are dropped and counted in `larder_log_dropped_total`. \
         SIGUSR1 opens the file anew after a rotation.\n\
         A line is written at once where none came shortly before, otherwise together with others: within a tenth of \
         a second, or as\nsoon as 256 KiB of them wait, 64 KiB where there are very many workers. The end of larder writes what waits.\n\n\
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

    #[test]
    fn a_family_counted_elsewhere_is_described_once_with_all_values_of_its_labels() {
        let mut elsewhere = CountedElsewhere::default();
        for reason in ["dns", "tls", "dns"] {
            elsewhere.sample("larder_x_total", "Failures.", &[("origin", ""), ("reason", reason)]);
        }
        elsewhere.sample("larder_y", "Open.", &[]);
        let page = metrics_markdown(&elsewhere);
        let expected = "## `larder_x_total`\n\nFailures.\n\n- Kind: counter\n- Labels: `origin`, `reason` (`dns`, \
                        `tls`)\n\n## `larder_y`\n\nOpen.\n\n- Kind: gauge\n- Labels: none\n";
        assert!(page.ends_with(expected), "{page}");
        assert!(family::ALL.iter().all(|family| page.contains(&format!("## `{}`\n", family.name))));
    }
}
