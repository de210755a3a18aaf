//! The generated pages under docs/reference.
//!
//! In: the declarations of keys, metrics and endpoints in the crates themselves. Out: the pages, rewritten or compared with what
//! is committed. A key or a metric is declared once, with unit, default and reason; a page that differs is stale.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result, ensure};
use larder_observe::CountedElsewhere;

/// Compares every page with its source or, with `write`, rewrites those that differ.
pub(crate) fn run(root: &Path, write: bool) -> Result<()> {
    let pages = [
        ("docs/reference/config.md", larder_config::reference_markdown()),
        ("docs/reference/larder.schema.json", larder_config::json_schema()),
        ("docs/reference/metrics.md", larder_observe::metrics_markdown(&counted_elsewhere())),
        ("docs/reference/access-log.md", larder_observe::access_log_markdown()),
        ("docs/reference/filter.md", larder_observe::filter::filter_markdown()),
        ("docs/reference/api.md", larder_admin::api_markdown()),
    ];
    let mut stale = Vec::new();
    for (name, text) in &pages {
        let path = root.join(name);
        let text = format!("{}\n", text.trim_end());
        if fs::read_to_string(&path).is_ok_and(|committed| committed == text) {
            continue;
        }
        if write {
            fs::create_dir_all(path.parent().unwrap_or(root)).with_context(|| (*name).to_owned())?;
            fs::write(&path, text).with_context(|| (*name).to_owned())?;
            println!("reference: {name} rewritten");
        } else {
            stale.push(*name);
        }
    }
    ensure!(stale.is_empty(), "stale: {}; run `make reference`", stale.join(", "));
    println!("reference: {} pages up to date", pages.len());
    Ok(())
}

/// What the listener and the way to the origins count and declare themselves, labelled as `/metrics` shows it.
fn counted_elsewhere() -> CountedElsewhere {
    let mut elsewhere = CountedElsewhere::default();
    larder_listen::Metrics::default()
        .for_each(&mut |name, help, labels, _| elsewhere.sample(name, help, labels));
    larder_origin::OriginState::new().for_each(&mut |name, help, labels, _| {
        let labels: Vec<_> = std::iter::once(("origin", "")).chain(labels.iter().copied()).collect();
        elsewhere.sample(name, help, &labels);
    });
    larder_disk::layouts::metrics::for_each(
        &larder_disk::engine::DiskUsage::default(),
        &mut |name, help, labels, _| {
            let labels: Vec<_> =
                [("store", ""), ("disk", "")].into_iter().chain(labels.iter().copied()).collect();
            elsewhere.sample(name, help, &labels);
        },
    );
    larder_files::metrics::for_each(&larder_files::FilesUsage::default(), &mut |name, help, labels, _| {
        let labels: Vec<_> =
            [("store", ""), ("directory", "")].into_iter().chain(labels.iter().copied()).collect();
        elsewhere.sample(name, help, &labels);
    });
    elsewhere
}
