# Flowpack's package for Neos: the bans of FOSHttpCache, each with the installation's token, which responses have too.

acl invalidators {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ invalidators) {
            return (synth(405, "Not allowed"));
        }
        set req.http.X-Condition = "obj.http.X-Host ~ " + req.http.X-Host + " && obj.http.X-Url ~ " + req.http.X-Url
            + " && obj.http.Content-Type ~ " + req.http.X-Content-Type + " && obj.http.X-Site ~ " + req.http.X-Site;
        if (req.http.X-Cache-Tags) {
            ban(req.http.X-Condition + " && obj.http.X-Cache-Tags ~ " + req.http.X-Cache-Tags);
        } else {
            ban(req.http.X-Condition);
        }
        return (synth(200, "Banned"));
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.Host;
}
