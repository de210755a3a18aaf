
# ---- from here: what larder's test adds to what MediaWiki's installer wrote (see docs/guide/mediawiki.md)

# There is a cache in front: anonymous pages say s-maxage in place of private.
$wgUseCdn = true;
$wgCdnMaxAge = 300;
# Believe X-Forwarded-For of larder. Nothing is sent to it: larder does not take the method PURGE yet.
$wgCdnServersNoPurge = [ '127.0.0.1' ];

# Everything that is written lies in the scratch folder.
$wgUploadDirectory = "@WORK@/images";
$wgUploadPath = "/images";
$wgCacheDirectory = "@WORK@/cache";
$wgEnableUploads = true;

# No report of how long the parser took in each page: it differs from request to request.
$wgEnableParserLimitReporting = false;

# PHP makes the smaller pictures itself, whatever the machine has installed besides.
$wgUseImageMagick = false;
$wgLogos = [ '1x' => '/resources/assets/mediawiki.png' ];
