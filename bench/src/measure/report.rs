//! What a measurement leaves: a table on the terminal, and bench/results/NAME.md and NAME.json.
//!
//! In: the table, what was measured how, and the same figures as JSON. Out: the files, with the machine and the
//! versions beside the figures, for figures without them are hearsay.
//! Deliberately absent: a comparison with figures taken elsewhere; where published ones are quoted, the page says so.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// One measurement's outcome.
pub(crate) struct Report<'a> {
    /// The name of the files, and of the measurement on the command line.
    pub(crate) name: &'a str,
    /// The page's heading.
    pub(crate) title: &'a str,
    /// Tables in Markdown.
    pub(crate) table: &'a str,
    /// How it was measured: sentences, each with its full stop.
    pub(crate) how: &'a str,
    /// Programs and the flag that makes them tell their version.
    pub(crate) programs: &'a [(&'a str, &'a str)],
    /// What NAME.json holds besides name, machine and versions.
    pub(crate) figures: Value,
}

impl Report<'_> {
    /// Prints the report and writes both files.
    pub(crate) fn write(self, root: &Path) -> Result<()> {
        let Self { name, title, table, how, programs, figures } = self;
        let cores = std::thread::available_parallelism()?.get();
        let versions: Vec<String> = programs.iter().map(|(program, flag)| said(program, flag)).collect();
        let how = format!("{how} {cores} cores, {}. {}.", processor(), versions.join(", "));
        println!("\n{table}\n{how}");
        let folder = root.join("bench/results");
        fs::create_dir_all(&folder)?;
        let page = format!("# {title}\n\nWritten by `make bench NAME={name}`.\n\n{table}\n{how}\n");
        fs::write(folder.join(format!("{name}.md")), page).with_context(|| format!("{name}.md"))?;
        let mut data =
            json!({ "bench": name, "cores": cores, "processor": processor(), "versions": versions });
        if let (Value::Object(data), Value::Object(figures)) = (&mut data, figures) {
            data.extend(figures);
        }
        fs::write(folder.join(format!("{name}.json")), format!("{data:#}\n"))
            .with_context(|| format!("{name}.json"))
    }
}

/// The middle one of `values`; of an even number the upper of both.
pub(crate) fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(f64::NAN)
}

/// To two places after the point.
pub(crate) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

/// The first line of what `program` says of its version, on whichever stream.
fn said(program: &str, flag: &str) -> String {
    let Ok(output) = Command::new(program).arg(flag).output() else {
        return format!("{program} unknown");
    };
    let text = [output.stdout, output.stderr].concat();
    String::from_utf8_lossy(&text).lines().next().unwrap_or_default().trim().to_owned()
}

fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find_map(|l| l.strip_prefix("model name")).and_then(|l| l.split_once(": "));
    model.map_or_else(|| "processor unknown".to_owned(), |(_, name)| name.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_is_the_middle_one() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]).to_bits(), 2.0_f64.to_bits());
    }
}
