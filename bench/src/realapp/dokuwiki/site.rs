//! DokuWiki from Debian's package, in a scratch folder, on a free port.
//!
//! In: the templates of tests/realapp/dokuwiki. Out: a running Apache with a wiki of three pages, which strangers read and
//! one user may edit. The program is where Debian's package put it; its settings and its data are in the scratch folder.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, Result};

use crate::realapp::apache::{Apache, fill};
use harness::children::output_within;

/// What all of it comes from, with the browser.
pub(in crate::realapp) const PACKAGES: &[&str] = &[
    "dokuwiki",
    "php-cli",
    "libapache2-mod-php",
    "media-types",
    "chromium",
    "chromium-driver",
    "fonts-dejavu-core",
];

pub(super) const USER: &str = "victoria";
pub(super) const PASSWORD: &str = "only for this run";
pub(super) const NAME: &str = "Victoria Example";
pub(super) const PAGES: [&str; 3] = ["start", "about", "play"];

const CONFIGURATION: &str = "/etc/dokuwiki";
/// What is written here instead.
const OWN: [&str; 3] = ["local.php", "acl.auth.php", "users.auth.php"];
const PICTURE: &str = "/usr/share/dokuwiki/lib/tpl/dokuwiki/images/logo.png";
const HASH_MAX: Duration = Duration::from_secs(120);
/// What DokuWiki looks for below its `savedir`.
const FOLDERS: [&str; 13] = [
    "attic",
    "cache",
    "index",
    "locks",
    "log",
    "media",
    "media/wiki",
    "media_attic",
    "media_meta",
    "meta",
    "pages",
    "tmp",
    "pages/wiki",
];

/// Sets up a wiki below `work` and starts its web server.
pub(super) fn start(templates: &Path, work: &Path) -> Result<Apache> {
    configure(&work.join("conf"))?;
    fs::create_dir(work.join("sessions"))?;
    for folder in FOLDERS {
        fs::create_dir_all(work.join("data").join(folder)).context(folder)?;
    }
    for (name, place) in [("local.php", "conf/local.php"), ("prepend.php", "prepend.php")] {
        let text = fill(&templates.join(name), &[("@WORK@", work.display().to_string())])?;
        fs::write(work.join(place), text)?;
    }
    fs::copy(templates.join("acl.auth.php"), work.join("conf/acl.auth.php"))?;
    let user = format!("{USER}:{}:{NAME}:victoria@example.com:user\n", hash()?);
    fs::write(work.join("conf/users.auth.php"), format!("# users\n# <?php exit()?>\n{user}"))?;
    let pages = work.join("data/pages");
    fs::copy(templates.join("start.txt"), pages.join("start.txt"))?;
    for page in &PAGES[1..] {
        fs::write(pages.join(format!("{page}.txt")), format!("====== {page} ======\n\nA page.\n"))?;
    }
    fs::copy(PICTURE, work.join("data/media/wiki/dokuwiki-128.png")).context(PICTURE)?;
    Apache::start(&templates.join("apache.conf"), work)
}

/// The password as DokuWiki keeps it.
fn hash() -> Result<String> {
    let script = format!("echo password_hash('{PASSWORD}', PASSWORD_BCRYPT);");
    output_within(Command::new("php").args(["-r", &script]), HASH_MAX)
}

/// The package's own settings, but for those that say who may do what.
fn configure(folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    for entry in fs::read_dir(CONFIGURATION).context(CONFIGURATION)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if !OWN.contains(&name.as_str()) && entry.file_type()?.is_file() {
            fs::copy(entry.path(), folder.join(&name)).with_context(|| name.clone())?;
        }
    }
    Ok(())
}
