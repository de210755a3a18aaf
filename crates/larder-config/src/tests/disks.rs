//! Disks of stores: their directories, their caps, and how several are used.

use std::time::Duration;

use super::*;
use crate::{ByteSize, DiskSize, Layout, Store};

/// What is printed about a store that says `lines`, which begin on line 2.
#[track_caller]
fn check(lines: &str, expected: &str) {
    assert_eq!(printed(&format!("[stores.default]\n{lines}\n{SITE}")), expected, "for:\n{lines}");
}

/// A store that says `lines`.
fn store(lines: &str) -> Store {
    good(&format!("[stores.default]\n{lines}\n{SITE}")).config.stores.remove(0).1
}

#[test]
fn a_disk_has_a_directory_and_one_cap() {
    check(
        "disks = [{ path = \"d1\" }, { size = \"1GiB\" }, { path = \"d3\", size = \"1GiB\", leave = \"1GiB\" }]\nlayout = \
         \"hash\"",
        "larder.toml:2:10: stores.default.disks[0].size: missing key \"size\"\n  hint: \"40GiB\", \"80%\" of the file \
         system, or leave = \"10GiB\" for all but that\n\
         larder.toml:2:27: stores.default.disks[1].path: missing key \"path\"\n\
         larder.toml:2:84: stores.default.disks[2].leave: it has no meaning beside `size`\n  hint: one of the two says \
         how much may be taken: leave one out",
    );
    let expected = "expected a size or a part of the file system such as \"40GiB\", \"80%\"";
    for (size, said) in [
        ("\"0%\"", expected),
        ("\"101%\"", expected),
        (
            "\"1G\"",
            "expected a size or a part of the file system such as \"40GiB\", \"80%\"\n  hint: did you mean \"1GiB\"?",
        ),
        (
            "\"2.5%\"",
            "expected a size or a part of the file system such as \"40GiB\", \"80%\"\n  hint: write a whole number",
        ),
        ("-1", expected),
        ("true", expected),
        ("\"1MiB\"", "expected \"16MiB\" to \"1024TiB\""),
        ("1024", "expected \"16MiB\" to \"1024TiB\""),
    ] {
        check(
            &format!("disks = [{{ path = \"d1\", size = {size} }}]"),
            &format!("larder.toml:2:32: stores.default.disks[0].size: found {size}, {said}"),
        );
    }
    let disks = store(
        "disks = [{ path = \"d1\", size = \"40GiB\" }, { path = \"/d2\", size = \"80%\" }, { path = \"./d3/\", leave = \
         \"10GiB\" }, { path = \"d4\", size = 16777216 }]\nlayout = \"hash\"",
    )
    .disks;
    let sizes: Vec<_> = disks.iter().map(|disk| disk.size.to_string()).collect();
    assert_eq!(sizes, ["40GiB", "80%", "all but 10GiB", "16MiB"]);
    assert_eq!(disks[2].size, DiskSize::Leave(ByteSize(10 << 30)));
    assert_eq!(disks[0].path, repository().join("examples/d1"));
    assert_eq!(disks[1].path, Path::new("/d2"));
}

#[test]
fn what_is_wrong_with_a_directory_is_no_error_of_the_file() {
    let disk = |path: &str| format!("disks = [{{ path = {path}, size = \"1GiB\" }}]");
    for path in ["\"\"", "1"] {
        let errors = printed(&format!("[stores.default]\n{}\n{SITE}", disk(path)));
        assert!(errors.contains("expected a directory of its own such as \"/var/cache/larder\""), "{errors}");
    }
    for path in ["\"public\"", "\".\"", "\"..\"", "\"missing/d1\"", "\"full.toml\""] {
        assert_eq!(store(&disk(path)).disks.len(), 1);
    }
    // A file without a directory of its own, as `larder check -c larder.toml` names it.
    let text = format!("[stores.default]\n{}\n{SITE}", disk("\"no-such-directory\""));
    assert!(parse(&text, "larder.toml", Path::new("")).is_ok());
}

