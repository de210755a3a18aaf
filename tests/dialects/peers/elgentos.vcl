# The extension of elgentos for Magento, with xkey: its pattern becomes a list of keys, and each response with tags has the key `all`.

import xkey;

acl purgers {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "PURGE") {
        if (client.ip !~ purgers) {
            return (synth(405));
        }
        if (!req.http.X-Magento-Tags-Pattern) {
            return (purge);
        }
        if (req.http.X-Magento-Tags-Pattern == ".*") {
            set req.http.X-Keys = "all";
        } else {
            set req.http.X-Keys = regsuball(req.http.X-Magento-Tags-Pattern, "[^a-zA-Z0-9_-]+", " ");
        }
        if (req.http.X-Magento-Purge-Soft) {
            set req.http.n-gone = xkey.softpurge(req.http.X-Keys);
        } else {
            set req.http.n-gone = xkey.purge(req.http.X-Keys);
        }
        return (synth(200, req.http.n-gone));
    }
}

sub vcl_backend_response {
    if (beresp.http.X-Magento-Tags) {
        set beresp.http.xkey = regsuball(beresp.http.X-Magento-Tags, ",", " ") + " all";
    }
}
