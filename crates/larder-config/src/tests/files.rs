//! Stores of plain files: their table, what does not go with it, and whose directory it may be.

use super::*;
use crate::{ByteSize, Files, Store};

/// What is printed about a store that says `lines`, which begin on line 2.
#[track_caller]
fn check(lines: &str, expected: &str) {
    assert_eq!(printed(&format!("[stores.default]\n{lines}\n{SITE}")), expected, "for:\n{lines}");
}

/// A store that says `lines`.
fn store(lines: &str) -> Store {
    good(&format!("[stores.default]\n{lines}\n{SITE}")).config.stores.remove(0).1
}

fn files(lines: &str) -> Files {
    store(lines).files.unwrap()
}

#[test]
fn a_directory_alone_is_a_table_of_one() {
    let short = files("files = \"html\"");
    assert_eq!(short, files("files = { path = \"html\" }"));
    assert_eq!(
        (short.path, short.size, short.max_files, short.mode.bits(), short.default_type),
        (repository().join("examples/html"), ByteSize(1 << 30), 100_000, 0o644, None)
    );
    let full = files(
        "files = { path = \"/html\", size = \"64MiB\", max_files = 10, mode = \"0600\", default_type = \
         \"application/json\" }",
    );
    let default_type = full.default_type.as_ref().map(|media_type| media_type.as_str());
    assert_eq!((full.path.as_path(), full.mode.bits()), (Path::new("/html"), 0o600));
    assert_eq!((full.size, full.max_files, default_type), (ByteSize(64 << 20), 10, Some("application/json")));
}

#[test]
fn every_error_in_the_table_has_its_place() {
    check(
        "files = { size = \"10%\", max_files = 0, mode = \"644\", default_type = \"json\", owner = \"www\" }",
        "larder.toml:2:9: stores.default.files.path: missing key \"path\"\n\
         larder.toml:2:18: stores.default.files.size: found \"10%\", expected a size such as \"512MiB\", \"64KiB\", \
         \"2GB\"\n\
         larder.toml:2:37: stores.default.files.max_files: found 0, expected 1 to 1000000000\n\
         larder.toml:2:47: stores.default.files.mode: found \"644\", expected a file's mode such as \"0644\", \"0640\", \
         \"0600\"\n  hint: did you mean \"0644\"?\n\
         larder.toml:2:69: stores.default.files.default_type: found \"json\", expected a media type such as \
         \"application/json\", \"text/html; charset=utf-8\"\n\
         larder.toml:2:77: stores.default.files.owner: unknown key \"owner\"",
    );
    check(
        "files = 1",
        "larder.toml:2:9: stores.default.files: found 1, expected a directory of its own such as \"/var/cache/larder\", \
         \"/mnt/d1/larder\"",
    );
}

#[test]
fn files_are_in_place_of_disks() {
    check(
        "files = \"html\"\ndisks = [{ path = \"d1\", size = \"1GiB\" }]\nlayout = \"hash\"",
        "larder.toml:3:9: stores.default.disks: it has no meaning beside `files`\n  hint: a store has disks, or keeps plain \
         files: take two stores for both\n\
         larder.toml:4:10: stores.default.layout: it has no meaning beside `files`\n  hint: a store has disks, or keeps \
         plain files: take two stores for both",
    );
    let checked = good(&format!("[stores.default]\nfiles = \"html\"\nidle = \"1h\"\n{SITE}"));
    let warnings: Vec<_> = checked.warnings.iter().map(ToString::to_string).collect();
    assert_eq!(
        warnings,
        [
            "larder.toml:3:8: stores.default.idle: it is not used\n  hint: files stay until they are removed, or their room is \
          needed"
        ]
    );
}

#[test]
fn a_file_is_at_most_a_quarter_of_all() {
    for (lines, bytes) in [
        ("files = \"html\"", 256 << 20),
        ("files = { path = \"html\", size = \"64MiB\" }", 16 << 20),
        ("files = \"html\"\nmax_object = \"1GiB\"", 1 << 30),
    ] {
        assert_eq!(store(lines).max_object_bytes(), bytes, "{lines}");
    }
    check(
        "files = \"html\"\nmax_object = \"2GiB\"",
        "larder.toml:3:14: stores.default.max_object: found \"2GiB\", expected at most files.size, which is 1GiB",
    );
}

#[test]
fn files_and_disks_have_directories_of_their_own_but_files_may_lie_beneath_a_root() {
    let config = |rest: &str| {
        format!(
            "[stores.one]\nfiles = \"public/cache\"\n[stores.default]\n{rest}\n{SITE}root = \"public\"\nstore = \"one\"\n"
        )
    };
    assert_eq!(good(&config("")).warnings, []);
    let hint = "  hint: each disk, and each store of files, has a directory of its own";
    for (rest, said) in [
        (
            "files = \"public/cache\"",
            "9: stores.default.files: it is the directory of stores.one.files (line 2)",
        ),
        (
            "files.path = \"public\"",
            "14: stores.default.files.path: the directory of stores.one.files (line 2) lies inside of it",
        ),
    ] {
        assert_eq!(printed(&config(rest)), format!("larder.toml:4:{said}\n{hint}"), "{rest}");
    }
    assert_eq!(
        printed(&config("disks = [{ path = \"public/cache\", size = \"1GiB\" }]")),
        format!(
            "larder.toml:4:19: stores.default.disks[0].path: it is the directory of stores.one.files (line 2)\n{hint}\n\
             larder.toml:4:19: stores.default.disks[0].path: it lies inside the directory of site[0].root (line 9)\n  \
             hint: what is stored would be served as files: take a directory outside of it"
        )
    );
}
