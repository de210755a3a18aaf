# Ibexa's documentation: purges of a URL and by xkey, for those who show the token or come from an address. Ibexa's own VCL asks the
# application for the token.

import xkey;

acl invalidators {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE" || req.method == "PURGEKEYS") {
        if (req.http.X-Invalidate-Token) {
            if (req.http.X-Invalidate-Token != "5f2c81d09b7ae346") {
                return (synth(405, "Method not allowed"));
            }
        } elseif (client.ip !~ invalidators) {
            return (synth(405, "Method not allowed"));
        }
        if (req.method == "PURGE") {
            return (purge);
        }
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
}
