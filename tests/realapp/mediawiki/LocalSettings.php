
# ---- from here: what larder's test adds to what MediaWiki's installer wrote (see docs/guide/mediawiki.md)

# There is a cache in front: anonymous pages say s-maxage in place of private, and a changed page is purged.
$wgUseCdn = true;
$wgCdnMaxAge = 86400;
# Where purges go.
$wgCdnServers = [ '@LARDER@' ];
# Believe X-Forwarded-For of larder.
$wgCdnServersNoPurge = [ '127.0.0.1' ];

# Jobs are run by the test, and by a timer elsewhere, not at the end of a visitor's request.
$wgJobRunRate = 0;

# The filter of a history lists all change tags that were ever used, and no history is purged when there is a new one.
$wgUseTagFilter = false;

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
