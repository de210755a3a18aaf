# TYPO3's extension of AOE: bans by an expression for URLs or tags, or of everything.

acl editors {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ editors) {
            return (synth(403, "Not allowed to BAN"));
        }
        if (req.http.X-Ban-Regex) {
            ban("obj.http.url ~ " + req.http.X-Ban-Regex);
        } elseif (req.http.X-Ban-All) {
            ban("req.url ~ /");
        } elseif (req.http.X-Ban-Tags) {
            ban("obj.http.X-Tags ~ " + req.http.X-Ban-Tags);
        } else {
            return (synth(405, "Unknown BAN header. Use either 'X-Ban-All' or 'X-Ban-Tags'."));
        }
        return (synth(200, "Banned"));
    }
}

sub vcl_backend_response {
    set beresp.http.url = bereq.url;
}
