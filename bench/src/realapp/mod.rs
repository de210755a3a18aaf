//! larder in front of applications that nobody here wrote, one folder or file for each of them.
//!
//! In: the checkout, and the name of an application or `all`. Out: what the application's own check printed, and one closing
//! line for each: `realapp NAME: passed`. The run fails where one application fails; the others run all the same.
//!
//! An application is a row of [`APPLICATIONS`] and a module with `run(&Stage) -> Result<String>`, which returns the
//! versions it ran with. Its data (configuration templates, lists of packages with their versions) lies in
//! tests/realapp/NAME. What the applications share: [`stage`] starts larder, [`fetch`] asks as a client, [`python`]
//! installs the Python packages of a `requirements.txt`, [`node`] the packages of a `package-lock.json`. [`apache`] runs PHP, [`jar`] keeps
//! cookies. [`changes`] checks what an application purges, [`recorder`] keeps what it sends for that. Each run has a scratch folder of its own and free ports, and ends what it started.

mod apache;
mod api;
mod apt;
mod changes;
mod codings;
mod django;
mod dokuwiki;
mod express;
mod fetch;
mod grpc;
mod jar;
mod mediawiki;
mod nextjs;
mod nginx;
mod node;
mod php_sessions;
mod purge_clients;
mod pypi;
mod python;
mod random;
mod recorder;
mod stage;
mod static_files;
mod symfony;
mod tally;
mod validator;
mod verdaccio;
mod versioned_pages;
mod video;
mod wordpress;

use std::path::Path;

use anyhow::{Context, Result, bail};

use crate::packages;
use harness::built;
use stage::Stage;

/// An application and its check.
struct Application {
    name: &'static str,
    /// Debian packages that it is made of, beside curl.
    packages: &'static [&'static str],
    /// Fails where anything is not as it should be. Returns the versions of what it ran.
    run: fn(&Stage<'_>) -> Result<String>,
}

const APPLICATIONS: &[Application] = &[
    Application { name: "mediawiki", packages: mediawiki::PACKAGES, run: mediawiki::run },
    Application { name: "wordpress", packages: wordpress::PACKAGES, run: wordpress::run },
    Application { name: "dokuwiki", packages: dokuwiki::PACKAGES, run: dokuwiki::run },
    Application { name: "php-sessions", packages: php_sessions::PACKAGES, run: php_sessions::run },
    Application { name: "django", packages: django::PACKAGES, run: django::run },
    Application { name: "apt", packages: apt::PACKAGES, run: apt::run },
    Application { name: "pypi", packages: pypi::PACKAGES, run: pypi::run },
    Application { name: "video", packages: video::PACKAGES, run: video::run },
    Application { name: "express", packages: express::PACKAGES, run: express::run },
    Application { name: "grpc", packages: grpc::PACKAGES, run: grpc::run },
    Application { name: "nextjs", packages: nextjs::PACKAGES, run: nextjs::run },
    Application { name: "verdaccio", packages: verdaccio::PACKAGES, run: verdaccio::run },
    Application { name: "nginx", packages: nginx::PACKAGES, run: nginx::run },
    Application { name: "purge-clients", packages: purge_clients::PACKAGES, run: purge_clients::run },
    Application { name: "api", packages: api::PACKAGES, run: api::run },
    Application { name: "validator", packages: validator::PACKAGES, run: validator::run },
    Application { name: "symfony", packages: symfony::PACKAGES, run: symfony::run },
    Application { name: "versioned-pages", packages: versioned_pages::PACKAGES, run: versioned_pages::run },
];

/// What the command line takes: every name, and `all`.
pub(crate) fn names() -> Vec<&'static str> {
    ["all"].into_iter().chain(APPLICATIONS.iter().map(|one| one.name)).collect()
}

/// Runs the application of this name, or `all` of them.
///
/// # Errors
/// Of each that failed, after the last.
pub(crate) fn run(root: &Path, name: &str) -> Result<()> {
    let chosen = || APPLICATIONS.iter().filter(|one| name == "all" || name == one.name);
    // Before the first of them: what is missing should show now, and not after an hour.
    packages::install(&["curl"])?;
    for application in chosen() {
        packages::install(application.packages)?;
    }
    let program = built::larder(root)?;
    let mut failed = Vec::new();
    for application in chosen() {
        println!("== {}", application.name);
        match run_one(application, root, &program) {
            Ok(versions) => println!("realapp {}: passed; {versions}", application.name),
            Err(error) => {
                println!("realapp {}: failed: {error:#}", application.name);
                failed.push(application.name);
            }
        }
    }
    if !failed.is_empty() {
        bail!("failed: {}", failed.join(", "));
    }
    Ok(())
}

fn run_one(application: &Application, root: &Path, program: &Path) -> Result<String> {
    let scratch = tempfile::tempdir().context("no scratch folder")?;
    let stage = Stage {
        root,
        data: root.join("tests/realapp").join(application.name),
        work: scratch.path(),
        program,
    };
    (application.run)(&stage)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_application_has_a_name_of_its_own_and_a_folder_for_its_data() {
        let root = crate::checkout();
        let mut names = names();
        for application in APPLICATIONS {
            assert!(root.join("tests/realapp").join(application.name).is_dir(), "{}", application.name);
        }
        names.sort_unstable();
        let all = names.len();
        names.dedup();
        assert_eq!(names.len(), all);
    }
}
