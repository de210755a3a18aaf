//! What a browser asks with: the fields of Chromium for a picture of a page whose site sets a cookie of statistics.
//!
//! In: nothing. Out: names in small letters and values, in Chromium's order. All together they fit into a table of HTTP/2 (4096 bytes).

/// See the head of the file.
pub const FIELDS: [(&str, &str); 13] = [
    ("sec-ch-ua-platform", "\"Linux\""),
    (
        "user-agent",
        "Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/142.0.0.0 Safari/537.36",
    ),
    ("sec-ch-ua", "\"Chromium\";v=\"142\", \"Not_A Brand\";v=\"99\""),
    ("sec-ch-ua-mobile", "?0"),
    ("accept", "image/avif,image/webp,image/apng,image/svg+xml,image/*,*/*;q=0.8"),
    ("sec-fetch-site", "same-origin"),
    ("sec-fetch-mode", "no-cors"),
    ("sec-fetch-dest", "image"),
    ("referer", "https://localhost/page/front"),
    ("accept-encoding", "gzip, deflate, br, zstd"),
    ("accept-language", "en-GB,en;q=0.9"),
    ("cookie", "_visit=5f1c2a9e0b7d4c33.1763000000"),
    ("priority", "u=2, i"),
];
