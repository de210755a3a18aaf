//! WordPress from Debian's packages with a plugin that purges: posts, comments and menus change, and every page is current.
//!
//! In: the stage, whose folder has the plugins of docs/guide/wordpress.md, and examples/wordpress-purges.toml. Out: a table for each
//! plugin of what each change did to what is stored. Pages live for hours, so only a purge brings a new one. The changes are made
//! in WordPress itself and not through larder, which would invalidate by itself what a comment or a form names.
//! The site is the one that `make bench NAME=wordpress` measures.

mod editor;

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use super::changes::Changes;
use super::fetch::{Client, MadeAnew};
use super::recorder::Recorder;
use super::stage::{Larder, Stage};
use crate::measure::wordpress::site::Site;
use crate::packages;
use editor::Editor;
use harness::children::free_port;

pub(super) use crate::measure::wordpress::site::PACKAGES;

/// Anonymous visitors see nothing that is made for one request.
const MADE_ANEW: &MadeAnew = &[];
const TOKEN: &str = "5f2c81d09b7ae3465f2c81d0";
/// PHP reads a script again where its file is newer, but looks only every two seconds.
const PLUGIN_MAX: Duration = Duration::from_secs(30);
const STYLE: &str = "/wp-includes/blocks/navigation/style.min.css";
const POSTS: u32 = 12;
const LISTS: [&str; 7] = [
    "/",
    "/page/2/",
    "/feed/",
    "/comments/feed/",
    "/author/author/",
    "/author/keeper/",
    "/category/uncategorized/",
];

/// A way to purge.
struct Way {
    name: &'static str,
    plugin: &'static str,
    /// A new post, in the address of which is its name.
    new_post: &'static str,
}

const WAYS: [Way; 2] = [
    Way { name: "by tag", plugin: "larder-tags.php", new_post: "tagged shelf" },
    Way { name: "by URL", plugin: "larder-urls.php", new_post: "addressed shelf" },
];

/// Runs it all.
pub(super) fn run(stage: &Stage<'_>) -> Result<String> {
    let mut site = Site::start(stage.work)?;
    let config = stage.example("wordpress-purges.toml", "http://127.0.0.1:8083", site.address)?;
    for (number, way) in WAYS.iter().enumerate() {
        let public = free_port()?;
        let sent = Recorder::start(public)?;
        install(&stage.data.join(way.plugin), stage.work, &sent)?;
        let mut larder = stage.larder_at(public, &config)?;
        println!("\n== {}", way.name);
        changes(way, number, &site, &larder, &sent)?;
        larder.still_runs()?;
        site.still_runs()?;
    }
    Ok(format!("wordpress {}", packages::version("wordpress").unwrap_or_default()))
}

/// Puts a plugin in the place of the one before, and what wp-config.php would say beside it.
fn install(plugin: &Path, work: &Path, sent: &Recorder) -> Result<()> {
    let folder = work.join("site/wp-content/mu-plugins");
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir(&folder)?;
    // Before the plugin, by its name.
    let defined = format!(
        "<?php\ndefine( 'LARDER', 'http://{}' );\ndefine( 'LARDER_TOKEN', '{TOKEN}' );\n",
        sent.address
    );
    fs::write(folder.join("address.php"), defined)?;
    let name = plugin.file_name().context("no name")?;
    fs::copy(plugin, folder.join(name)).with_context(|| plugin.display().to_string())?;
    Ok(())
}

