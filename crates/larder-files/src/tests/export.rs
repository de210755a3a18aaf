//! Exporting: what a web server would find, and what it would not.

use std::io::Read;

use super::*;

const HTML: &str = "text/html; charset=utf-8";

fn page(path: &str, media: &'static str) -> Page {
    let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    let mut fields = HeaderMap::new();
    fields.insert("content-type", HeaderValue::from_static(media));
    fields.insert("last-modified", HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT"));
    fields.insert("vary", HeaderValue::from_static("Accept-Encoding"));
    Page {
        authority: "example.com".to_owned(),
        path: path.to_owned(),
        query: query.map(str::to_owned),
        status: StatusCode::OK,
        fields,
        body: Box::new(std::io::Cursor::new(path.as_bytes().to_vec())),
        left_out: None,
    }
}

fn settings(folder: &TempDir) -> ExportSettings {
    ExportSettings { path: folder.path().join("out"), mode: 0o644, default_type: None }
}

#[test]
fn pages_lie_where_a_web_server_looks_for_them() {
    let folder = tempfile::tempdir().unwrap();
    let cases = [
        ("/", HTML, Some("index.html")),
        ("/about", HTML, Some("about/index.html")),
        ("/blog/", HTML, Some("blog/index.html")),
        ("/blog/caf%C3%A9", HTML, Some("blog/café/index.html")),
        ("/page.html", HTML, Some("page.html")),
        ("/app.js", "application/javascript", Some("app.js")),
        ("/a%20b.css", "text/css", Some("a b.css")),
        ("/feed.xml", "application/xml", Some("feed.xml")),
        ("/page.php", HTML, Some("page.php/index.html")),
        ("/a/../up.css", "text/css", Some("up.css")),
        ("/users/5", "application/json", None),
        ("/feed/", "application/rss+xml", None),
        ("/style.css", HTML, Some("style.css/index.html")),
    ];
    let exported =
        export(&settings(&folder), cases.iter().map(|(path, media, _)| page(path, media))).unwrap();
    for (path, _, file) in cases {
        match file {
            Some(file) => {
                let file = folder.path().join("out/example.com").join(file);
                assert_eq!(std::fs::read_to_string(&file).unwrap(), path);
                let modified = std::fs::metadata(&file).unwrap().modified().unwrap();
                assert_eq!(modified.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_secs(), 784_111_777);
            }
            None => assert!(
                exported.left_out.contains(&(format!("example.com{path}"), LeftOut::TypeNotShown)),
                "{path}"
            ),
        }
    }
    assert_eq!((exported.files, exported.left_out_count), (11, 2));
    assert_eq!(files(&folder.path().join("out")).len(), 11, "and nothing else");
}

#[test]
fn what_has_no_place_is_left_out_and_told() {
    let folder = tempfile::tempdir().unwrap();
    let mut missing = page("/gone", HTML);
    missing.status = StatusCode::NOT_FOUND;
    let mut encoded = page("/z.css", "text/css");
    encoded.fields.insert("content-encoding", HeaderValue::from_static("gzip"));
    let mut varies = page("/v.css", "text/css");
    varies.fields.insert("vary", HeaderValue::from_static("Cookie"));
    let mut broken = page("/b.css", "text/css");
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> std::io::Result<usize> {
            Err(std::io::ErrorKind::InvalidData.into())
        }
    }
    broken.body = Box::new(std::io::Cursor::new(b"half".to_vec()).chain(Broken));
    let mut outside = page("/x.css", "text/css");
    outside.authority = "..".to_owned();
    let mut personal = page("/mine.css", "text/css");
    personal.left_out = Some(LeftOut::Personal);
    let pages = vec![
        personal,
        page("/a.css", "text/css"),
        (page("/a.css?v=1", "text/css")),
        missing,
        encoded,
        varies,
        broken,
        outside,
        page("/.git/x.css", "text/css"),
        page("/a%2Fb.css", "text/css"),
        page("/a%00.css", "text/css"),
        page("/../x.css", "text/css"),
        page("/%61.css", "text/css"),
        page("/a.css/x.css", "text/css"),
        page("/d/x.css", "text/css"),
        page("/d", "text/css"),
        page("/e", HTML),
        page("/e/", HTML),
    ];
    let exported = export(&settings(&folder), pages).unwrap();
    use LeftOut::*;
    let expected = [
        ("example.com/mine.css", Personal),
        ("example.com/a.css?v=1", Query),
        ("example.com/gone", Status),
        ("example.com/z.css", Encoded),
        ("example.com/v.css", Varies),
        ("example.com/b.css", Body),
        ("../x.css", Name),
        ("example.com/.git/x.css", Name),
        ("example.com/a%2Fb.css", Name),
        ("example.com/a%00.css", Name),
        ("example.com/../x.css", Name),
        ("example.com/%61.css", Taken),
        ("example.com/a.css/x.css", InTheWay),
        ("example.com/d", TypeNotShown),
        ("example.com/e/", Taken),
    ];
    assert_eq!(exported.left_out, expected.map(|(uri, why)| (uri.to_owned(), why)));
    assert_eq!(files(folder.path()).len(), 3);
}

#[test]
fn a_server_that_gives_a_type_to_all_that_shows_none_gets_those_too() {
    let folder = tempfile::tempdir().unwrap();
    let json = Some("application/json".to_owned());
    let settings = ExportSettings { default_type: json, ..settings(&folder) };
    let exported = export(&settings, [page("/users/5", "application/json")]).unwrap();
    assert_eq!(exported.files, 1);
    assert!(folder.path().join("out/example.com/users/5").is_file());
}

#[test]
fn links_that_were_planted_in_the_tree_are_not_followed() {
    let folder = tempfile::tempdir().unwrap();
    let outside = folder.path().join("outside");
    std::fs::create_dir_all(&outside).unwrap();
    std::fs::write(outside.join("x.css"), "secret").unwrap();
    std::fs::create_dir_all(folder.path().join("out/example.com")).unwrap();
    std::os::unix::fs::symlink(&outside, folder.path().join("out/example.com/d")).unwrap();
    std::os::unix::fs::symlink(outside.join("x.css"), folder.path().join("out/example.com/f.css")).unwrap();
    let pages = [page("/d/x.css", "text/css"), page("/f.css", "text/css")];
    let exported = export(&settings(&folder), pages).unwrap();
    assert_eq!((exported.files, exported.left_out_count), (1, 1));
    assert_eq!(std::fs::read(outside.join("x.css")).unwrap(), b"secret");
}
