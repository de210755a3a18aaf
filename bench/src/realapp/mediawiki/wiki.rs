//! MediaWiki from Debian's packages, in a scratch folder, on a free port.
//!
//! In: the templates of tests/realapp/mediawiki and the address that browsers will use. Out: a running Apache with pages and
//! pictures, and the list of what there is to fetch. The content is what lies on every Debian machine: the licence
//! texts as pages, MediaWiki's own pictures as uploads.
//! Deliberately absent: the system's services and their configuration; nothing outside of the scratch folder is written.

use std::collections::BTreeSet;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::realapp::apache::{Apache, fill};
use crate::realapp::fetch::{Answer, Client};
use harness::children::{output_within, run_within};

/// What all of it comes from. The web server is a dependency of PHP's Apache module.
pub(in crate::realapp) const PACKAGES: &[&str] = &[
    "mediawiki",
    "redis-server",
    "php-cli",
    "libapache2-mod-php",
    "php-sqlite3",
    "php-mbstring",
    "php-xml",
    "php-intl",
    "php-gd",
    "php-curl",
    "media-types",
    "chromium",
    "chromium-driver",
    "fonts-dejavu-core",
    "curl",
];

const MEDIAWIKI: &str = "/usr/share/mediawiki";
const TEXTS: &str = "/usr/share/common-licenses";
const PICTURES: &str = "/usr/share/mediawiki/resources/assets";
const SCRIPT_MAX: Duration = Duration::from_secs(120);
/// Apache writes a line of its log when PHP has finished, which may be after the client has its page.
const LOG_MAX: Duration = Duration::from_secs(30);
/// Name and password.
pub(super) const ADMIN: (&str, &str) = ("Admin", "only-for-this-run");
/// Pages that show one template.
pub(super) const SHELVES: usize = 50;

/// A running wiki.
pub(super) struct Wiki {
    pub(super) address: SocketAddr,
    /// Names of the pages made from texts.
    pub(super) pages: Vec<String>,
    pictures: Vec<String>,
    apache: Apache,
    work: PathBuf,
}

impl Wiki {
    /// Sets up and starts a wiki below `work` that takes itself to be at `public`, and purges at `purged`.
    pub(super) fn start(
        templates: &Path,
        work: &Path,
        (public, purged): (SocketAddr, SocketAddr),
    ) -> Result<Self> {
        for folder in ["data", "images", "cache", "texts", "templates", "pictures"] {
            fs::create_dir(work.join(folder)).context(folder)?;
        }
        script(
            work,
            "install.php",
            &[
                "--dbtype=sqlite",
                &format!("--dbpath={}/data", work.display()),
                "--dbname=wiki",
                &format!("--server=http://{public}"),
                "--scriptpath=",
                &format!("--confpath={}", work.display()),
                &format!("--pass={}", ADMIN.1),
                "--skins=Vector",
                "Real application",
                ADMIN.0,
            ],
        )?;
        let settings = work.join("LocalSettings.php");
        let added = fill(
            &templates.join("LocalSettings.php"),
            &[("@WORK@", work.display().to_string()), ("@LARDER@", purged.to_string())],
        )?;
        fs::write(&settings, fs::read_to_string(&settings)? + &added)?;

        let pages = texts(&work.join("texts"))?;
        let pictures = pictures(&work.join("pictures"))?;
        shelves(work)?;
        import(work, &work.join("texts"), "")?;
        import(work, &work.join("templates"), "Template:")?;
        script(work, "importImages.php", &[&format!("{}/pictures", work.display())])?;
        let list = |items: &[String], form: fn(&String) -> String| {
            items.iter().map(form).collect::<Vec<_>>().join("\n")
        };
        let start_page = fill(
            &templates.join("main-page.wiki"),
            &[
                ("@PAGES@", list(&pages, |page| format!("* [[{page}]]"))),
                ("@PICTURES@", list(&pictures, |picture| format!("File:{picture}"))),
            ],
        )?;
        fs::write(work.join("main-page"), start_page)?;
        let mut edit = php(work, "edit.php");
        edit.arg("Main_Page").stdin(fs::File::open(work.join("main-page"))?);
        finish(&mut edit)?;
        let apache = Apache::start(&templates.join("apache.conf"), work)?;
        Ok(Self { address: apache.address, pages, pictures, apache, work: work.to_owned() })
    }

