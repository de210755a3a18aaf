//! The C libraries of the dev build, for a release to link: they have the same flags in both, and take minutes of
//! processor time.
//!
//! In: what `cargo build --workspace` left below `target/debug`. Out: the variables with which the build scripts of
//! jemalloc and AWS-LC take a library that is there; nothing where there is none, or where it is of another version than
//! Cargo.lock names. AWS-LC is looked for as an installation, which stands below `target/linked`: headers and archive
//! are links, and the bindings are a module that names the crate's own, since the crate's file cannot be included.
//! Deliberately absent: building. Who asks only for a release has it built in whole.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, SystemTime};

use anyhow::{Context, Result};
use harness::children::output_within;
use serde_json::Value;

/// Longest run of `cargo metadata`, which builds nothing.
const METADATA_MAX: Duration = Duration::from_secs(60);

/// Prints the variables, as a shell takes them before a command.
pub(crate) fn run(root: &Path) -> Result<()> {
    let packages = packages(root)?;
    let jemalloc = jemalloc(root).map(|archive| format!("JEMALLOC_OVERRIDE={}", archive.display()));
    let aws_lc = aws_lc(root, &packages)?;
    let aws_lc = aws_lc.map(|installed| format!("AWS_LC_SYS_SYSTEM_DIR={}", installed.display()));
    let variables: Vec<String> = jemalloc.into_iter().chain(aws_lc).collect();
    println!("{}", variables.join(" "));
    Ok(())
}

fn jemalloc(root: &Path) -> Option<PathBuf> {
    newest(root, "tikv-jemalloc-sys", "out/build/lib/libjemalloc_pic.a")
}

/// The folder that stands for an installation of AWS-LC.
fn aws_lc(root: &Path, packages: &Value) -> Result<Option<PathBuf>> {
    const CRATE: &str = "aws-lc-sys";
    let Some((version, sources)) = package(packages, CRATE) else { return Ok(None) };
    let archive = format!("out/libaws_lc_{}_crypto.a", version.replace('.', "_"));
    let Some(archive) = newest(root, CRATE, &archive) else { return Ok(None) };
    let headers = archive.with_file_name("include");
    let bindings = sources.join("src/universal_crypto.rs");
    if !bindings.is_file() || !headers.is_dir() {
        return Ok(None);
    }
    let installed = root.join("target/linked").join(format!("{CRATE}-{version}"));
    link(&headers, &installed.join("include"))?;
    link(&archive, &installed.join("lib/libcrypto.a"))?;
    let module =
        format!("#[path = {bindings:?}]\nmod bindings_of_the_crate;\npub use bindings_of_the_crate::*;\n");
    keep(&installed.join("share/rust/aws_lc_bindings.rs"), &module)?;
    Ok(Some(installed))
}

