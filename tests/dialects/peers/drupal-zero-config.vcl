# The zero-configuration purger of varnish_purger: bans by an expression for tags, or for URLs where there is none.

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN" || req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(403, "Not allowed."));
        }
        if (req.method == "PURGE") {
            return (purge);
        }
        if (req.http.Cache-Tags) {
            ban("obj.http.Cache-Tags ~ " + req.http.Cache-Tags);
        } else {
            ban("req.url ~ " + req.url);
        }
        return (synth(200, "Ban added."));
    }
}