    /// Every target to compare: pages, their other views, pictures, what the start page is made of, and pages that the
    /// wiki keeps for each visitor.
    pub(super) fn targets(&self, start_page: &Answer) -> Vec<String> {
        let mut targets = BTreeSet::from([
            "/".to_owned(),
            "/index.php/Main_Page".to_owned(),
            "/index.php/No_such_page".to_owned(),
            "/index.php/Special:Version".to_owned(),
            "/index.php/Special:AllPages".to_owned(),
            "/index.php/Special:ListFiles".to_owned(),
            "/api.php?action=query&list=allpages&format=json".to_owned(),
            "/resources/assets/file-type-icons/fileicon-pdf.png".to_owned(),
            "/resources/assets/licenses/cc-by.png".to_owned(),
        ]);
        for page in &self.pages {
            targets.insert(format!("/index.php/{page}"));
            targets.insert(format!("/index.php?title={page}&action=history"));
        }
        for page in self.pages.iter().take(4) {
            targets.insert(format!("/index.php?title={page}&action=raw"));
        }
        for picture in &self.pictures {
            targets.insert(format!("/index.php/File:{picture}"));
        }
        let text = String::from_utf8_lossy(&start_page.body).replace("&amp;", "&");
        // Pictures name their larger versions in lists, with commas and blanks.
        let parts = text.split(['"', ' ', ',']).filter(|part| {
            ["/load.php?", "/resources/", "/skins/", "/images/", "/opensearch_desc.php"]
                .iter()
                .any(|start| part.starts_with(start))
        });
        targets.extend(parts.map(str::to_owned));
        targets.into_iter().collect()
    }

    /// Requests from larder in Apache's log, optionally for one target only.
    pub(super) fn asked(&self, target: Option<&str>) -> Result<usize> {
        self.apache.asked(target)
    }

    /// Replaces the text of a page as a visitor's browser does, and returns the answer to the form.
    pub(super) fn edit(&self, client: &Client, page: &str, text: &str) -> Result<Answer> {
        let form = client.get(&format!("/index.php?title={page}&action=edit"))?;
        let form = String::from_utf8_lossy(&form.body).into_owned();
        let mut fields = vec![
            ("wpTextbox1", text.to_owned()),
            // What the form says for visitors who are not logged in.
            ("wpEditToken", "+\\".to_owned()),
            ("wpSave", "1".to_owned()),
            ("wpUltimateParam", "1".to_owned()),
        ];
        for name in ["wpStarttime", "wpEdittime", "wpUnicodeCheck"] {
            let value = input_value(&form, name).with_context(|| format!("the form has no {name}"))?;
            fields.push((name, value));
        }
        client.post(&format!("/index.php?title={page}&action=submit"), &fields)
    }

    /// Requests with POST that did not come through larder.
    pub(super) fn posts(&self) -> Result<usize> {
        self.apache.answered("POST")
    }

    /// Waits until the wiki has done all that it does after its answers to so many requests with POST, asked directly.
    pub(super) fn has_answered(&self, posts: usize) -> Result<()> {
        let deadline = Instant::now() + LOG_MAX;
        while self.posts()? < posts {
            ensure!(Instant::now() < deadline, "Apache's log has fewer than {posts} requests with POST");
            harness::children::pause();
        }
        Ok(())
    }

    /// Does what the wiki has put off: links, and the purges of pages that show a changed one.
    pub(super) fn run_jobs(&self) -> Result<()> {
        // What the script writes belongs to whom Apache runs as.
        let mut command = if rustix::process::geteuid().is_root() {
            let mut command = Command::new("runuser");
            command.args(["-u", "www-data", "--"]);
            command.arg("env");
            command
        } else {
            Command::new("env")
        };
        command
            .arg(format!("MW_CONFIG_FILE={}/LocalSettings.php", self.work.display()))
            .args(["php", &format!("{MEDIAWIKI}/maintenance/runJobs.php")]);
        let printed = output_within(&mut command, SCRIPT_MAX)?;
        ensure!(!printed.contains("error="), "{printed}");
        Ok(())
    }