#[test]
fn a_layout_is_for_as_many_disks_as_there_are() {
    let disks = |count: usize| {
        let disks: Vec<_> =
            (0..count).map(|index| format!("{{ path = \"d{index}\", size = \"1GiB\" }}")).collect();
        format!("disks = [{}]\n", disks.join(", "))
    };
    check(
        &disks(2),
        "larder.toml:2:9: stores.default.layout: missing key \"layout\"\n  hint: \"mirror\" keeps each response on every \
         disk, \"hash\" each on one of them, \"stripe\" its pieces on all",
    );
    check(
        &format!("{}layout = \"single\"", disks(3)),
        "larder.toml:3:10: stores.default.layout: found \"single\", expected \"mirror\" or \"stripe\" or \"hash\"\n  \
         hint: \"single\" is for one disk, and there are 3",
    );
    for word in ["mirror", "stripe", "hash"] {
        check(
            &format!("{}layout = \"{word}\"", disks(1)),
            &format!(
                "larder.toml:3:10: stores.default.layout: found \"{word}\", expected \"single\" for one disk\n  hint: it \
                 needs two disks at least: add one, or leave `layout` out"
            ),
        );
        let store = store(&format!("{}layout = \"{word}\"", disks(2)));
        assert_eq!((store.chosen_layout().word(), store.disks.len()), (word, 2));
    }
    check(
        "layout = \"raid\"",
        "larder.toml:2:10: stores.default.layout: found \"raid\", expected \"single\" or \"mirror\" or \"stripe\" or \
         \"hash\"\n\
         larder.toml:2:10: stores.default.layout: there are no disks\n  hint: add `disks`, or leave `layout` out",
    );
    check(
        "disks = []",
        "larder.toml:2:9: stores.default.disks: found an empty list, expected at least one disk\n  hint: leave `disks` out \
         to keep responses in memory alone",
    );
    check(
        "disks = { path = \"d1\", size = \"1GiB\" }",
        "larder.toml:2:9: stores.default.disks: found a table, expected a list of tables\n  hint: write \
         [[stores.default.disks]]: there may be several",
    );
    check(
        &format!("{}layout = \"hash\"", disks(65)),
        "larder.toml:2:9: stores.default.disks: there are 65 disks, and 64 at most",
    );
    assert_eq!(store(&disks(1)).chosen_layout(), Layout::Single);
    assert_eq!(store(&format!("{}layout = \"single\"", disks(1))).layout, Some(Layout::Single));
}

