# Shopware's VCL: purges by xkey or of a URL, and a BAN with an expression for URLs as its path.

import xkey;

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE" || req.method == "BAN") {
        if (client.ip !~ purgers) {
            return (synth(403, "Forbidden"));
        }
        if (req.method == "BAN") {
            ban("req.url ~ " + req.url);
            return (synth(200, "Banned"));
        }
        if (!req.http.xkey) {
            return (purge);
        }
        set req.http.n-gone = xkey.purge(req.http.xkey);
        return (synth(200, "Invalidated"));
    }
}
