# FOSHttpCache's documentation: bans by host, URL, type and tags; purges of a URL; purges by xkey; refreshes.

import xkey;

acl invalidators {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE" || req.method == "BAN" || req.method == "PURGEKEYS") {
        if (client.ip !~ invalidators) {
            return (synth(405, "Not allowed"));
        }
    }
    if (req.method == "PURGE") {
        return (purge);
    }
    if (req.method == "BAN") {
        set req.http.X-Condition = "obj.http.X-Host ~ " + req.http.X-Host + " && obj.http.X-Url ~ " + req.http.X-Url
            + " && obj.http.Content-Type ~ " + req.http.X-Content-Type;
        if (req.http.X-Cache-Tags) {
            ban(req.http.X-Condition + " && obj.http.X-Cache-Tags ~ " + req.http.X-Cache-Tags);
        } elseif (req.http.Cookie) {
            ban(req.http.X-Condition + " && obj.http.Cookie ~ " + req.http.Cookie);
        } else {
            ban(req.http.X-Condition);
        }
        return (synth(200, "Banned"));
    }
    if (req.method == "PURGEKEYS") {
        if (!req.http.xkey-purge && !req.http.xkey-softpurge) {
            return (synth(400, "Neither header XKey-Purge or XKey-SoftPurge set"));
        }
        if (req.http.xkey-purge) {
            set req.http.n-gone = xkey.purge(req.http.xkey-purge);
        }
        if (req.http.xkey-softpurge) {
            set req.http.n-soft = xkey.softpurge(req.http.xkey-softpurge);
        }
        return (synth(200, "Purged"));
    }
    if (req.http.Cache-Control ~ "no-cache" && client.ip ~ invalidators) {
        set req.hash_always_miss = true;
    }
}

sub vcl_backend_response {
    set beresp.http.X-Url = bereq.url;
    set beresp.http.X-Host = bereq.http.Host;
}