#[test]
fn a_mirror_on_one_file_system_is_warned_about() {
    let warnings = |second: &str, layout: &str| {
        let disks = format!(
            "disks = [{{ path = \"d1\", size = \"1GiB\" }}, {{ path = \"{second}\", size = \"1GiB\" }}]"
        );
        let checked = good(&format!("[stores.default]\n{disks}\nlayout = \"{layout}\"\n{SITE}"));
        checked.warnings.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    assert_eq!(
        warnings("public", "mirror"),
        [
            "larder.toml:3:10: stores.default.layout: disks[0] and disks[1] are on one file system\n  hint: what takes one \
          takes the other: is a disk not mounted?"
        ]
    );
    assert!(warnings("d2", "hash").is_empty());
    // Never the file system of the sources.
    assert!(warnings("/proc/self", "mirror").is_empty());
}

#[test]
fn a_body_is_at_most_a_quarter_of_where_it_goes() {
    for (lines, bytes) in [
        ("memory = \"64MiB\"", 16 << 20),
        ("disks = [{ path = \"d1\", size = \"40GiB\" }]", 10 << 30),
        (
            "disks = [{ path = \"d1\", size = \"40GiB\" }, { path = \"d2\", size = \"8GiB\" }]\nlayout = \"hash\"",
            2 << 30,
        ),
        ("disks = [{ path = \"d1\", size = \"80%\" }]", 1 << 30),
        (
            "disks = [{ path = \"d1\", leave = \"1GiB\" }, { path = \"d2\", size = \"1GiB\" }]\nlayout = \"hash\"",
            256 << 20,
        ),
        ("disks = [{ path = \"d1\", size = \"1GiB\" }]\nmax_object = \"1GiB\"", 1 << 30),
        ("disks = [{ path = \"d1\", size = \"80%\" }]\nmax_object = \"100GiB\"", 100 << 30),
    ] {
        assert_eq!(store(lines).max_object_bytes(), bytes, "{lines}");
    }
    check(
        "disks = [{ path = \"d1\", size = \"2GiB\" }, { path = \"d2\", size = \"50%\" }]\nlayout = \"hash\"\nmax_object = \
         \"3GiB\"",
        "larder.toml:4:14: stores.default.max_object: found \"3GiB\", expected at most the smallest disk, which is 2GiB",
    );
}

#[test]
fn what_nobody_asks_for_stays_as_long_as_it_says() {
    assert_eq!(store("idle = \"10m\"").idle, Some(Duration::from_secs(600)));
    assert_eq!(store("").idle, None);
    check(
        "idle = \"500ms\"",
        "larder.toml:2:8: stores.default.idle: found \"500ms\", expected \"1s\" to \"3650d\"",
    );
}

#[test]
fn a_directory_belongs_to_one_disk_alone() {
    let place = tempfile::tempdir().unwrap();
    let base = place.path();
    std::fs::create_dir_all(base.join("a/b")).unwrap();
    std::fs::create_dir_all(base.join("www")).unwrap();
    std::os::unix::fs::symlink("a", base.join("link")).unwrap();
    let of = |first: &str, second: &str| {
        let disk = |path: &str| format!("disks = [{{ path = \"{path}\", size = \"1GiB\" }}]\n");
        let text = format!(
            "[stores.one]\n{}[stores.default]\n{}{SITE}root = \"www\"\nstore = \"one\"\n",
            disk(first),
            disk(second)
        );
        parse(&text, "larder.toml", base).map(|_| ()).map_err(|errors| errors.to_string())
    };
    let hint = "  hint: each disk, and each store of files, has a directory of its own";
    let owner = "stores.one.disks[0].path (line 2)";
    for (first, second, said) in [
        ("a", "a", format!("it is the directory of {owner}")),
        ("a", "./www/../a/", format!("it is the directory of {owner}")),
        ("a", "link", format!("it is the directory of {owner}")),
        ("new", "./new", format!("it is the directory of {owner}")),
        ("a", "a/b", format!("it lies inside the directory of {owner}")),
        ("a", "link/new", format!("it lies inside the directory of {owner}")),
        ("a/b", "a", format!("the directory of {owner} lies inside of it")),
        ("a/b", "link", format!("the directory of {owner} lies inside of it")),
    ] {
        let expected = format!("larder.toml:4:19: stores.default.disks[0].path: {said}\n{hint}");
        assert_eq!(of(first, second), Err(expected), "{first} {second}");
    }
    assert_eq!(
        of("a", "www/cache"),
        Err("larder.toml:4:19: stores.default.disks[0].path: it lies inside the directory of site[0].root (line 9)\n  \
             hint: what is stored would be served as files: take a directory outside of it"
            .to_owned())
    );
    for (first, second) in [("a", "ab"), ("a", "a b"), ("a/b", "a/c"), ("a", "www-cache")] {
        assert_eq!(of(first, second), Ok(()), "{first} {second}");
    }
}

#[test]
fn disks_of_one_store_are_told_apart_too() {
    check(
        "disks = [{ path = \"d1\", size = \"1GiB\" }, { path = \"d1/x/..\", size = \"1GiB\" }, { path = \"d1\", leave = \
         \"1GiB\" }]\nlayout = \"mirror\"",
        "larder.toml:2:88: stores.default.disks[2].path: it is the directory of stores.default.disks[0].path (line 2)\n  \
         hint: each disk, and each store of files, has a directory of its own",
    );
}
