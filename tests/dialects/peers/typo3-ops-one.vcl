# TYPO3's extension of Ops One: bans of a site or of a page; the branches for tags are those that its forks and its documentation add.

import xkey;

acl editors {
    "127.0.0.1";
}

sub vcl_recv {
    if (req.method == "BAN" || req.method == "PURGE") {
        if (client.ip !~ editors) {
            return (synth(405, "Not allowed"));
        }
        if (req.http.Varnish-Ban-All == "1" && req.http.Varnish-Ban-TYPO3-Sitename) {
            ban("obj.http.TYPO3-Sitename == " + req.http.Varnish-Ban-TYPO3-Sitename);
            return (synth(200, "Banned all of a site"));
        }
        if (req.http.Varnish-Ban-All == "1") {
            ban("req.url ~ /");
            return (synth(200, "Banned all"));
        }
        if (req.http.Varnish-Ban-TYPO3-Pid && req.http.Varnish-Ban-TYPO3-Sitename) {
            ban("obj.http.TYPO3-Pid == " + req.http.Varnish-Ban-TYPO3-Pid
                + " && obj.http.TYPO3-Sitename == " + req.http.Varnish-Ban-TYPO3-Sitename);
            return (synth(202, "Banned a page of a site"));
        }
        if (req.http.Varnish-Ban-TYPO3-Pid) {
            ban("obj.http.TYPO3-Pid == " + req.http.Varnish-Ban-TYPO3-Pid);
            return (synth(200, "Banned a page"));
        }
        if (req.http.Varnish-Ban-TYPO3-Tag) {
            set req.http.n-gone = xkey.purge(req.http.Varnish-Ban-TYPO3-Tag);
            return (synth(200, "Banned a tag"));
        }
        if (req.http.xkey-purge) {
            set req.http.n-gone = xkey.purge(req.http.xkey-purge);
            return (synth(200, "Banned a tag"));
        }
        ban("obj.http.TYPO3-Sitename == " + req.http.Varnish-Ban-TYPO3-Sitename);
        return (synth(200, "Banned a site"));
    }
}