/// Makes `place` a file of this text. One that has it is left alone, as in [`link`].
fn keep(place: &Path, text: &str) -> Result<()> {
    if fs::read_to_string(place).is_ok_and(|found| found == text) {
        return Ok(());
    }
    let folder = place.parent().context("a file without a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    fs::write(place, text).with_context(|| place.display().to_string())
}

/// Makes `place` a link to `to`. One that is right is left alone: a build script looks at the times.
fn link(to: &Path, place: &Path) -> Result<()> {
    if fs::read_link(place).is_ok_and(|found| found == to) {
        return Ok(());
    }
    let folder = place.parent().context("a link without a folder")?;
    fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    let _ = fs::remove_file(place);
    symlink(to, place).with_context(|| place.display().to_string())
}

/// `file` of the newest build script of `krate` that has it.
fn newest(root: &Path, krate: &str, file: &str) -> Option<PathBuf> {
    let built = fs::read_dir(root.join("target/debug/build")).ok()?;
    let of_crate = |name: &str| name.strip_prefix(krate).is_some_and(|rest| rest.starts_with('-'));
    let folders =
        built.filter_map(Result::ok).filter(|folder| folder.file_name().to_str().is_some_and(of_crate));
    let files = folders.map(|folder| folder.path().join(file));
    let made = |file: &PathBuf| -> Option<SystemTime> { fs::metadata(file).ok()?.modified().ok() };
    files.filter_map(|file| Some((made(&file)?, file))).max().map(|(_, file)| file)
}

/// What Cargo.lock names, with the folders of the sources.
fn packages(root: &Path) -> Result<Value> {
    // Without the platform, it would fetch what only others need.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let mut cargo = Command::new("cargo");
    let asked = ["metadata", "--locked", "--format-version", "1", "--filter-platform", &platform];
    cargo.args(asked).current_dir(root);
    let said = output_within(&mut cargo, METADATA_MAX).context("cargo metadata")?;
    serde_json::from_str(&said).context("cargo metadata")
}

/// Version and sources of a package.
fn package(packages: &Value, name: &str) -> Option<(String, PathBuf)> {
    let packages = packages.get("packages")?.as_array()?;
    let package = packages.iter().find(|package| package.get("name").is_some_and(|it| it == name))?;
    let manifest = Path::new(package.get("manifest_path")?.as_str()?);
    Some((package.get("version")?.as_str()?.to_owned(), manifest.parent()?.to_path_buf()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(path: &Path) {
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, path.display().to_string()).unwrap();
    }

    fn named(version: &str, sources: &Path) -> Value {
        let manifest = sources.join("Cargo.toml");
        serde_json::json!({ "packages": [{ "name": "aws-lc-sys", "version": version, "manifest_path": manifest }] })
    }

    #[test]
    fn an_installation_is_made_of_the_dev_build_of_the_version_that_the_lock_file_names() {
        let root = tempfile::tempdir().unwrap();
        let (root, sources) = (root.path(), root.path().join("sources"));
        let of_bindings = sources.join("src/universal_crypto.rs");
        file(&of_bindings);
        assert_eq!(aws_lc(root, &named("0.47.0", &sources)).unwrap(), None, "nothing is built");

        let out = root.join("target/debug/build/aws-lc-sys-0123/out");
        file(&out.join("libaws_lc_0_46_0_crypto.a"));
        file(&out.join("include/openssl/base.h"));
        assert_eq!(aws_lc(root, &named("0.47.0", &sources)).unwrap(), None, "another version is built");

        file(&out.join("libaws_lc_0_47_0_crypto.a"));
        let installed = aws_lc(root, &named("0.47.0", &sources)).unwrap().expect("it is built");
        let text = |path: &str| fs::read_to_string(installed.join(path)).unwrap();
        assert_eq!(text("lib/libcrypto.a"), out.join("libaws_lc_0_47_0_crypto.a").display().to_string());
        assert_eq!(text("include/openssl/base.h"), out.join("include/openssl/base.h").display().to_string());
        assert!(text("share/rust/aws_lc_bindings.rs").contains(of_bindings.to_str().unwrap()));

        // Built anew with other flags: the links follow.
        let anew = root.join("target/debug/build/aws-lc-sys-4567/out");
        file(&anew.join("include/openssl/base.h"));
        file(&anew.join("libaws_lc_0_47_0_crypto.a"));
        let later = SystemTime::now() + Duration::from_secs(5);
        fs::File::options()
            .write(true)
            .open(anew.join("libaws_lc_0_47_0_crypto.a"))
            .unwrap()
            .set_modified(later)
            .unwrap();
        assert_eq!(aws_lc(root, &named("0.47.0", &sources)).unwrap(), Some(installed.clone()));
        assert_eq!(text("lib/libcrypto.a"), anew.join("libaws_lc_0_47_0_crypto.a").display().to_string());
    }

    #[test]
    fn a_crate_whose_name_only_begins_alike_is_not_taken() {
        let root = tempfile::tempdir().unwrap();
        file(&root.path().join("target/debug/build/tikv-jemalloc-sysadmin/out/build/lib/libjemalloc_pic.a"));
        assert_eq!(jemalloc(root.path()), None);
        file(&root.path().join("target/debug/build/tikv-jemalloc-sys-0123/out/build/lib/libjemalloc_pic.a"));
        assert!(jemalloc(root.path()).is_some());
    }
}
