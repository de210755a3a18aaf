# API Platform's VCL: bans by an expression for tags; purges by xkey.

import xkey;

acl invalidators {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN") {
        if (client.ip !~ invalidators) {
            return (synth(405, "Not allowed"));
        }
        if (!req.http.ApiPlatform-Ban-Regex) {
            return (synth(400, "ApiPlatform-Ban-Regex HTTP header must be set."));
        }
        ban("obj.http.Cache-Tags ~ " + req.http.ApiPlatform-Ban-Regex);
        return (synth(200, "Ban added"));
    }
    if (req.method == "PURGE") {
        if (client.ip !~ invalidators) {
            return (synth(403, "This IP is not allowed to send PURGE requests."));
        }
        if (!req.http.xkey) {
            return (purge);
        }
        set req.http.n-gone = xkey.purge(req.http.xkey);
        return (synth(200, "Invalidated"));
    }
}