    /// Fails when Apache has ended.
    pub(super) fn still_runs(&mut self) -> Result<()> {
        self.apache.still_runs()
    }
}

/// The value of a hidden field in a form of MediaWiki's, which writes `value` on either side of `name`.
fn input_value(form: &str, name: &str) -> Option<String> {
    let name = format!("name=\"{name}\"");
    let input = form
        .split("<input")
        .map(|rest| rest.split('>').next().unwrap_or(rest))
        .find(|i| i.contains(&name))?;
    let (_, value) = input.split_once("value=\"")?;
    value.split('"').next().map(str::to_owned)
}

/// Copies the texts to where MediaWiki's import finds them, and names them.
fn texts(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(TEXTS).context(TEXTS)? {
        let entry = entry?;
        // Links are other names of the same texts.
        if entry.file_type()?.is_file() {
            let name = entry.file_name().to_string_lossy().into_owned();
            fs::copy(entry.path(), folder.join(format!("{name}.txt")))?;
            names.push(name);
        }
    }
    names.sort();
    ensure!(names.len() >= 10, "only {} texts in {TEXTS}", names.len());
    Ok(names)
}

/// Writes a template, the pages that show it, and one that links to them and to a page that is not there.
fn shelves(work: &Path) -> Result<()> {
    let texts = work.join("texts");
    fs::write(work.join("templates/Notice.txt"), "Mind the step.")?;
    for number in 1..=SHELVES {
        fs::write(texts.join(format!("Shelf {number}.txt")), format!("{{{{Notice}}}}\n\nShelf {number}."))?;
    }
    let mut index: Vec<String> = (1..=SHELVES).map(|number| format!("* [[Shelf {number}]]")).collect();
    index.push("* [[New shelf]]".to_owned());
    fs::write(texts.join("Shelves.txt"), index.join("\n"))?;
    Ok(())
}

/// Makes pages of the texts in a folder, their names behind `prefix`.
fn import(work: &Path, folder: &Path, prefix: &str) -> Result<()> {
    let mut names = Vec::new();
    for entry in fs::read_dir(folder)? {
        names.push(entry?.path().display().to_string());
    }
    names.sort();
    let mut arguments = vec!["--prefix", prefix];
    arguments.extend(names.iter().map(String::as_str));
    script(work, "importTextFiles.php", &arguments)
}

/// Copies the pictures, under names as MediaWiki writes them.
fn pictures(folder: &Path) -> Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(PICTURES).context(PICTURES)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.ends_with(".png") && entry.file_type()?.is_file() {
            let name: String =
                name.chars().take(1).flat_map(char::to_uppercase).chain(name.chars().skip(1)).collect();
            fs::copy(entry.path(), folder.join(&name))?;
            names.push(name);
        }
    }
    names.sort();
    Ok(names)
}

fn php(work: &Path, name: &str) -> Command {
    let mut command = Command::new("php");
    command
        .arg(format!("{MEDIAWIKI}/maintenance/{name}"))
        .env("MW_CONFIG_FILE", work.join("LocalSettings.php"))
        .stdin(Stdio::null())
        .stdout(Stdio::null());
    command
}

fn script(work: &Path, name: &str, arguments: &[&str]) -> Result<()> {
    let mut command = php(work, name);
    if name == "install.php" {
        command.env_remove("MW_CONFIG_FILE");
    }
    finish(command.args(arguments))
}

fn finish(command: &mut Command) -> Result<()> {
    let status = run_within(command, SCRIPT_MAX)?;
    ensure!(status.success(), "{command:?}: {status}");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_forms_value_is_found_on_either_side_of_its_name() {
        let form =
            r#"<input value="a" name="x"/><p><input type="hidden" name="y" value="b" /><input name="z">"#;
        assert_eq!(input_value(form, "x").as_deref(), Some("a"));
        assert_eq!(input_value(form, "y").as_deref(), Some("b"));
        assert_eq!(input_value(form, "z"), None);
        assert_eq!(input_value(form, "w"), None);
    }
}
