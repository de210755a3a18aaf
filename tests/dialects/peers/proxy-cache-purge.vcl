# Proxy Cache Purge for WordPress: tags by an expression, URLs by an expression, or one URL; the plugin's pages have the first two.

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(405, "PURGE not allowed"));
        }
        if (req.http.X-Purge-Method == "tags" && req.http.X-Cache-Tags-Pattern) {
            ban("obj.http.X-Cache-Tags ~ " + req.http.X-Cache-Tags-Pattern);
            return (synth(200, "Purged"));
        }
        if (req.http.X-Purge-Method == "regex") {
            ban("obj.http.X-Url ~ " + req.url + " && obj.http.X-Host == " + req.http.Host);
            return (synth(200, "Purged"));
        }
        return (purge);
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.Host;
}