fn changes(way: &Way, number: usize, site: &Site, larder: &Larder, sent: &Recorder) -> Result<()> {
    let (direct, through) = (larder.client_of(site.address), larder.client());
    let editor = Editor::log_in(site, direct)?;
    wait_for_plugin(way, direct)?;
    let by_tag = number == 0;
    let asked = || site.asked_through_larder();
    let slug = way.new_post.replace(' ', "-");
    let post = |number: u32| format!("/shelf-number-{number}/");
    let mut targets: Vec<String> = (1..=POSTS).map(post).collect();
    targets.extend(
        ["/the-discussed-shelf/", "/the-discussed-shelf/feed/", "/sample-page/", STYLE].map(str::to_owned),
    );
    targets.push(format!("/{slug}/"));
    let archive = editor.month_of("shelf-number-5")?;
    targets.extend(LISTS.map(str::to_owned));
    targets.push(archive.clone());
    let mut changes = Changes::start(larder, (direct, through), MADE_ANEW, &asked, targets.clone())?;
    // The new post is not there yet.
    ensure!(changes.stored() + 1 == targets.len(), "only {} pages are stored", changes.stored());
    sent.take();

    // By URL, only the archives go that the post is in. Odd posts are the keeper's.
    let of = |pages: &[&str], author: &str| -> Vec<String> {
        let lists = LISTS
            .iter()
            .filter(|list| by_tag || !list.starts_with("/author/") || list.ends_with(&format!("/{author}/")));
        pages.iter().chain(lists).map(|page| (*page).to_owned()).chain([archive.clone()]).collect()
    };
    let id = editor.publish(way.new_post)?;
    changes.check("a post is published", &of(&[&format!("/{slug}/")], "keeper"))?;
    let of_post = sent.take();
    editor.edit(
        "posts",
        &editor.id_of("shelf-number-4")?,
        &[("content", &format!("Edited, {}.", way.name))],
    )?;
    changes.check("a post is edited", &of(&["/shelf-number-4/"], "author"))?;
    let discussed = ["/the-discussed-shelf/", "/the-discussed-shelf/feed/"];
    let known = (&*format!("Known Reader {}", number + 1), &*format!("known-{}@reader.example", number + 1));
    editor.comment("the-discussed-shelf", known, &format!("I know this shelf, {}.", way.name))?;
    changes.check("a comment that needs no approval", &of(&discussed, "author"))?;
    let stranger = format!("stranger-{number}@reader.example");
    editor.comment(
        "the-discussed-shelf",
        ("A Stranger", &stranger),
        &format!("What is it, {}?", way.name),
    )?;
    changes.check("a comment that waits", &[])?;
    editor.approve("What is it")?;
    changes.check("its approval", &of(&discussed, "author"))?;
    editor.navigation(way.name)?;
    // By URL, everything goes that is below the site's address; a file has no tag.
    let pages: Vec<String> = targets.iter().filter(|target| !by_tag || *target != STYLE).cloned().collect();
    changes.check("the menu changes", &pages)?;
    editor.trash(&id)?;
    changes.check("the post is deleted", &of(&[&format!("/{slug}/")], "keeper"))?;
    as_sent(way, &of_post)
}

/// Waits until PHP has read the plugin.
fn wait_for_plugin(way: &Way, direct: Client) -> Result<()> {
    let deadline = Instant::now() + PLUGIN_MAX;
    let by_tag = way.plugin.contains("tags");
    while direct.get("/")?.field("x-cache-tags").is_some() != by_tag {
        ensure!(Instant::now() < deadline, "{} is not in force", way.plugin);
        harness::children::pause();
    }
    Ok(())
}

/// What WordPress's own HTTP client makes of the plugin's request.
fn as_sent(way: &Way, connections: &[String]) -> Result<()> {
    let requests =
        connections.iter().flat_map(|sent| sent.split("\r\n\r\n")).filter(|request| !request.is_empty());
    let requests: Vec<&str> = requests.collect();
    println!("\n{}: {} requests on {} connections, such as:", way.plugin, requests.len(), connections.len());
    let first =
        requests.iter().find(|request| request.starts_with("PURGE / HTTP/1.1")).context("no purge of /")?;
    println!("{}\n", first.replace(TOKEN, "TOKEN"));
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    #[test]
    fn the_guide_shows_the_plugin_that_is_tested() {
        let root = crate::checkout();
        let read = |file: &str| fs::read_to_string(root.join(file)).unwrap();
        let plugin = read("tests/realapp/wordpress/larder-tags.php");
        assert!(
            read("docs/guide/wordpress.md").contains(&format!("```php\n{plugin}```")),
            "docs/guide/wordpress.md shows another plugin"
        );
    }
}
